/**
 * What survives a power cut: data is on the disk before the name that shows it, and the name before anyone is told. The
 * calls are recorded; what the disk does with them is its own affair. A disk that is full leaves no half of a line.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { AppendFile, writeFileAtomic, writeNewFile } from '../../src/base/files.ts';
import { endOfLastLine } from '../../src/metrics/lines.ts';
import { jsonlSink } from '../../src/metrics/sinks/jsonl.ts';
import { RunWriter, saveCheckpoint } from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

interface Call {
  readonly what: 'write' | 'sync' | 'rename' | 'close';
  readonly path: string;
  readonly to?: string;
}

const disk = vi.hoisted(() => ({ calls: [] as Call[], open: new Map<number, string>(), full: false }));

vi.mock('node:fs', async original => {
  const real = await original<typeof import('node:fs')>();
  const mocked: typeof real = {
    ...real,
    openSync(path, ...rest) {
      const fd = real.openSync(path, ...rest);
      disk.open.set(fd, String(path));
      return fd;
    },
    writeSync(...args: unknown[]) {
      const [fd, bytes, offset, length, position] = args as [number, Uint8Array, number, number, number];
      disk.calls.push({ what: 'write', path: disk.open.get(fd)! });
      if (!disk.full) return real.writeSync(fd, bytes, offset, length, position);
      real.writeSync(fd, bytes, offset, Math.floor(length / 2), position);
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    },
    fsyncSync(fd) {
      disk.calls.push({ what: 'sync', path: disk.open.get(fd)! });
    },
    renameSync(from, to) {
      disk.calls.push({ what: 'rename', path: String(from), to: String(to) });
      real.renameSync(from, to);
    },
  };
  return { ...mocked, default: mocked };
});

const root = temporaryRoot('durability');
let dir: string;
let number = 0;
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(dir);
  disk.calls.length = 0;
  disk.full = false;
});

/** Where a call is in the order; each that is looked for must be there. */
function placeOf(what: Call['what'], matches: (call: Call) => boolean, which: 'first' | 'last' = 'last') {
  const found = (call: Call): boolean => call.what === what && matches(call);
  const at = which === 'last' ? disk.calls.findLastIndex(found) : disk.calls.findIndex(found);
  expect(at, `${what} in ${JSON.stringify(disk.calls)}`).toBeGreaterThanOrEqual(0);
  return at;
}

/** The calls without the random part of temporary names. */
const told = (): string[] =>
  disk.calls.map(({ what, path, to }) =>
    [what, ...[path, to].filter(name => name !== undefined).map(name => shortened(name))].join(' '),
  );
const shortened = (path: string): string =>
  path === dir ? '.' : basename(path).replace(/^\.keel-tmp-(.*)-[0-9a-f]{12}$/, 'temporary');

describe('a file', () => {
  it('is synced before it gets its name, and the name after', () => {
    writeFileAtomic(join(dir, 'manifest.json'), 'x');
    expect(told()).toEqual(['write temporary', 'sync temporary', 'rename temporary manifest.json', 'sync .']);
  });

  it('that can be made again is not', () => {
    writeFileAtomic(join(dir, 'last'), 'x', false);
    expect(told()).toEqual(['write temporary', 'rename temporary last']);
  });

  it('that is new is on the disk when the call returns, and replaces none', () => {
    writeNewFile(join(dir, 'a'), 'x');
    expect(told()).toEqual(['write a', 'sync a']);
    expect(() => writeNewFile(join(dir, 'a'), 'y')).toThrow(/exists already/);
    expect(readFileSync(join(dir, 'a'), 'utf8')).toBe('x');
  });
});

describe('a checkpoint', () => {
  it('appears when every file of it is on the disk, those too that its owner wrote', async () => {
    const { files, ...rest } = checkpointOf(1);
    await saveCheckpoint(dir, {
      ...rest,
      files: { ...files, 'own.bin': path => writeFileSync(path, 'by its owner') },
    });
    const appears = placeOf('rename', ({ to }) => to === join(dir, 'checkpoints', String(rest.step)));
    const inside = (name: string) => (call: Call) =>
      call.path.includes('.keel-tmp-') && basename(call.path) === name;
    for (const name of [...Object.keys(files), 'own.bin', 'state.json', 'checkpoint.json']) {
      const synced = placeOf('sync', inside(name));
      expect(synced, name).toBeLessThan(appears);
      if (name !== 'own.bin') expect(placeOf('write', inside(name)), name).toBeLessThan(synced);
    }
    const { path: temporary } = disk.calls[appears];
    expect(placeOf('sync', ({ path }) => path === temporary)).toBeLessThan(appears);
    expect(placeOf('sync', ({ path }) => path === join(dir, 'checkpoints'))).toBeGreaterThan(appears);
  });

  it('comes after the rows and events that it stands for', async () => {
    const writer = RunWriter.create(spec, { root, id: `run-${number}` }, { now: () => 1.7e12 });
    writer.event({ type: 'skipped', iteration: 1, step: 1, message: '', count: 1 });
    writer.row(rowOf(1));
    disk.calls.length = 0;
    await writer.checkpoint(checkpointOf(1));
    writer.end('stopped', 'done');
    const appears = placeOf('rename', ({ to }) => /checkpoints.\d+$/.test(to ?? ''), 'first');
    for (const name of ['metrics.jsonl', 'events.jsonl'])
      expect(
        placeOf('sync', ({ path }) => basename(path) === name, 'first'),
        name,
      ).toBeLessThan(appears);
  });
});

describe('a log', () => {
  it('is on the disk after a flush', () => {
    const sink = jsonlSink({ metrics: join(dir, 'metrics.jsonl'), events: join(dir, 'events.jsonl') });
    sink.write(rowOf(1));
    sink.event({ type: 'note', text: 'x' });
    sink.flush();
    expect(told()).toEqual([
      'write metrics.jsonl',
      'write events.jsonl',
      'sync metrics.jsonl',
      'sync events.jsonl',
    ]);
    sink.close();
  });

  it('has no half of a line of an earlier process, however short the next one is', () => {
    const path = join(dir, 'log');
    writeFileSync(path, 'first\nhalf of a long li');
    const file = new AppendFile(path, endOfLastLine);
    expect(readFileSync(path, 'utf8')).toBe('first\n');
    file.append('x\n');
    file.close();
    expect(readFileSync(path, 'utf8')).toBe('first\nx\n');
  });

  it('has no half of a line after the disk was full, and goes on when there is room', () => {
    const file = new AppendFile(join(dir, 'log'));
    file.append('first\n');
    disk.full = true;
    expect(() => file.append('second\n')).toThrow(/the disk is full/);
    expect(readFileSync(file.path, 'utf8')).toBe('first\n');
    expect(file.size).toBe(6);
    disk.full = false;
    file.append('third\n');
    file.close();
    expect(readFileSync(file.path, 'utf8')).toBe('first\nthird\n');
  });
});
