/** What the server tells of studies; `api.ts` has the rest. */
import type {
  Constraints,
  Halving,
  Method,
  Objective,
  RunOutcome,
  Space,
  Trial,
  TrialState,
} from '../studies/schema.ts';
import type { Confirmation } from '../studies/summary.ts';
import type { WorkersView } from '../studies/workers-view.ts';

/** One study in the list. */
export interface StudyOverview {
  readonly id: string;
  readonly name: string;
  readonly root: string;
  /** `quiet`: it is not at its end, and nobody has written to it lately. */
  readonly state: 'running' | 'finished' | 'quiet' | 'unreadable';
  /** The environment or the task, by its name. */
  readonly subject: string;
  readonly method: Method | null;
  readonly objective: Objective | null;
  /** Of the search; those that confirm its winner are not counted. */
  readonly counts: Readonly<Record<TrialState, number>>;
  /** Trials at the most. */
  readonly trials: number;
  /** Over all runs of the search. */
  readonly steps: number;
  readonly budgetSteps: number | null;
  /** The best trial that may win. */
  readonly best: { readonly trial: number; readonly value: number } | null;
  readonly startedAt: number | null;
  /** When its journal was last written to. */
  readonly updatedAt: number;
  /** What is wrong with reading it, as a sentence. */
  readonly problem: string | null;
  /** Another one when the study or its journal has changed. */
  readonly version: string;
  /** When its conductor last said who works on it. */
  readonly workersAt: number | null;
}

export interface StudyList {
  readonly studies: readonly StudyOverview[];
}

/** What a trial's run came to. `id` is what `/api/runs` has it under, if it is among the runs here. */
export interface StudyRun
  extends Pick<
    RunOutcome,
    | 'run'
    | 'seed'
    | 'status'
    | 'step'
    | 'finished'
    | 'value'
    | 'verdict'
    | 'rootCause'
    | 'klMedian'
    | 'klLargest'
    | 'seconds'
    | 'worker'
    | 'problem'
  > {
  readonly id: string | null;
}

export interface StudyTrial extends Omit<Trial, 'outcomes'> {
  readonly runs: readonly StudyRun[];
  /** Of the seeds that have come to nothing yet: their runs may be under way. */
  readonly coming: readonly { readonly seed: number; readonly id: string | null }[];
}

/** How much of the objective's differences each axis explains; none while there are too few trials to say. */
export interface StudyImportance {
  /** Most important first; the shares are of the whole, each from 0 to 1. */
  readonly axes: readonly { readonly key: string; readonly share: number }[];
  /** Trials that it was reckoned from, and how many are needed. */
  readonly trials: number;
  readonly needed: number;
}

export interface StudyAnswer {
  readonly overview: StudyOverview;
  readonly space: Space;
  readonly seeds: readonly number[];
  readonly halving: Halving | null;
  readonly constraints: Constraints | null;
  /** By number. Null, as are importance and confirmation, where they are those of the version that was named. */
  readonly trials: readonly StudyTrial[] | null;
  readonly importance: StudyImportance | null;
  /** The winner and the default on fresh seeds, if any were trained. Null, too, where the trials are. */
  readonly confirmation: Confirmation | null;
  /** What the conductor said last, at `overview.workersAt`. */
  readonly workers: WorkersView | null;
}
