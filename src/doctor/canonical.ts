/** A run in the registry's names: what the rules look at. Dialects make it. */
import type { KlSpec } from '../metrics/registry.ts';
import type { Series } from './series.ts';

/** What a trainer's KL is; `aggregation` and `lag` as the trainer has them, which Keel's own never are. */
export interface KlMeaning extends Omit<KlSpec, 'aggregation' | 'direction'> {
  readonly aggregation: 'rollout' | 'minibatches' | 'last-epoch' | 'last-minibatch' | 'unknown';
  /** How many rows later than its update it is logged: 1 in SB3's tables. */
  readonly lag: number;
}

/** One metric of a run. `x` of the series is the run's step. */
export interface CanonicalSeries {
  /** The registry's id: `kl/step`, `episode/return` … */
  readonly id: string;
  /** The name in the log, for reports: `train/approx_kl`. */
  readonly theirs: string;
  readonly series: Series;
  readonly kl?: KlMeaning;
}

/** Settings that rules ask for, where the log or a file beside it says them. */
export interface KnownConfig {
  readonly learningRate?: number;
  readonly learningRateSchedule?: string;
  readonly epochs?: number;
  readonly minibatchSize?: number;
  readonly stepsPerRollout?: number;
  readonly envs?: number;
  readonly totalSteps?: number;
  readonly clipRange?: number;
  readonly targetKl?: number;
  readonly entropyCoef?: number;
  readonly valueCoef?: number;
  readonly gamma?: number;
  readonly maxGradNorm?: number;
  /** Language models: weight of the KL to the reference. */
  readonly refCoef?: number;
  readonly groupSize?: number;
  readonly temperature?: number;
  readonly maxCompletionLength?: number;
  /** The environment or the task, by name. */
  readonly task?: string;
}

/** How to say a change in the user's own trainer: `PPO(..., learning_rate=1e-4)`. */
export interface Wording {
  /** Changes to settings by their canonical names, with the new value as a person would type it. */
  setting(changes: Partial<Record<keyof KnownConfig, number | string>>): string;
  /** The name of a setting in this trainer, or undefined if it has none. */
  nameOf(setting: keyof KnownConfig): string | undefined;
}

/** One run, ready for the rules. */
export interface CanonicalRun {
  readonly path: string;
  /** `stable-baselines3`, `sb3-contrib`, `cleanrl`, `rllib`, `trl-grpo`, `trl-ppo`, `verl`, `keel` … or `unknown`. */
  readonly trainer: string;
  /** Whether it is a language model that is tuned (rewards per completion), or an agent in an environment. */
  readonly kind: 'classic' | 'language-model';
  /** What `x` counts: `steps`, `iterations`, `updates`, `episodes`, `rows`. */
  readonly unit: string;
  readonly series: ReadonlyMap<string, CanonicalSeries>;
  readonly config: KnownConfig;
  readonly wording: Wording;
  /** Action space, where it can be told from the log (a std, a negative entropy, a config). */
  readonly actions: 'discrete' | 'continuous' | 'tokens' | 'unknown';
  /** What can be trusted about entropy: its sign was mended so that `policy/entropy` is +H; its maximum if known. */
  readonly maxEntropy?: number;
  readonly restarts: readonly number[];
  readonly notes: readonly string[];
  /** Names in the log that nobody understood. */
  readonly unknown: readonly string[];
  readonly unfinished: boolean;
  /** A crash or error text that came with the log, if any. */
  readonly error?: string;
}
