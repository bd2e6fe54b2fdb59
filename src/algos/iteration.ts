/** What one round of training gives back. */

/** Something that happened in an iteration; `type` and fields are those of the run's events. */
export interface TrainEvent {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface IterationResult {
  /** By registry name. */
  readonly row: Record<string, number>;
  readonly events: TrainEvent[];
}
