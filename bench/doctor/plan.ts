/**
 * The runs of the fault-injection matrix: faults x environments x seeds, and healthy ones. Settings are those that people
 * use with other trainers (no guard, no normalisation), so that the logs look like theirs.
 *
 * Rules may be tuned on seeds 0 and 1; those from 2 on are held out.
 */
import type { PpoSettings } from '../../src/algos/ppo/settings.ts';
import type { RootCause } from '../../src/doctor/index.ts';
import type { Tampering } from './tamper.ts';

export type EnvId = 'CartPole-v1' | 'Pendulum-v1' | 'Acrobot-v1';

/** One run to train. */
export interface Job {
  readonly name: string;
  readonly env: EnvId;
  readonly seed: number;
  /** null for a healthy run. */
  readonly fault: RootCause | null;
  readonly variant: string;
  readonly config: PpoSettings;
  readonly tampering: Tampering | null;
  /** The action that a frozen reference, which the log does not show, is nearly certain of. */
  readonly pull: number | null;
  /** From `at` iterations on, rewards are multiplied by `factor`. With `restart` the log shows that it was resumed. */
  readonly rescale: { readonly at: number; readonly factor: number; readonly restart: boolean } | null;
}

type Values<T> = readonly [T, T, T];

interface Variant {
  readonly variant: string;
  readonly fault: RootCause | null;
  readonly seeds: readonly number[];
  readonly envs?: readonly EnvId[];
  readonly config?: (env: EnvId, seed: number) => PpoSettings;
  readonly tampering?: (env: EnvId, seed: number) => Tampering;
  readonly pull?: (env: EnvId, seed: number) => number;
  readonly rescale?: (env: EnvId, seed: number) => { at: number; factor: number; restart: boolean };
  /** Keel's own preset below the config, instead of the settings of other trainers. */
  readonly preset?: boolean;
}

const allEnvs: readonly EnvId[] = ['CartPole-v1', 'Pendulum-v1', 'Acrobot-v1'];
const discrete: readonly EnvId[] = ['CartPole-v1', 'Acrobot-v1'];
const threeSeeds = [0, 1, 2];

/** What runs of other trainers use. */
const usual: Readonly<Record<EnvId, PpoSettings>> = {
  'CartPole-v1': {
    envs: 8,
    stepsPerRollout: 128,
    minibatchSize: 256,
    epochs: 10,
    gamma: 0.98,
    gaeLambda: 0.8,
    learningRate: 1e-3,
    guard: null,
    steps: 60_416,
  },
  'Pendulum-v1': {
    envs: 4,
    stepsPerRollout: 1024,
    minibatchSize: 256,
    epochs: 10,
    gamma: 0.9,
    gaeLambda: 0.95,
    learningRate: 1e-3,
    guard: null,
    steps: 102_400,
  },
  'Acrobot-v1': {
    envs: 8,
    stepsPerRollout: 256,
    minibatchSize: 256,
    epochs: 4,
    gamma: 0.99,
    gaeLambda: 0.94,
    learningRate: 1e-3,
    guard: null,
    steps: 81_920,
  },
};

/** How bad, by seed, so that one fault is not always of one size. */
const bySeed =
  <T>(...values: Values<T>) =>
  (seed: number): T =>
    values[seed % 3]!;

const rates: Readonly<Record<EnvId, (seed: number) => number>> = {
  'CartPole-v1': bySeed(0.03, 0.1, 0.05),
  'Pendulum-v1': bySeed(0.03, 0.1, 0.05),
  'Acrobot-v1': bySeed(0.05, 0.1, 0.03),
};

/** The iteration in which something changes, for the faults that begin in mid-run. */
const middle: Readonly<Record<EnvId, number>> = { 'CartPole-v1': 40, 'Pendulum-v1': 16, 'Acrobot-v1': 22 };
const samples: Readonly<Record<EnvId, number>> = {
  'CartPole-v1': 1024,
  'Pendulum-v1': 4096,
  'Acrobot-v1': 2048,
};

const pulled = (coef: number): PpoSettings => ({
  reference: 'frozen',
  klRefCoefInitial: coef,
  klRefCoefFinal: coef,
});

