/** The settings of a trainer that the doctor knows by a name of its own. Runs in a browser. */

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
  /** The upper bound of the clip, where it is apart from the lower. */
  readonly clipRangeHigh?: number;
  readonly targetKl?: number;
  /** The hard bound on the KL of an update, of a trainer that has one; infinite where it is switched off. */
  readonly guard?: number;
  /** Such bounds on single states: of all but one in a hundred, and of every one. */
  readonly guardP99?: number;
  readonly guardMax?: number;
  readonly entropyCoef?: number;
  /** Continuous actions: the log of the std at the start, and its upper bound. */
  readonly logStdInitial?: number;
  readonly logStdMax?: number;
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
  /** Samples of one update, all environments together. */
  readonly samplesPerUpdate?: number;
  /** What rewards are multiplied by before the learner gets them. */
  readonly rewardScale?: number;
}

export type KnownSetting = keyof KnownConfig;
