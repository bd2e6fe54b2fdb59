/** The MuJoCo suite, so many seeds of each, beside published scores. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TrainHooks } from '../../src/algos/hooks.ts';
import { resume, train } from '../../src/algos/runs.ts';
import { listRuns, readRows, recentReturn } from '../../src/runs/index.ts';
import { type Line, type Panel, panelsSvg } from '../line-panels.ts';
import { report, round } from '../measure.ts';
import { wholeRun } from '../whole-run.ts';

/** Published PPO scores after 1M steps; `least` is CleanRL's, or the PPO paper's where CleanRL has none. */
const suite = [
  { env: 'HalfCheetah-v5', least: 1443, tuned: 5819 },
  { env: 'Hopper-v5', least: 2383, tuned: 2609 },
  { env: 'Walker2d-v5', least: 2288, tuned: 3589 },
  { env: 'Ant-v5', least: 1327, tuned: 3258 },
  { env: 'Swimmer-v5', least: 108, tuned: 282 },
  { env: 'InvertedPendulum-v5', least: 963, tuned: 1000 },
  { env: 'InvertedDoublePendulum-v5', least: 8000, tuned: 9231 },
  { env: 'Reacher-v5', least: -7, tuned: -4.1 },
] as const;

export interface LearningOptions {
  readonly root: string;
  readonly seeds: readonly number[];
  /** Names of tasks, separated by commas; all of them if empty. */
  readonly only: string;
  /** Where to draw the curves. */
  readonly curves: string | undefined;
}

/** What one run came to. */
interface Outcome {
  readonly last: number;
  readonly best: number;
  readonly largestKl: number;
  readonly guard: number | null;
  readonly minutes: number;
  readonly steps: number;
  /** Resident memory a tenth into the run and at its end; of runs that are trained now. */
  readonly memoryMb: readonly number[];
  readonly curve: Line;
}

export async function learnSuite({ root, seeds, only, curves }: LearningOptions): Promise<void> {
  const wanted = only.split(',').filter(name => name !== '');
  const tasks = suite.filter(
    ({ env }) => wanted.length === 0 || wanted.some(name => env.toLowerCase().startsWith(name)),
  );
  const panels: Panel[] = [];
  for (const { env, least, tuned } of tasks) {
    const outcomes: Outcome[] = [];
    for (const seed of seeds)
      outcomes.push(await trained(env, seed, join(root, `${env.toLowerCase()}-${seed}`)));
    const lasts = outcomes.map(({ last }) => last);
    const mean = lasts.reduce((a, b) => a + b, 0) / lasts.length;
    report({
      env,
      steps: outcomes[0].steps,
      seeds,
      last_100_episodes: lasts.map(score => round(score, 1)),
      mean: round(mean, 1),
      best_100_episodes: outcomes.map(({ best }) => round(best, 1)),
      least,
      tuned,
      reached: mean >= least,
      largest_kl_step: Number(Math.max(...outcomes.map(({ largestKl }) => largestKl)).toPrecision(4)),
      guard: outcomes[0].guard,
      minutes: outcomes.map(({ minutes }) => round(minutes, 1)),
      memory_mb: outcomes.map(({ memoryMb }) => memoryMb),
    });
    panels.push({
      title: env,
      lines: outcomes.map(({ curve }) => curve),
      levels: [
        { name: 'published', value: least, colour: '#888' },
        { name: 'tuned', value: tuned, colour: '#b45309' },
      ],
      xEnd: step => `${(step / 1e6).toFixed(1)}M steps`,
    });
    if (curves !== undefined) writeFileSync(curves, panelsSvg('Learning curves', panels));
  }
}

/** The run of that seed: as it is if it has finished, gone on with if it was stopped, else trained from the beginning. */
async function trained(env: string, seed: number, root: string): Promise<Outcome> {
  const memoryMb: number[] = [];
  const hooks: TrainHooks = {
    onRow(_, { step, totalSteps }) {
      const mb = round(process.memoryUsage.rss() / 2 ** 20, 0);
      if (step >= totalSteps / 10) memoryMb[memoryMb.length === 0 ? 0 : 1] = mb;
    },
  };
  const dir = await wholeRun(
    root,
    () => train({ env, root, config: { seed }, ...hooks }),
    stopped => resume(stopped, hooks),
  );
  const { config } = listRuns([root]).runs[0].manifest as { config: { guard?: number | null } };
  return { ...outcomeOf(dir, config.guard ?? null), memoryMb };
}

function outcomeOf(dir: string, guard: number | null): Omit<Outcome, 'memoryMb'> {
  const rows = readRows(dir).items;
  let [largestKl, best] = [0, Number.NEGATIVE_INFINITY];
  const steps: number[] = [];
  const returns: number[] = [];
  rows.forEach((row, i) => {
    largestKl = Math.max(largestKl, row['kl/step'] ?? 0);
    const score = recentReturn(rows.slice(Math.max(0, i - 99), i + 1));
    if (score === undefined) return;
    best = Math.max(best, score);
    steps.push(row['train/step']);
    returns.push(score);
  });
  const last = rows.at(-1)!;
  return {
    last: returns.at(-1) ?? Number.NaN,
    best,
    largestKl,
    guard,
    minutes: (last['time/elapsed_s'] ?? 0) / 60,
    steps: last['train/step'],
    curve: { xs: steps, ys: returns },
  };
}
