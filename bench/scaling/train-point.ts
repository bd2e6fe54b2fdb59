/** One short training by the command line, in a process of its own: where the time of a step goes, and the most memory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startKeel } from '../compiled-keel.ts';
import { median } from '../measure.ts';

/** Iterations that warm up, and how many are measured at least, and for how long; what is slow has fewer of them. */
const WARM_UP = 2;
const FEWEST = 3;
const USUAL = 12;
const ENOUGH_MS = 1500;
const LONG_MS = 4000;
/** More than anything here does: it is stopped. */
const STEPS = 1_000_000_000;

export interface TrainPoint {
  readonly env: string;
  readonly config: Readonly<Record<string, number | string>> &
    Readonly<Record<'envs' | 'stepsPerRollout' | 'minibatchSize' | 'epochs', number>>;
}

/** Medians over its iterations. */
export interface TrainFigures {
  readonly stepsPerSecond: number;
  /** Of a step of one environment, all of an iteration shared out. */
  readonly stepMicroseconds: number;
  /** Of a step of all environments at once, acting included. */
  readonly vectorStepMicroseconds: number;
  readonly minibatchMicroseconds: number;
  readonly iterationMilliseconds: number;
  readonly peakMegabytes: number;
}

export async function trainPoint(built: string, { env, config }: TrainPoint): Promise<TrainFigures> {
  const root = mkdtempSync(join(tmpdir(), 'keel-scaling-'));
  // So small a rate leaves every update whole: none is stopped early, retried or undone by the guard.
  const settings = { learningRate: 1e-6, steps: STEPS, checkpointEvery: 1_000_000, ...config };
  const rows: Readonly<Record<string, number>>[] = [];
  let [firstAt, isStopped] = [0, false];
  try {
    const keel = startKeel(
      built,
      [
        ...['train', env, '--no-preset', '--no-dash', '--json', '--run-dir', root],
        ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
      ],
      {
        onLine: (line, child) => {
          const said = JSON.parse(line) as { kind: string } & Record<string, number>;
          if (said.kind !== 'row' || isStopped) return;
          firstAt ||= performance.now();
          rows.push(said);
          const [measured, ms] = [rows.length - WARM_UP, performance.now() - firstAt];
          if (measured < FEWEST || ms < (measured < USUAL ? LONG_MS : ENOUGH_MS)) return;
          isStopped = true;
          child.kill('SIGINT');
        },
      },
    );
    const { peakMegabytes } = await keel.ended(130);
    return { ...figuresOf(rows.slice(WARM_UP), config), peakMegabytes };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function figuresOf(
  rows: readonly Readonly<Record<string, number>>[],
  { envs, stepsPerRollout }: TrainPoint['config'],
): Omit<TrainFigures, 'peakMegabytes'> {
  const middle = (of: (row: Readonly<Record<string, number>>) => number): number => median(rows.map(of));
  const parts = ['collect', 'update', 'guard', 'log'];
  const seconds = middle(row => parts.reduce((sum, part) => sum + (row[`time/${part}_s`] ?? 0), 0));
  const samples = envs * stepsPerRollout;
  return {
    stepsPerSecond: samples / seconds,
    stepMicroseconds: (seconds / samples) * 1e6,
    vectorStepMicroseconds: (middle(row => row['time/collect_s']) / stepsPerRollout) * 1e6,
    minibatchMicroseconds: middle(row => row['time/update_s'] / row['train/minibatches_run']) * 1e6,
    iterationMilliseconds: seconds * 1000,
  };
}