const variants: readonly Variant[] = [
  // CartPole's usual rate in healthy runs of others is 3e-4.
  {
    variant: 'healthy',
    fault: null,
    seeds: [0, 1, 2, 3],
    config: env => (env === 'CartPole-v1' ? { learningRate: 3e-4 } : {}),
  },
  {
    variant: 'lr-high',
    fault: 'learning-rate-too-high',
    seeds: threeSeeds,
    config: (env, seed) => ({ learningRate: rates[env](seed) }),
  },
  {
    variant: 'lr-low',
    fault: 'learning-rate-too-low',
    seeds: threeSeeds,
    config: (_, seed) => ({ learningRate: bySeed(1e-7, 3e-7, 1e-7)(seed) }),
  },
  {
    variant: 'clip-wide',
    fault: 'clip-range-too-large',
    seeds: threeSeeds,
    config: (_, seed) => ({ clipRange: bySeed(10, 2, 5)(seed), epochs: 20, minibatchSize: 128 }),
  },
  {
    variant: 'target-kl-tight',
    fault: 'target-kl-too-tight',
    seeds: threeSeeds,
    config: (_, seed) => ({ targetKl: bySeed(1e-6, 1e-5, 1e-6)(seed) }),
  },
  // CleanRL looks at its target after a whole epoch, so that one epoch is always done.
  {
    variant: 'target-kl-epoch',
    fault: 'target-kl-too-tight',
    seeds: threeSeeds,
    config: (_, seed) => ({
      targetKl: bySeed(1e-6, 1e-5, 1e-6)(seed),
      targetKlFactor: 1,
      targetKlPer: 'epoch',
    }),
  },
  {
    variant: 'reward-x1000',
    fault: 'reward-scale-too-large',
    seeds: threeSeeds,
    config: (_, seed) => ({ rewardScale: bySeed(1000, 3000, 1000)(seed) }),
  },
  {
    variant: 'rescaled-x10',
    fault: 'reward-scale-changed',
    seeds: threeSeeds,
    config: env => ({
      ...(env === 'CartPole-v1' ? { learningRate: 3e-4 } : {}),
      steps: 2 * middle[env] * samples[env],
    }),
    rescale: (env, seed) => ({ at: middle[env], factor: bySeed(10, 20, 10)(seed), restart: seed !== 1 }),
  },
  {
    variant: 'no-reward-zero',
    fault: 'no-reward-signal',
    seeds: threeSeeds,
    tampering: () => ({ kind: 'constant-reward', value: 0 }),
  },
  {
    variant: 'no-reward-noise',
    fault: 'no-reward-signal',
    seeds: [0, 2],
    tampering: () => ({ kind: 'noise-reward' }),
  },
  {
    variant: 'critic-off',
    fault: 'critic-not-learning',
    seeds: threeSeeds,
    config: () => ({ valueCoef: 0 }),
  },
  {
    variant: 'entropy-bonus',
    fault: 'entropy-bonus-too-large',
    seeds: threeSeeds,
    config: (_, seed) => ({ entropyCoef: bySeed(1, 0.3, 0.5)(seed) }),
  },
  // A narrow policy from the start.
  {
    variant: 'collapse-std',
    fault: 'entropy-collapse',
    seeds: threeSeeds,
    envs: ['Pendulum-v1'],
    config: (_, seed) => ({ logStdInitial: bySeed(-4, -3.5, -4.5)(seed), logStdMax: -3 }),
  },
  // No setting narrows a discrete policy, as a negative entropy bonus does elsewhere: a pull to one action does.
  {
    variant: 'collapse-pull',
    fault: 'entropy-collapse',
    seeds: threeSeeds,
    envs: discrete,
    config: (_, seed) => pulled(bySeed(0.3, 1, 0.5)(seed)),
    pull: (_, seed) => seed % 2,
  },
  {
    variant: 'infinite-reward',
    fault: 'non-finite',
    seeds: threeSeeds,
    tampering: (env, seed) => ({
      kind: 'infinite-reward',
      from: Math.round(middle[env] * (0.5 + 0.1 * seed)),
    }),
  },
  {
    variant: 'growing-observations',
    fault: 'non-finite',
    seeds: [0, 2],
    tampering: (env, seed) => ({
      kind: 'growing-observations',
      from: Math.round(middle[env] * (0.6 + 0.1 * seed)),
    }),
  },
  {
    variant: 'epochs',
    fault: 'too-many-epochs',
    seeds: threeSeeds,
    config: (env, seed) => ({
      epochs: bySeed(80, 100, 80)(seed),
      minibatchSize: 64,
      steps: { 'CartPole-v1': 40_960, 'Pendulum-v1': 57_344, 'Acrobot-v1': 49_152 }[env],
    }),
  },
  {
    variant: 'rescaled-x0.1',
    fault: 'reward-scale-changed',
    seeds: [0, 2],
    config: env => ({
      ...(env === 'CartPole-v1' ? { learningRate: 3e-4 } : {}),
      steps: 2 * middle[env] * samples[env],
    }),
    rescale: (env, seed) => ({ at: middle[env], factor: 0.1, restart: seed === 0 }),
  },
  // ---- healthy in other ways
  {
    variant: 'healthy-slower',
    fault: null,
    seeds: [0, 2],
    config: env => ({ learningRate: env === 'CartPole-v1' ? 2e-4 : 4e-4 }),
  },
  {
    variant: 'healthy-faster',
    fault: null,
    seeds: [0, 2],
    config: env => ({ learningRate: { 'CartPole-v1': 1e-3, 'Pendulum-v1': 2e-3, 'Acrobot-v1': 2e-3 }[env] }),
  },
  {
    variant: 'healthy-annealed',
    fault: null,
    seeds: [0, 2],
    config: () => ({ learningRateSchedule: 'linear' }),
  },
  {
    variant: 'healthy-normalised',
    fault: null,
    seeds: [0, 2],
    config: () => ({ normaliseObservations: true, normaliseRewards: true }),
  },
  {
    variant: 'healthy-short',
    fault: null,
    seeds: [0, 2],
    config: env => ({ steps: 20 * samples[env] }),
  },
  {
    variant: 'healthy-guarded',
    fault: null,
    seeds: [0, 2],
    config: () => ({ guard: 0.05 }),
  },
  { variant: 'healthy-preset', fault: null, seeds: [0, 2], preset: true },
];

/** Every run, all faults of seed 0 first. `preset` gives Keel's own settings of an environment. */
export function jobs(preset: (env: EnvId) => PpoSettings): Job[] {
  const all = variants.flatMap(variant =>
    (variant.envs ?? allEnvs).flatMap(env => variant.seeds.map(seed => jobOf(variant, env, seed, preset))),
  );
  return all.sort((a, b) => a.seed - b.seed);
}

function jobOf(v: Variant, env: EnvId, seed: number, preset: (env: EnvId) => PpoSettings): Job {
  return {
    name: `${env.split('-')[0].toLowerCase()}-${v.variant}-${seed}`,
    env,
    seed,
    fault: v.fault,
    variant: v.variant,
    config: { ...(v.preset ? preset(env) : usual[env]), ...v.config?.(env, seed), seed },
    tampering: v.tampering?.(env, seed) ?? null,
    pull: v.pull?.(env, seed) ?? null,
    rescale: v.rescale?.(env, seed) ?? null,
  };
}
