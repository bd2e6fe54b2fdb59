/**
 * Robots: `npm run bench -- robots` times training and says where the time goes; `robots learning` trains the MuJoCo suite,
 * and takes up finished or stopped runs in `--runs` where they are; `robots walking` teaches Arachne (or `--only quadruped`)
 * to walk, and says how large its updates were.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import type { PpoConfig } from '../src/algos/ppo/settings.ts';
import { train } from '../src/algos/runs.ts';
import { machine, median, report, round } from './measure.ts';
import { learnSuite } from './robots/learning.ts';
import { learnToWalk } from './robots/walking.ts';

/** What must be reached on two cores, in environment steps a second. */
const speeds = [
  { env: 'HalfCheetah-v5', target: 5000 },
  { env: 'Arachne-v0', target: 2000 },
] as const;
const ITERATIONS = 12;

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: {
      runs: { type: 'string', default: 'runs/robots' },
      seeds: { type: 'string', default: '1,2,3' },
      only: { type: 'string', default: '' },
      curves: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
    },
  });
  const [part = 'speed'] = positionals;
  const seeds = values.seeds.split(',').map(Number);
  report({ bench: `robots ${part}`, ...machine() });
  switch (part) {
    case 'speed':
      for (const { env, target } of speeds) await timeTraining(env, target);
      return;
    case 'learning':
      return learnSuite({ root: values.runs, seeds, only: values.only, curves: values.curves });
    case 'walking':
      for (const seed of seeds)
        await learnToWalk(values.only || 'arachne', seed, {
          root: values.runs,
          changes: changesOf(values.set),
        });
      return;
    default:
      throw new Error(`robots '${part}' is unknown: use speed, learning or walking`);
  }
}

/** `targetKl=0.01` and the like, as values. */
const changesOf = (written: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    written.map(text => {
      const [key, value] = text.split('=');
      return [key, parse(value) as unknown];
    }),
  );

/** Trains for a while with the environment's own settings; the first two iterations warm up. */
async function timeTraining(env: string, target: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const rows: Readonly<Record<string, number>>[] = [];
  let samples = 0;
  try {
    await train({
      env,
      root,
      config: { steps: 1e7 },
      ...stopAfter(ITERATIONS, row => rows.push(row)),
      onStart: ({ config }) => {
        const { envs, stepsPerRollout } = config as PpoConfig;
        samples = envs * stepsPerRollout;
      },
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  const mid = (of: (row: Readonly<Record<string, number>>) => number): number =>
    median(rows.slice(2).map(of));
  const physics = mid(row => row['time/env_s']);
  const inference = mid(row => row['time/collect_s'] - row['time/env_s']);
  const update = mid(row => row['time/update_s'] + row['time/guard_s']);
  const log = mid(row => row['time/log_s'] ?? 0);
  const seconds = physics + inference + update + log;
  report({
    env,
    steps_per_second: round(samples / seconds, 0),
    target,
    share_physics: round(physics / seconds),
    share_inference: round(inference / seconds),
    share_update: round(update / seconds),
    share_log: round(log / seconds),
    samples_per_iteration: samples,
  });
}

/** Hooks that end a run after so many rows. */
function stopAfter(iterations: number, onRow: (row: Readonly<Record<string, number>>) => void) {
  const stop = new AbortController();
  let seen = 0;
  return {
    signal: stop.signal,
    onRow(row: Readonly<Record<string, number>>) {
      onRow(row);
      if (++seen === iterations) stop.abort();
    },
  };
}
