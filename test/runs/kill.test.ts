/** Real kills; faults.test.ts goes through all the moments at which they can fall. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { loadCheckpoint, openRun, readEvents, readTrajectory, runPaths } from '../../src/runs/index.ts';
import { compiledProgram } from '../support/compiled.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('kill');
const program = await compiledProgram('test/runs/support/spec.ts', 'test/runs/support/train.ts');
const iterations = 36;

/** Runs the trainer; kills it so many iterations and milliseconds after it began, if told to. True at the end. */
function run(dir: string, kill?: { afterIterations: number; afterMs: number }): Promise<boolean> {
  const pauseMs = kill === undefined ? '0' : '1';
  const child = spawn(process.execPath, [program, dir, String(iterations), pauseMs], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [errors, done] = ['', 0];
  child.stderr.on('data', data => {
    errors += data;
  });
  child.stdout.on('data', data => {
    done += data.length;
    if (kill !== undefined && done >= kill.afterIterations)
      setTimeout(() => child.kill('SIGKILL'), kill.afterMs);
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code, signal) => {
      if (errors !== '' || (code !== 0 && signal !== 'SIGKILL')) reject(new Error(errors || `exit ${code}`));
      else resolve(code === 0);
    });
  });
}

it('a run that is killed again and again equals one that was not', async () => {
  const [whole, killed] = [join(root, 'whole'), join(root, 'killed')];
  await run(whole);
  const rng = new Rng(1);
  let kills = 0;
  // Long enough for a checkpoint, so that each life gets further.
  while (!(await run(killed, { afterIterations: 4 + rng.integer(5), afterMs: rng.integer(20) }))) {
    kills++;
    expect(openRun(killed).status).toMatch(/killed|finished/); // or in the instant between its end and its exit
  }
  expect(kills).toBeGreaterThan(1);
  expect(openRun(killed)).toMatchObject({ status: 'finished', manifest: { resumes: kills } });
  expect(readTrajectory(killed)).toEqual(readTrajectory(whole));
  expect(readTrajectory(killed).rows).toHaveLength(iterations);
  expect(readEvents(killed).broken).toEqual([]);
  for (const which of ['last', 'best'] as const) {
    const [a, b] = [loadCheckpoint(killed, which)!, loadCheckpoint(whole, which)!];
    expect(a.index.step).toBe(b.index.step);
    expect(a.files).toEqual(b.files);
    expect(a.state).toEqual(b.state);
    expect(readFileSync(runPaths(killed)[which], 'utf8')).toBe(readFileSync(runPaths(whole)[which], 'utf8'));
  }
  expect(readdirSync(runPaths(killed).checkpoints).sort()).toEqual(
    readdirSync(runPaths(whole).checkpoints).sort(),
  );
  const names = (dir: string): string[] =>
    readdirSync(dir)
      .map(name => name.replace(/\d{10}/, 'n'))
      .sort();
  expect(names(killed)).toEqual(names(whole));
});
