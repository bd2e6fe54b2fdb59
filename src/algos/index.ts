/** Training: PPO, GRPO and cloning, their settings, whole runs, and policies to hold. */
export type { EpisodeEvaluation } from './agents/evaluate.ts';
export type {
  Algorithm,
  IterationResult,
  Learner,
  Opening,
  PolicyOpening,
  Progress,
  Restoring,
  Settings,
  Start,
  WhichCheckpoint,
} from './algorithm.ts';
export { registerAlgorithm } from './algorithms.ts';
export type { ClonePolicyConfig, ClonePolicySettings } from './clone/policy/settings.ts';
export type { CloneTextConfig, CloneTextSettings } from './clone/text/settings.ts';
export { ConfigError, TrainError } from './errors.ts';
export type { TrainEvent } from './events.ts';
export { createGrpoTrainer, type GrpoTrainer, type GrpoTrainerOptions } from './grpo/iteration.ts';
export { type GrpoConfig, type GrpoSettings, grpoSettings } from './grpo/settings.ts';
export type { TrainHooks, TrainProgress, TrainResult } from './hooks.ts';
export type {
  ActOptions,
  EvaluatePolicyOptions,
  Evaluation,
  Exported,
  Observation,
  Policy,
} from './policy.ts';
export type { PpoSnapshot } from './ppo/checkpoint.ts';
export { createPpoTrainer, type PpoTrainer, type PpoTrainerOptions } from './ppo/iteration.ts';
export { type PpoConfig, type PpoSettings, ppoSettings } from './ppo/settings.ts';
export {
  type CloneOptions,
  clone,
  type ForkOptions,
  fork,
  type OpenPolicyOptions,
  openPolicy,
  type ResumeOptions,
  resume,
  type TrainOptions,
  train,
} from './runs.ts';
export {
  describeSettings,
  refuseLiveChange,
  resolveSettings,
  settingsJsonSchema,
} from './settings/resolve.ts';
export { runKeys } from './settings/shared.ts';
export { type RunConfig, type SettingTable, setting, table } from './settings/spec.ts';
export * as values from './settings/values.ts';
export type { Subject } from './subject.ts';
export type { CompletionEvaluation, MeasuredEvaluation } from './text/evaluate.ts';
