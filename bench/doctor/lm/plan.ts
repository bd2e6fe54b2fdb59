/**
 * The runs of the language-model matrix: GRPO on small text tasks, healthy and with each fault, four seeds. Settings are those
 * that people use with TRL and verl (no guard), so that the logs look like theirs.
 *
 * Rules may be tuned on seeds 0 and 1 of arithmetic; the other seeds, and the other tasks, are held out.
 */
import type { GrpoSettings } from '../../../src/algos/grpo/settings.ts';
import type { RootCause } from '../../../src/doctor/index.ts';
import type { LmTampering } from './faults.ts';
import { type LmTaskName, lmTasks } from './tasks.ts';

export const lmSpellings = ['keel', 'trl', 'verl'] as const;
export type LmSpelling = (typeof lmSpellings)[number];

/** One run to train. */
export interface LmJob {
  readonly name: string;
  readonly task: LmTaskName;
  readonly seed: number;
  /** null for a healthy run. */
  readonly fault: RootCause | null;
  readonly variant: string;
  readonly config: GrpoSettings;
  readonly tampering: LmTampering | null;
  /** The trainers in which it can happen, where not in all. */
  readonly spellings?: readonly LmSpelling[];
  /** It changes nothing that any of them logs: no reader can tell it from a healthy run. */
  readonly traceless?: boolean;
}

const twoSeeds: readonly number[] = [0, 2];

interface Variant {
  readonly variant: string;
  readonly fault: RootCause | null;
  readonly seeds?: readonly number[];
  readonly config?: (task: LmTaskName, seed: number) => GrpoSettings;
  readonly tampering?: (task: LmTaskName, seed: number) => LmTampering;
  readonly spellings?: readonly LmSpelling[];
  readonly traceless?: boolean;
}

const BATCH = 128;
const iterations = (count: number): number => count * BATCH;

const usual: GrpoSettings = {
  promptsPerIteration: 16,
  groupSize: 8,
  minibatchSize: 64,
  epochs: 2,
  learningRate: 1e-4,
  learningRateSchedule: 'constant',
  warmupShare: 0.05,
  klRefCoef: 0.02,
  guard: null,
  threads: 1,
  microbatchSize: 64,
  // All of them: what the sampler gave each token is read there.
  logGroups: 64,
  steps: iterations(56),
};

/** How bad, by seed, so that one fault is not always of one size. */
const bySeed =
  <T>(...values: readonly [T, T, T, T]) =>
  (seed: number): T =>
    values[seed % 4]!;

/** Tokens that cut off about half of the right answers, the end included. */
const tooShort: Readonly<Record<LmTaskName, number>> = { arithmetic: 2, sort: 4, format: 8 };
/** A character that good answers seldom begin with. */
const favourite: Readonly<Record<LmTaskName, string>> = { arithmetic: '7', sort: 'f', format: '9' };
/** What nothing that the model can write ends in. */
const UNWRITABLE = '!';

