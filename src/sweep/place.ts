/**
 * Where runs of a study happen. Three places keep one contract (test/sweep/support/place-contract.ts): processes of this
 * machine (`places/here.ts`), workers on a queue (`places/queue.ts`), and what a batch scheduler was told to start.
 */
import type { Objective, RunOutcome, StudySubject } from '../studies/schema.ts';
import type { WorkersView } from '../studies/workers-view.ts';

/**
 * A part of a run that is to be done: from wherever the run stands up to `until` steps. Doing it twice does nothing the
 * second time, because a run resumes to the same bits: a place may deliver it more than once.
 */
export interface RunJob {
  /** The run's id, the same for every part of it; with `until` it names the part. */
  readonly run: string;
  /** Of Keel: another version's bits are others. */
  readonly version: string;
  readonly subject: StudySubject;
  readonly config: Readonly<Record<string, unknown>>;
  readonly preset: Readonly<Record<string, unknown>>;
  readonly seed: number;
  /** Steps at which it pauses with a checkpoint; Infinity is not JSON: null goes to its end. */
  readonly until: number | null;
  readonly objective: Objective;
  /** Higher ones first. */
  readonly priority: number;
}

/** What a place tells while it works. */
export interface PlaceEvents {
  readonly onStarted?: (job: RunJob, worker: string) => void;
  /** A job was tried again: its process died, a machine went away. */
  readonly onRetried?: (job: RunJob, why: string) => void;
}

export interface Place {
  /** How many jobs it makes sense to have under way at once, now. */
  readonly slots: number;
  /**
   * Does a job, however often it must be begun. Rejects only where the place itself cannot go on; a run that cannot be
   * trained is an outcome with status `failed`. Aborted, it rejects with the signal's reason and leaves a run that can go on.
   */
  run(job: RunJob, signal?: AbortSignal): Promise<RunOutcome>;
  /** Who takes jobs and how many wait, as it was a moment ago; a place that knows no more than its events has none. */
  view?(): Pick<WorkersView, 'workers' | 'queue'>;
  close(): Promise<void>;
}
