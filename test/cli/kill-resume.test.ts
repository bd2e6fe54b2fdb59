/** A run that is killed at any moment goes on to the same bits as one that is not. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { checkpointDir, openRun, readTrajectory, runPaths } from '../../src/runs/index.ts';
import { scratch, startKeel } from './support/keel.ts';

const KILLS = 20;
/** Rows that a process may write before it is killed. */
const MOST_ROWS = 8;
/** 64 each: enough that no resume reaches the end before the last kill, however late a kill comes. */
const ITERATIONS = 2 * KILLS * (MOST_ROWS / 2 + 2);
const STEPS = 64 * ITERATIONS;

/** Both kinds of normaliser, both projections, schedules: all that a checkpoint must hold. */
const settings = [
  ...['envs=2', 'stepsPerRollout=32', 'minibatchSize=32', 'epochs=2', 'hidden=[8]', 'checkpointEvery=2'],
  ...['normaliseObservations=true', 'normaliseRewards=true', 'learningRateSchedule=linear', `steps=${STEPS}`],
  ...['targetKl=0.003', 'learningRate=0.003', 'reference=averaged', 'guard=0.004', 'keepEvery=50'],
].flatMap(pair => ['--set', pair]);

test(`${KILLS} kills at random moments change nothing`, { timeout: 300_000 }, async () => {
  const [calm, killed] = [join(scratch(), 'calm'), join(scratch(), 'killed')];
  for (const dir of [calm, killed]) mkdirSync(dir);
  const train = (dir: string): string[] => [
    'train',
    'pendulum',
    '--no-preset',
    '--run-dir',
    dir,
    ...settings,
  ];
  const uninterrupted = startKeel(train(calm)).done;

  const rng = new Rng(7);
  const rowsAtKill: number[] = [];
  let run = startKeel(train(killed));
  for (;;) {
    let ended = false;
    const done = run.done.finally(() => {
      ended = true;
    });
    if (rowsAtKill.length < KILLS) {
      // So many rows after its beginning, and then at any moment of what follows: a row, a checkpoint, a policy.
      await until(() => ended || hasBegun(killed, run.child.pid!));
      const goal = rowCount(killed) + Math.floor(rng.uniform() * (MOST_ROWS + 1));
      await until(() => ended || rowCount(killed) >= goal);
      await new Promise(resolve => setTimeout(resolve, rng.uniform() * 25));
      run.child.kill('SIGKILL');
    }
    const { code, signal, stderr } = await done;
    if (signal !== 'SIGKILL') {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      break;
    }
    rowsAtKill.push(rowCount(killed));
    run = startKeel(['resume', 'last', '--run-dir', killed]);
  }
  const { code, stderr } = await uninterrupted;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

  expect(rowsAtKill).toHaveLength(KILLS);
  expect(Math.max(...rowsAtKill)).toBeGreaterThan(10);
  const [a, b] = [theRun(calm), theRun(killed)];
  const [expected, got] = [readTrajectory(a), readTrajectory(b)];
  expect(got.rows).toEqual(expected.rows);
  expect(got.events).toEqual(expected.events);
  expect(openRun(b).manifest.resumes).toBe(KILLS);
  const steps = readdirSync(runPaths(a).checkpoints).sort();
  expect(readdirSync(runPaths(b).checkpoints).sort()).toEqual(steps);
  for (const step of steps.filter(name => /^\d+$/.test(name))) {
    for (const file of ['policy.safetensors', 'optimizer.safetensors', 'state.json']) {
      const [x, y] = [a, b].map(dir => readFileSync(join(checkpointDir(dir, Number(step)), file)));
      expect(x.equals(y), `${file} of checkpoint ${step}`).toBe(true);
    }
  }
  expect(readFileSync(runPaths(a).onnx).equals(readFileSync(runPaths(b).onnx))).toBe(true);
});

const theRun = (dir: string): string => join(dir, readdirSync(dir)[0]);

function textOf(dir: string, file: 'metrics' | 'events'): string {
  const [name] = readdirSync(dir);
  const path = name === undefined ? undefined : runPaths(join(dir, name))[file];
  return path !== undefined && existsSync(path) ? readFileSync(path, 'utf8') : '';
}

const rowCount = (dir: string): number => textOf(dir, 'metrics').split('\n').length - 1;
/** This process's first event is in the log. */
const hasBegun = (dir: string, pid: number): boolean => textOf(dir, 'events').includes(`"pid":${pid}`);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 3));
}
