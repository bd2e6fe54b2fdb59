/**
 * A study's data: what is searched, what a trial and its runs came to. Runs in a browser: nothing here may import a Node
 * module.
 *
 * ```
 * studies/<name>/
 *   study.json     the study, whole: what was asked for, resolved; written once
 *   journal.log    what happened, one JSON line each, in Optuna's journal format: the truth
 *   runs/<id>/     a run for each trial and seed, as everywhere
 * ```
 */

/** A value that a setting may have. */
export type ParamValue = string | number | boolean | null | readonly (string | number | boolean | null)[];

/** Which values one setting may take. `log` draws evenly in the logarithm; `step` in whole multiples from `low` on. */
export type Domain =
  | { readonly kind: 'choice'; readonly values: readonly ParamValue[] }
  | {
      readonly kind: 'float';
      readonly low: number;
      readonly high: number;
      readonly log: boolean;
      readonly step?: number;
    }
  | {
      readonly kind: 'int';
      readonly low: number;
      readonly high: number;
      readonly log: boolean;
      readonly step: number;
    };

/** One axis of the search. */
export interface Axis {
  /** A setting (`learningRate`), or an option of the environment or task (`envOptions.size`). */
  readonly key: string;
  readonly domain: Domain;
  /** It is only searched where another axis has one of these values; elsewhere the setting is left alone. */
  readonly when?: { readonly key: string; readonly in: readonly ParamValue[] };
}

/** All axes; one that depends on another comes after it. */
export type Space = readonly Axis[];

/** The values of a trial; axes whose condition does not hold are absent. */
export type Params = Readonly<Record<string, ParamValue>>;

export type Direction = 'maximize' | 'minimize';
export type Aggregate = 'iqm' | 'mean' | 'median' | 'min' | 'max';

/** What is searched for. */
export interface Objective {
  /** `score`: the mean return by which checkpoints are scored (an evaluation's, else of the last 100 episodes); or a metric. */
  readonly metric: string;
  readonly direction: Direction;
  /** Of a metric's values over a run: the last tenth's mean, the best, the mean of all (area under the curve). */
  readonly of: 'last' | 'best' | 'mean';
  /** Over the seeds of a trial. */
  readonly over: Aggregate;
}

export const methods = ['grid', 'random', 'quasi-random', 'tpe'] as const;
export type Method = (typeof methods)[number];

/** Asynchronous successive halving: a trial's runs pause at rungs, and only the best share of each goes on. */
export interface Halving {
  /** Share that goes on is 1 / eta. */
  readonly eta: number;
  /** Steps of the first rung; the next are eta times the one before. */
  readonly minSteps: number;
}

/** What a trial must keep to, or it cannot win. */
export interface Constraints {
  /** The doctor does not call any of its runs sick. */
  readonly healthy: boolean;
  /** No update of any of its runs has a larger `kl/step`; null for no such bound. */
  readonly klMax: number | null;
}

/** What the runs of a study have in common. */
export interface StudySubject {
  readonly kind: 'env' | 'task';
  /** An id, or the absolute path of a file. */
  readonly reference: string;
  /** Of a file: the SHA-256 of its content when the study was made. */
  readonly sha256: string | null;
  readonly options: Readonly<Record<string, unknown>>;
}

/** `study.json`. */
export interface Study {
  readonly kind: 'keel-study';
  readonly schema: 1;
  readonly name: string;
  /** Of Keel, that made it. */
  readonly version: string;
  readonly createdAt: string;
  readonly subject: StudySubject;
  /** Settings of all runs, over the preset. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The settings below those: resolved when the study was made, so that another version's do not slip in. */
  readonly preset: Readonly<Record<string, unknown>>;
  readonly space: Space;
  readonly method: Method;
  readonly halving: Halving | null;
  /** Trials at the most. */
  readonly trials: number;
  /** Steps over all runs at the most; null for no such budget. */
  readonly budgetSteps: number | null;
  /** The seeds of each trial's runs: those that tune. */
  readonly seeds: readonly number[];
  /** Where the search's own randomness comes from. */
  readonly searchSeed: number;
  readonly objective: Objective;
  readonly constraints: Constraints;
}

/** What one run came to, up to where it was to go. Small: it travels through the journal and a queue. */
export interface RunOutcome {
  readonly run: string;
  readonly seed: number;
  /** `done`: it did all that was asked, `failed`: it cannot. */
  readonly status: 'done' | 'failed';
  readonly step: number;
  /** Whether the run itself is at its end; a paused one can go on. */
  readonly finished: boolean;
  /** The objective of this run alone; null where there is none (no episode ended). */
  readonly value: number | null;
  readonly verdict: 'healthy' | 'watch' | 'sick' | 'cannot-tell' | null;
  readonly rootCause: string | null;
  readonly klMedian: number | null;
  readonly klLargest: number | null;
  readonly seconds: number;
  /** SHA-256 of the weights at `step`: the same run has the same, wherever it ran. */
  readonly weights: string | null;
  /** Which machine and process did it. */
  readonly worker: string;
  /** Why it failed, in a sentence. */
  readonly problem: string | null;
}

export type TrialState = 'waiting' | 'running' | 'complete' | 'pruned' | 'failed';

/** A trial as the journal tells it. */
export interface Trial {
  readonly number: number;
  readonly state: TrialState;
  readonly params: Params;
  /** `search`: one of the search; others train the winner or the default on fresh seeds. */
  readonly purpose: 'search' | 'confirm-winner' | 'confirm-default';
  readonly seeds: readonly number[];
  /** Aggregated over its seeds; null until it is over. */
  readonly value: number | null;
  /** At the rungs that it has reached: steps, and the aggregate there. */
  readonly rungs: readonly { readonly steps: number; readonly value: number }[];
  /** The newest outcome of each seed, by seed. */
  readonly outcomes: readonly RunOutcome[];
  /** Why it cannot win, in words; empty where it can. */
  readonly violations: readonly string[];
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}
