/**
 * Robots: `npm run bench -- robots` times training and says where the time goes; `robots learning [hopper …] [--jobs 2]` judges
 * the presets of the MuJoCo suite on fresh seeds, `robots walking` those of the legged robots; both train what is not in the
 * records yet. `--tune [--set key=value] [--seeds 0..4]` tries something on the seeds that tune.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { PpoConfig } from '../src/algos/ppo/settings.ts';
import { train } from '../src/algos/runs.ts';
import { figureFlags, judgePresets } from './figures/conduct.ts';
import { pickTasks } from './figures/tasks.ts';
import { machine, median, report, round } from './measure.ts';
import { refuse } from './refuse.ts';

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
    options: figureFlags,
  });
  const [part = 'speed', ...names] = positionals;
  report({ bench: `robots ${part}`, ...machine() });
  switch (part) {
    case 'speed':
      if (process.argv.slice(3).some(argument => argument.startsWith('--')))
        refuse('robots speed takes no flags: they are for robots learning and robots walking');
      for (const { env, target } of speeds) await timeTraining(env, target);
      return;
    case 'learning':
      return judgePresets(pickTasks(['suite'], names), values);
    case 'walking':
      return judgePresets(pickTasks(['walking'], names), values);
    default:
      refuse(`robots '${part}' is unknown: use speed, learning or walking`);
  }
}

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
