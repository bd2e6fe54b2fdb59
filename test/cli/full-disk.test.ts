/** A disk that fills up while a run goes, where the system lets us mount one (root on Linux). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  checkpointProblem,
  listCheckpoints,
  openRun,
  readRows,
  readTrajectory,
} from '../../src/runs/index.ts';
import { until } from '../support/until.ts';
import { keel, scratch, startKeel, tiny } from './support/keel.ts';

const top = scratch();
const disk = join(top, 'disk');
let mounted = false;

beforeAll(() => {
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk], { stdio: 'ignore' });
    mounted = true;
  } catch {
    // Not root, or not Linux.
  }
});
afterAll(() => {
  if (mounted) execFileSync('umount', [disk]);
});

test('costs one clear error and nothing that was saved; with space again the run goes on to the same bits', async context => {
  if (!mounted) return context.skip();
  const runs = join(disk, 'runs');
  // Pieces of a size that shows: a checkpoint is some 120 kB.
  const settings = ['--set', 'hidden=[64,64]', '--set', 'steps=6400', '--json'];
  const run = startKeel(['train', 'cartpole', ...tiny(runs, ...settings)]);
  await until(
    () => run.output.stdout.split('\n').filter(line => line.includes('"checkpoint"')).length >= 3,
    'three checkpoints',
    5,
  );
  // Nearly all that is left: the next checkpoint does not fit.
  run.child.kill('SIGSTOP');
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - 16_384)));
  run.child.kill('SIGCONT');
  const { code, stderr } = await run.done;
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^keel: cannot \w+ .*: the disk is full: free some space or choose another run directory; what was saved before is intact \(ENOSPC\)\n$/,
  );
  const dir = join(runs, readdirSync(runs)[0]);
  const saved = listCheckpoints(dir).at(-1)!;
  expect(checkpointProblem(dir, saved.step)).toBeUndefined();
  expect(openRun(dir).status).toMatch(/^(failed|killed)$/);

  rmSync(join(disk, 'ballast'));
  const evaluated = await keel(['eval', 'last', '-n', '1', '--checkpoint', 'last', '--run-dir', runs]);
  expect(evaluated).toMatchObject({ code: 0, stderr: '' });
  const steps = String(saved.step + 256);
  const resumed = await keel(['resume', 'last', '--steps', steps, '--run-dir', runs]);
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(openRun(dir)).toMatchObject({ status: 'finished', manifest: { step: Number(steps) } });
  expect(readRows(dir).broken).toEqual([]);
  // A run on a large disk, for comparison.
  const calm = join(top, 'calm');
  await keel(['train', 'cartpole', ...tiny(calm, '--set', 'hidden=[64,64]', '--steps', steps)]);
  expect(readTrajectory(dir).rows).toEqual(readTrajectory(join(calm, readdirSync(calm)[0])).rows);
});