const variants: readonly Variant[] = [
  { variant: 'healthy', fault: null },
  {
    variant: 'lr-high',
    fault: 'learning-rate-too-high',
    config: (_, seed) => ({ learningRate: bySeed(6e-3, 2e-2, 1e-2, 4e-3)(seed) }),
  },
  {
    variant: 'hackable',
    fault: 'reward-hacking',
    tampering: (task, seed) => ({
      kind: 'hackable',
      character: favourite[task],
      worth: bySeed(1.5, 2.5, 2, 1.8)(seed),
    }),
  },
  {
    variant: 'length-reward',
    fault: 'length-explosion',
    tampering: (_, seed) => ({ kind: 'length-reward', perCharacter: bySeed(0.15, 0.3, 0.2, 0.12)(seed) }),
  },
  {
    variant: 'lr-low',
    fault: 'learning-rate-too-low',
    config: (_, seed) => ({ learningRate: bySeed(1e-8, 1e-7, 1e-8, 3e-8)(seed) }),
  },
  {
    variant: 'reference-strong',
    fault: 'reference-too-strong',
    config: (_, seed) => ({ klRefCoef: bySeed(5, 20, 10, 3)(seed) }),
  },
  {
    variant: 'kl-sign',
    fault: 'kl-sign-wrong',
    tampering: (_, seed) => ({ kind: 'kl-sign', coef: bySeed(1, 3, 2, 1.5)(seed) }),
  },
  {
    variant: 'alone',
    fault: 'group-of-one',
    // Keel refuses it, TRL does too.
    spellings: ['verl'],
    // Where most rewards are below 0, nearly all that was written becomes less likely.
    tampering: (_, seed) => ({ kind: 'alone', offset: bySeed(-1.5, -1, -2, -1.2)(seed) }),
  },
  {
    variant: 'no-spread-cold',
    fault: 'degenerate-groups',
    config: (_, seed) => ({ temperature: bySeed(0.02, 0.05, 0.03, 0.02)(seed) }),
  },
  {
    variant: 'no-spread-prompt',
    fault: 'degenerate-groups',
    seeds: twoSeeds,
    tampering: () => ({ kind: 'prompt-reward' }),
  },
  {
    variant: 'truncation',
    fault: 'truncation-zeroes-reward',
    config: task => ({ maxNewTokens: tooShort[task] }),
    tampering: task => ({ kind: 'cut-is-nothing', maxNewTokens: tooShort[task] }),
  },
  {
    variant: 'stale',
    fault: 'stale-rollouts',
    tampering: (_, seed) => ({ kind: 'stale', updates: bySeed(16, 24, 20, 12)(seed) }),
  },
  {
    variant: 'other-temperature',
    fault: 'sampler-mismatch',
    tampering: (_, seed) => ({ kind: 'other-temperature', temperature: bySeed(1.6, 0.5, 1.4, 0.6)(seed) }),
  },
  {
    variant: 'biased-ratio',
    fault: 'importance-ratio-biased',
    tampering: (_, seed) => ({ kind: 'biased-ratio', temperature: bySeed(1.5, 0.6, 1.3, 0.7)(seed) }),
  },
  {
    variant: 'mask-padding',
    fault: 'wrong-mask',
    seeds: twoSeeds,
    tampering: () => ({ kind: 'mask', of: 'padding' }),
  },
  {
    variant: 'mask-end',
    fault: 'wrong-mask',
    seeds: twoSeeds,
    traceless: true,
    tampering: () => ({ kind: 'mask', of: 'end' }),
  },
  {
    variant: 'clip-tiny',
    fault: 'clip-range-too-small',
    config: (_, seed) => {
      const clip = bySeed(1e-5, 1e-4, 1e-5, 3e-5)(seed);
      return { clipLow: clip, clipHigh: clip };
    },
  },
  {
    variant: 'clip-huge',
    fault: 'clip-range-too-large',
    config: (_, seed) => ({
      clipLow: 1,
      clipHigh: bySeed(100, 30, 50, 10)(seed),
      epochs: 6,
      learningRate: 5e-4,
      steps: iterations(40),
    }),
  },
  {
    variant: 'entropy-bonus',
    fault: 'entropy-bonus-too-large',
    config: (_, seed) => ({ entropyCoef: bySeed(0.3, 1, 0.5, 0.2)(seed) }),
  },
  {
    variant: 'entropy-sign',
    fault: 'entropy-collapse',
    // Keel refuses a negative weight.
    spellings: ['trl', 'verl'],
    config: () => ({ entropyCoef: 1e-3 }),
    tampering: (_, seed) => ({ kind: 'entropy-sign', coef: bySeed(0.5, 1, 0.7, 0.4)(seed) }),
  },
  {
    variant: 'strict-form',
    fault: 'malformed-outputs',
    // verl tells the score alone, and one that is always the same has many causes.
    spellings: ['keel', 'trl'],
    tampering: () => ({ kind: 'strict', suffix: UNWRITABLE }),
  },
  {
    variant: 'non-finite',
    fault: 'non-finite',
    tampering: (_, seed) => ({ kind: 'non-finite', from: bySeed(30, 40, 20, 35)(seed) }),
  },
  { variant: 'no-reward-noise', fault: 'no-reward-signal', tampering: () => ({ kind: 'noise-reward' }) },
  {
    variant: 'no-reward-zero',
    fault: 'no-reward-signal',
    seeds: twoSeeds,
    tampering: () => ({ kind: 'constant-reward', value: 0 }),
  },
  {
    variant: 'epochs',
    fault: 'too-many-epochs',
    config: (_, seed) => ({ epochs: bySeed(24, 32, 28, 24)(seed), steps: iterations(24) }),
  },
  // ---- healthy in other ways; without a reference among them, which did no harm in so few updates
  // One gradient step a batch: the ratio is always 1, the clip ratio 0 and the loss nearly so.
  {
    variant: 'healthy-one-step',
    fault: null,
    seeds: twoSeeds,
    config: () => ({ epochs: 1, minibatchSize: null, learningRate: 3e-4 }),
  },
  {
    variant: 'healthy-no-reference',
    fault: null,
    seeds: twoSeeds,
    config: () => ({ reference: 'none', klRefCoef: 0 }),
  },
  {
    variant: 'healthy-annealed',
    fault: null,
    seeds: twoSeeds,
    config: () => ({ learningRateSchedule: 'linear', learningRate: 2e-4 }),
  },
  { variant: 'healthy-short', fault: null, seeds: twoSeeds, config: () => ({ steps: iterations(30) }) },
  { variant: 'healthy-slower', fault: null, seeds: twoSeeds, config: () => ({ learningRate: 5e-5 }) },
  {
    variant: 'healthy-small-groups',
    fault: null,
    seeds: twoSeeds,
    config: () => ({ groupSize: 4, promptsPerIteration: 32 }),
  },
];

/** Every run: what rules are tuned on first, then a seed of each task that is held out, then the further seeds. */
export function lmJobs(): LmJob[] {
  const all = variants.flatMap(variant =>
    lmTasks.flatMap(task => (variant.seeds ?? [0, 1, 2, 3]).map(seed => jobOf(variant, task, seed))),
  );
  const late = ({ task, seed }: LmJob): number => seed + { arithmetic: 0, sort: 1.5, format: 2.7 }[task];
  return all.sort((a, b) => late(a) - late(b));
}

function jobOf(v: Variant, task: LmTaskName, seed: number): LmJob {
  return {
    name: `${task}-${v.variant}-${seed}`,
    task,
    seed,
    fault: v.fault,
    variant: v.variant,
    config: { ...usual, ...v.config?.(task, seed), seed },
    tampering: v.tampering?.(task, seed) ?? null,
    ...(v.spellings && { spellings: v.spellings }),
    ...(v.traceless && { traceless: true }),
  };
}
