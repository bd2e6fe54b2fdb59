/** Trains one seed of a task to its end, or goes on with a run that was stopped, and judges it. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { TrainHooks } from '../../src/algos/hooks.ts';
import { openPolicy, resume, train } from '../../src/algos/runs.ts';
import { openRun, readRows, recentReturn } from '../../src/runs/index.ts';
import { diagnoseFile } from '../doctor/diagnose-file.ts';
import { longestStreak, median, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { wholeRun } from '../whole-run.ts';
import { presetHash } from './preset.ts';
import type { RunRecord, WalkRecord } from './record.ts';
import type { FigureTask } from './tasks.ts';
import { judgeWalks } from './walks.ts';

/** No run is trained with it, and no evaluation within a run has it. */
const EVALUATION_SEED = 10_000;
const CURVE_POINTS = 40;
/** What the doctor calls large; no preset is to stay above it. */
const LARGE_KL = 0.03;

export interface JudgeOptions {
  /** The preset that is judged: the file may have changed since the bench began. */
  readonly preset: string;
  /** Directory of runs. */
  readonly root: string;
  /** Whether the run may use one core alone: others run beside it. The bits are the same. */
  readonly oneCore: boolean;
  readonly onRow?: TrainHooks['onRow'];
}

export async function judgeRun(
  task: FigureTask,
  seed: number,
  { preset, root, oneCore, onRow }: JudgeOptions,
): Promise<RunRecord> {
  const { env, changes } = task;
  if (presetHash(env) !== preset)
    refuse(
      `the preset of ${env} is ${presetHash(env)} now, not ${preset}: begin again, to judge it on seeds of its own`,
    );
  // Of what is loaded now: hours later the checkout may be another.
  const commit = commitNow();
  const own = join(root, `${task.id.replaceAll(' ', '-').toLowerCase()}-${preset}-${seed}`);
  const hooks: TrainHooks = onRow ? { onRow } : {};
  const cores = oneCore ? { workers: 0, threads: 1 } : {};
  const dir = await wholeRun(
    own,
    () => train({ env, root: own, config: { ...changes, ...cores, record: false, seed }, ...hooks }),
    stopped => resume(stopped, hooks),
  );
  const rows = readRows(dir).items;
  const kls = rows.map(row => row['kl/step']);
  const last = rows.at(-1)!;
  const { guard } = openRun(dir).manifest.config as { readonly guard?: number | null };
  return {
    task: task.id,
    env,
    preset,
    seed,
    changes,
    steps: last['train/step'],
    ...(await evaluate(dir, task)),
    trained: round(recentReturn(rows) ?? Number.NaN, 1),
    guard: guard ?? null,
    klLargest: precise(Math.max(...kls)),
    klLargestRaw: precise(Math.max(...rows.map(row => row['kl/step_raw'] ?? row['kl/step']))),
    klMedian: precise(median(kls)),
    klLongest: longestStreak(kls, kl => kl > LARGE_KL),
    updates: rows.length,
    guarded: rows.filter(row => row['guard/retries'] > 0 || row['guard/backtracks'] > 0).length,
    ...(await verdictOn(dir)),
    minutes: round((last['time/elapsed_s'] ?? 0) / 60, 2),
    commit,
    curve: curveOf(rows),
  };
}

const precise = (value: number): number => Number(value.toPrecision(4));

/** The policy after the last step, by its most likely actions. */
async function evaluate(
  dir: string,
  { env, group, episodes }: FigureTask,
): Promise<{ evaluated: number; episodes: number; walks?: WalkRecord }> {
  const policy = await openPolicy(dir, { checkpoint: 'last' });
  try {
    if (group === 'walking')
      return { episodes, ...(await judgeWalks(env, policy, episodes, EVALUATION_SEED)) };
    const evaluation = await policy.evaluate({ episodes, seed: EVALUATION_SEED, sampled: false });
    if (evaluation.kind !== 'episodes') throw new Error(`${env} was not judged by episodes`);
    return { evaluated: round(evaluation.mean, 1), episodes };
  } finally {
    await policy.close();
  }
}

/** What the doctor calls a run, and the codes of what it found. */
export async function verdictOn(dir: string): Promise<{ verdict: string; findings: readonly string[] }> {
  const { verdict, findings } = await diagnoseFile(dir);
  return { verdict, findings: findings.map(({ code }) => code) };
}

/** Of the last 100 episodes at some forty places. */
function curveOf(rows: readonly Readonly<Record<string, number>>[]): [number, number][] {
  const every = Math.max(1, Math.floor(rows.length / CURVE_POINTS));
  return rows.flatMap((row, i): [number, number][] => {
    if ((rows.length - 1 - i) % every !== 0) return [];
    const score = recentReturn(rows.slice(Math.max(0, i - 99), i + 1));
    return score === undefined ? [] : [[row['train/step'], round(score, 1)]];
  });
}

/** With a plus where the sources or presets differ from it. */
function commitNow(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', 'src', 'configs') === '' ? '' : '+'}`;
  } catch {
    return 'unknown';
  }
}
