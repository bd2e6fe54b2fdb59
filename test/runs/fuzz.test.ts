import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import {
  iterateRows,
  listCheckpoints,
  listRuns,
  loadCheckpoint,
  openRun,
  RunError,
  RunWriter,
  readEvents,
  readLastRow,
  readRows,
  readTrajectory,
  rebuildProjections,
  resolveRun,
} from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('fuzz');

async function sound(): Promise<string> {
  const writer = RunWriter.create(spec, { root: join(root, 'sound'), id: 'run' });
  for (let i = 1; i <= 6; i++) {
    writer.row(rowOf(i));
    if (i % 2 === 0) await writer.checkpoint(checkpointOf(i, 60));
  }
  writer.end('stopped', 'x');
  return writer.dir;
}

const words = [
  'NaN',
  '1e999',
  '-1',
  '99999999999999999999',
  'null',
  '"',
  '{',
  '[',
  '\n',
  '\0',
  '\ufeff',
  '__proto__',
  '"schema":9',
];

/** One of the ways in which files go wrong. */
function mutate(bytes: Buffer, rng: Rng): Buffer {
  const at = rng.integer(bytes.length + 1);
  const end = Math.min(bytes.length, at + rng.integer(40));
  switch (rng.integer(8)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] ^= 1 << rng.integer(8);
      return copy;
    }
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    case 4: {
      const word = Buffer.from(words[rng.integer(words.length)]);
      return Buffer.concat([bytes.subarray(0, at), word, bytes.subarray(at)]);
    }
    case 5:
      return Buffer.from(bytes.toString('utf8').replace(/\d+/g, n => (rng.integer(8) === 0 ? '1e15' : n)));
    case 6:
      return Buffer.from(bytes.toString('utf8'), 'utf16le');
    default:
      return Buffer.alloc(bytes.length);
  }
}

/** All that reads; each may fail, but only with a RunError of one line. */
const readers: ((dir: string) => unknown)[] = [
  openRun,
  dir => listRuns([join(dir, '..')]),
  dir => resolveRun('run', [join(dir, '..')]),
  readRows,
  readEvents,
  readLastRow,
  dir => [...iterateRows(dir)],
  readTrajectory,
  listCheckpoints,
  dir => loadCheckpoint(dir),
  dir => loadCheckpoint(dir, 'best'),
];

describe('mutated files', () => {
  it('are read or refused in one line, and never resumed into something else', async () => {
    const source = await sound();
    const names = [
      'manifest.json',
      'metrics.jsonl',
      'events.jsonl',
      ...readdirSync(join(source, 'checkpoints'), { recursive: true }).map(name =>
        join('checkpoints', String(name)),
      ),
    ].filter(name => statSync(join(source, name)).isFile());
    const truth = loadCheckpoint(source)!;
    const rng = new Rng(5);
    const dir = join(root, 'victim', 'run');
    const outcomes = { read: 0, refused: 0, resumed: 0 };
    const attempt = (read: () => unknown): boolean => {
      try {
        read();
        outcomes.read++;
        return true;
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        expect(error.message).toMatch(/^[^\n]{5,700}$/);
        outcomes.refused++;
        return false;
      }
    };
    cpSync(source, dir, { recursive: true });
    for (let round = 0; round < 300; round++) {
      const name = names[rng.integer(names.length)];
      writeFileSync(join(dir, name), mutate(readFileSync(join(source, name)), rng));
      for (const read of readers) attempt(() => read(dir));
      if (round % 4 > 0) {
        cpSync(join(source, name), join(dir, name));
        continue;
      }
      attempt(() => {
        const { writer, checkpoint } = RunWriter.resume(dir);
        outcomes.resumed++;
        writer.end('stopped');
        // What was resumed from is what was saved, bit for bit, or the checkpoint before it.
        if (checkpoint?.index.step === truth.index.step) expect(checkpoint.files).toEqual(truth.files);
        expect([...iterateRows(dir)].at(-1)?.['train/iteration']).toBe(checkpoint?.index.iteration);
      });
      expect(readdirSync(dir).filter(entry => entry.startsWith('lock'))).toEqual([]);
      rmSync(dir, { recursive: true });
      cpSync(source, dir, { recursive: true });
    }
    expect(outcomes.read).toBeGreaterThan(700);
    expect(outcomes.refused).toBeGreaterThan(120);
    expect(outcomes.resumed).toBeGreaterThan(20);
  });

  it('may be directories, missing, or links to themselves', async () => {
    const source = join(root, 'sound', 'run');
    for (const name of [
      'manifest.json',
      'metrics.jsonl',
      'events.jsonl',
      'checkpoints',
      'checkpoints/best',
      'checkpoints/1536',
    ]) {
      for (const make of [
        undefined,
        (path: string) => mkdirSync(path),
        (path: string) => writeFileSync(path, ''),
      ]) {
        const dir = join(root, 'odd', 'run');
        rmSync(dir, { recursive: true, force: true });
        cpSync(source, dir, { recursive: true });
        rmSync(join(dir, name), { recursive: true });
        make?.(join(dir, name));
        const all = [
          ...readers,
          (d: string) => RunWriter.resume(d).writer.end('stopped'),
          (d: string) => rebuildProjections(d),
        ];
        for (const read of all) {
          try {
            read(dir);
          } catch (error) {
            expect(error, `${name} ${read}`).toBeInstanceOf(RunError);
          }
        }
        expect(existsSync(dir)).toBe(true);
      }
    }
  });
});
