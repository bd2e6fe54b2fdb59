/** Ways to watch a run, to stop it, and to know what came of it. */

import type { RunConfig } from '../settings/spec.ts';
import type { Advisor } from './autopilot/advice.ts';
import type { Reached } from './evaluation.ts';
import type { TrainEvent } from './events.ts';

/** How far a run is, for whoever watches it. */
export interface TrainProgress {
  readonly id: string;
  readonly dir: string;
  /** What it learns in, by its id, and what its steps are called. */
  readonly subject: string;
  readonly unit: string;
  readonly config: RunConfig;
  readonly step: number;
  readonly totalSteps: number;
  /** What is recorded to be looked at, if anything: the page's tab of that name shows it. */
  readonly recorded: string | undefined;
}

/** Ways to watch a run and to stop it. */
export interface TrainHooks {
  /** When the run is on disk and its programs are ready, before the first iteration, which waits for it. */
  onStart?: (progress: TrainProgress) => unknown;
  /** After each iteration's row is on disk. */
  onRow?: (row: Readonly<Record<string, number>>, progress: TrainProgress) => void;
  /** What happened, checkpoints included; `message` is the sentence of the run's events. */
  onEvent?: (event: TrainEvent & { step: number; message: string }) => void;
  /**
   * Asked where a new run fails before its first iteration is done: true deletes its directory, in which there is nothing
   * but why. Unless given, it stays.
   */
  discardsFailedStart?: () => boolean;
  /** Stops after the iteration under way, with a checkpoint. */
  signal?: AbortSignal;
  /** Who judges a run with `autopilot`; `train`, `resume` and `fork` of the package bring the doctor. */
  advisor?: Advisor;
}

/** What a run has come to. */
export interface TrainResult {
  readonly id: string;
  readonly dir: string;
  readonly status: 'finished' | 'stopped';
  readonly step: number;
  readonly lastRow: Readonly<Record<string, number>> | undefined;
  /** Of a run that ended at its `stopAt`: the return that did it. */
  readonly reached?: Reached;
  /** Of a policy that was cloned: what each demonstrator's play is worth. */
  readonly demonstrators?: readonly { readonly name: string; readonly rewardMean: number }[];
}
