/** Every call that changes the disk fails once, in every way that matters, and the process dies at every one of them. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  loadCheckpoint,
  openRun,
  RunError,
  RunWriter,
  readRows,
  readTrajectory,
  runPaths,
} from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

/**
 * The call that fails, counted over all that change the disk. `dies`: from there on none does anything, as if the
 * process had been killed in the middle of it.
 */
const fault = vi.hoisted(() => ({ at: -1, code: '', dies: false, calls: 0, hit: '' }));

vi.mock('node:fs', async original => {
  const real = await original<typeof import('node:fs')>();
  const failing = (name: keyof typeof real) => {
    const call = real[name] as (...args: unknown[]) => unknown;
    return (...args: unknown[]) => {
      if (fault.at >= 0) {
        const now = fault.calls++;
        if (now === fault.at) {
          fault.hit = name;
          // Half of it is written before the disk is full, or the process dead.
          if (name === 'writeSync')
            call(args[0], args[1], args[2], Math.floor((args[3] as number) / 2), args[4]);
        }
        if (now === fault.at || (fault.dies && now > fault.at)) {
          throw Object.assign(new Error(`${fault.code}: made up,\n${name}`), { code: fault.code });
        }
      }
      // No power is cut here.
      return name === 'fsyncSync' ? undefined : call(...args);
    };
  };
  const names = [
    ...['writeSync', 'fsyncSync', 'renameSync', 'mkdirSync', 'linkSync', 'ftruncateSync', 'writeFileSync'],
    ...['rmSync'],
  ] as (keyof typeof real)[];
  const mocked = { ...real, ...Object.fromEntries(names.map(name => [name, failing(name)])) };
  return { ...mocked, default: mocked };
});

const root = temporaryRoot('faults');
const stop = (): void => {
  fault.at = -1;
};
afterEach(stop);

const options = { now: () => 1.7e12, keepLast: 1 };

/** Goes on to an iteration, with a checkpoint after each second one. */
async function train(writer: RunWriter, from: number, to: number): Promise<void> {
  for (let i = from; i <= to; i++) {
    if (i % 3 === 0) writer.event({ type: 'skipped', iteration: i, step: i, message: '', count: 1 });
    writer.row(rowOf(i));
    if (i % 2 === 0) await writer.checkpoint(checkpointOf(i, 100));
  }
}

function begin(id: string): { writer: RunWriter; from: number } {
  const dir = join(root, id);
  if (!readdirSync(root).includes(id))
    return { writer: RunWriter.create(spec, { root, id }, options), from: 1 };
  const { writer, checkpoint } = RunWriter.resume(dir, options);
  return { writer, from: (checkpoint?.index.iteration ?? 0) + 1 };
}

async function life(id: string, to: number): Promise<void> {
  const { writer, from } = begin(id);
  try {
    await train(writer, from, to);
    writer.end('stopped', 'done');
  } catch (error) {
    writer.end('failed', 'x');
    throw error;
  }
}

/** Everything that must not depend on interruptions. */
function outcome(dir: string): object {
  const { csv, checkpoints, best, last } = runPaths(dir);
  const tensorboard = readdirSync(dir).filter(name => name.includes('tfevents'));
  return {
    ...readTrajectory(dir),
    csv: readFileSync(csv, 'utf8'),
    tensorboard: tensorboard.map(name => readFileSync(join(dir, name), 'latin1')),
    pointers: [readFileSync(best, 'utf8'), readFileSync(last, 'utf8')],
    names: [...readdirSync(dir), ...readdirSync(checkpoints)].map(name => name.replace(/\d{10}/, 'n')).sort(),
    last: loadCheckpoint(dir),
    best: loadCheckpoint(dir, 'best'),
  };
}

describe('a process that dies', () => {
  it('at any call, in the middle of it, is resumed to what would have been', async () => {
    await life('whole', 6);
    const whole = outcome(join(root, 'whole'));
    let deaths = 0;
    for (let at = 0; ; at++) {
      const id = `dying-${at}`;
      Object.assign(fault, { at, code: 'EIO', dies: true, calls: 0, hit: '' });
      await life(id, 6).catch(() => {});
      stop();
      if (fault.hit === '') break;
      deaths++;
      // The locks of a dead process are found to be so (lock.test.ts); this one is alive.
      const dir = join(root, id);
      const names = readdirSync(root).includes(id) ? readdirSync(dir) : [];
      for (const name of names) if (name.startsWith('lock.')) rmSync(join(dir, name));
      if (!names.includes('manifest.json')) rmSync(dir, { recursive: true, force: true }); // not a run yet
      await life(id, 6);
      expect(outcome(dir), `${fault.hit}, call ${at}`).toEqual(whole);
      rmSync(dir, { recursive: true });
    }
    expect(deaths).toBeGreaterThan(80);
  });

  it('while it resumes, is resumed again', async () => {
    await life('whole-again', 5);
    const whole = outcome(join(root, 'whole-again'));
    for (let at = 0; ; at++) {
      const id = `resuming-${at}`;
      await life(id, 3);
      Object.assign(fault, { at, code: 'EIO', dies: true, calls: 0, hit: '' });
      try {
        RunWriter.resume(join(root, id), options);
      } catch {}
      stop();
      if (fault.hit === '') break;
      for (const name of readdirSync(join(root, id)))
        if (name.startsWith('lock.')) rmSync(join(root, id, name));
      await life(id, 5);
      expect(outcome(join(root, id)), `${fault.hit}, call ${at}`).toEqual(whole);
    }
  });
});

describe('a disk that fails', () => {
  for (const [code, stride] of [
    ['ENOSPC', 3],
    ['EROFS', 23],
    ['EACCES', 23],
    ['EIO', 23],
  ] as const) {
    it(`with ${code} at any call gives a RunError of one line, and what was saved goes on`, async () => {
      let failures = 0;
      for (let at = 0; ; at += stride) {
        const id = `${code}-${at}`.toLowerCase();
        await life(id, 4);
        Object.assign(fault, { at, code, dies: false, calls: 0, hit: '' });
        let error: unknown;
        await life(id, 6).catch(thrown => {
          error = thrown;
        });
        stop();
        if (fault.hit === '') break;
        const dir = join(root, id);
        if (error !== undefined) {
          failures++;
          expect(error, `${fault.hit} ${at}`).toBeInstanceOf(RunError);
          expect((error as Error).message).toMatch(/^cannot [a-z ]+ \/[^\n]+\)$/);
          expect((error as RunError).code).toBe(code);
        }
        openRun(dir);
        expect(readRows(dir).broken).toEqual([]);
        expect(loadCheckpoint(dir)!.index.iteration).toBeGreaterThanOrEqual(4);
        await life(id, 7);
        expect(readRows(dir).items).toHaveLength(7);
        expect(readdirSync(dir).filter(name => /tmp|lock/.test(name))).toEqual([]);
        rmSync(dir, { recursive: true });
      }
      expect(failures).toBeGreaterThan(1);
    });
  }

  it('while a run is being made leaves no half of one', () => {
    for (let at = 0; ; at++) {
      const id = `new-${at}`;
      Object.assign(fault, { at, code: 'EACCES', dies: false, calls: 0, hit: '' });
      let writer: RunWriter | undefined;
      try {
        writer = RunWriter.create(spec, { root, id });
      } catch (error) {
        expect(error).toBeInstanceOf(RunError);
      }
      stop();
      writer?.end('stopped');
      if (fault.hit === '') break;
      if (readdirSync(root).includes(id)) openRun(join(root, id));
    }
  });
});
