/** A run in the registry's names: what the rules look at. Dialects make it. */
import type { KlSpec } from '../metrics/registry.ts';
import type { Fix } from './fixes.ts';
import type { KnownConfig, KnownSetting } from './known-settings.ts';
import type { Series } from './series.ts';

/** What a trainer's KL is, as the trainer has it; `unknown` where neither the log nor the trainer says. */
export interface KlMeaning extends Omit<KlSpec, 'aggregation' | 'direction' | 'estimator' | 'per'> {
  readonly estimator: KlSpec['estimator'] | 'unknown';
  readonly per: KlSpec['per'] | 'unknown';
  readonly aggregation:
    | 'rollout'
    | 'minibatches'
    | 'p99'
    | 'max'
    | 'last-epoch'
    | 'last-minibatch'
    | 'unknown';
  /** How many rows later than its update it is logged: 1 in SB3's tables. Taken out of `x` already. */
  readonly lag: number;
}

/**
 * One metric of a run. `x` of the series is the run's step. The KL that a trainer watches is `kl/step` (or `kl/ref`,
 * `kl/sampler`) whatever its estimator, and `kl` says which that is; only a second one in the same log is `kl/step_k1`
 * or `kl/step_k3`.
 */
export interface CanonicalSeries {
  /** The registry's id: `kl/step`, `episode/return` … */
  readonly id: string;
  /** The name in the log, for reports: `train/approx_kl`. */
  readonly theirs: string;
  readonly series: Series;
  readonly kl?: KlMeaning;
  /** Where its cells are empty from some step to the end of the log, though the log goes on. */
  readonly blank?: BlankEnd;
}

/** The empty end of a series in a table. */
export interface BlankEnd {
  readonly from: number;
  readonly rows: number;
  /** Rows of the table before it. */
  readonly before: number;
  readonly kind: 'null' | 'empty';
}

/**
 * What stands in for a KL that is not logged. A learning rate that follows the KL tells it: at its floor the KL stays
 * above twice the target, at its ceiling below half of it.
 */
export interface KlProxy {
  /** The name in the log, and the registry's id of that series. */
  readonly theirs: string;
  readonly id: string;
  readonly floor: number;
  readonly ceiling: number;
  /** The KL that the controller aims at, where known. */
  readonly target?: number;
  readonly meaning: string;
}

/** How to say a change in the user's own trainer: `PPO(..., learning_rate=1e-4)`. */
export interface Wording {
  /**
   * Changes to settings by their canonical names, as the user would type them. What the trainer has no setting for is
   * left out; undefined if nothing is left.
   */
  setting(changes: Partial<Record<KnownSetting, number | string>>): Fix | undefined;
  /** The name of a setting in this trainer, or undefined if it has none. */
  nameOf(setting: KnownSetting): string | undefined;
  /** Whether the algorithm has nothing of the kind, by any name: not even a plain sentence is of use. */
  lacks?(setting: KnownSetting): boolean;
}

/** One run, ready for the rules. */
export interface CanonicalRun {
  readonly path: string;
  /** The name of a dialect (`src/doctor/dialects/all.ts`): `stable-baselines3`, `cleanrl`, `verl` … or `unknown`. */
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
  /** Where the trainer logs no KL, what tells it. */
  readonly klProxy?: KlProxy;
  /** A crash or error text that came with the log, if any. */
  readonly error?: string;
}

/** Fewer values than this tell nothing of a course. */
const FEW_POINTS = 6;

/**
 * The series that says how well the run does its task: returns of episodes, or rewards of completions; where there is
 * neither, evaluations, and last how often it succeeds.
 */
export function objectiveOf(run: Pick<CanonicalRun, 'series' | 'kind'>): CanonicalSeries | undefined {
  const [first, second] =
    run.kind === 'language-model' ? ['reward/mean', 'episode/return'] : ['episode/return', 'reward/mean'];
  const there = [first, second, 'eval/return', 'episode/success'].flatMap(id => run.series.get(id) ?? []);
  // A column with next to nothing in it does not stand before one that tells how it went.
  return there.find(({ series }) => series.count >= FEW_POINTS) ?? there[0];
}
