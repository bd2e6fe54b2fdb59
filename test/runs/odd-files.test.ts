import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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

describe('files of a run', () => {
  it('may be directories, missing, or links to themselves', async () => {
    const source = await sound();
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
