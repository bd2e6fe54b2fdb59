/** Faults that are put into runs of Keel's own trainer, from the start or in mid-run: settings, as `keel train` takes them. */
import type { PpoSettings } from '../../src/algos/ppo/settings.ts';
import type { EnvId, Job } from './plan.ts';
import { preset } from './train-job.ts';

/** A healthy run of the matrix, and what is done to it. */
export interface Sabotage {
  readonly env: EnvId;
  readonly fault: string;
  readonly when: 'start' | 'middle';
  readonly seed: number;
  /** The settings of a healthy run. */
  readonly healthy: PpoSettings;
  /** What is wrong. */
  readonly wrong: PpoSettings;
}

interface Fault {
  readonly fault: string;
  readonly wrong: PpoSettings;
  readonly envs?: readonly EnvId[];
  /** Shapes cannot change in a run, nor is the scale of rewards changed without a word. */
  readonly startOnly?: boolean;
}

const faults: readonly Fault[] = [
  { fault: 'lr-high', wrong: { learningRate: 0.05 } },
  { fault: 'lr-low', wrong: { learningRate: 1e-7 } },
  { fault: 'clip-wide', wrong: { clipRange: 10, epochs: 20, minibatchSize: 128 } },
  { fault: 'target-kl-tight', wrong: { targetKl: 1e-6 } },
  { fault: 'critic-off', wrong: { valueCoef: 0 } },
  { fault: 'entropy-bonus', wrong: { entropyCoef: 1 } },
  { fault: 'epochs', wrong: { epochs: 100, minibatchSize: 64 } },
  { fault: 'reward-x1000', wrong: { rewardScale: 1000 }, startOnly: true },
  {
    fault: 'narrow',
    wrong: { logStdInitial: -4, logStdMax: -3 },
    envs: ['Pendulum-v1'],
    startOnly: true,
  },
];

/**
 * Runs that learn on every seed when nothing is wrong, or nobody could tell a fault from bad luck, and whose second half is
 * long enough to see one. CartPole's is Keel's preset without its guard, which would hold what is put in: with the settings
 * of the matrix one healthy run in three ends far below the others. The others are the matrix's, for longer.
 */
const bases = (jobs: readonly Job[]): ReadonlyMap<EnvId, PpoSettings> => {
  const usual = jobs.filter(({ variant, seed }) => variant === 'healthy' && seed === 0);
  const longer: Partial<Record<EnvId, number>> = { 'Pendulum-v1': 204_800, 'Acrobot-v1': 122_880 };
  return new Map(
    usual.map(({ env, config }) => [
      env,
      env === 'CartPole-v1'
        ? { ...preset(env), guard: null }
        : { ...config, ...(longer[env] !== undefined && { steps: longer[env] }) },
    ]),
  );
};

/** Each fault in each environment, and runs without one, which are `healthy`. */
export function sabotages(jobs: readonly Job[], seeds: readonly number[]): Sabotage[] {
  return seeds.flatMap(seed =>
    [...bases(jobs)].flatMap(([env, config]) => {
      const healthy = { ...config, seed };
      const all: readonly Fault[] = [{ fault: 'healthy', wrong: {}, startOnly: true }, ...faults];
      return all
        .filter(({ envs }) => envs === undefined || envs.includes(env))
        .flatMap(({ fault, wrong, startOnly = false }) =>
          (startOnly ? (['start'] as const) : (['start', 'middle'] as const)).map(when => ({
            ...{ env, fault, when, seed, healthy, wrong },
          })),
        );
    }),
  );
}
