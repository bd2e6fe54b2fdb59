/** Training: PPO, its config, whole runs, evaluation and export. */
export { type ActorCritic, actorCritic } from './actor-critic.ts';
export { type CloneTrainer, createCloneTrainer } from './clone.ts';
export { type CloneOptions, type CloneResult, clone } from './clone-policy.ts';
export { type EvaluateOptions, type Evaluation, evaluatePolicy } from './evaluate.ts';
export { type CompleteOptions, completer, evaluateText, type TextEvaluation } from './evaluate-text.ts';
export { policyGraph } from './export.ts';
export type { CloneConfig, CloneSettings } from './grpo/clone-config.ts';
export type { GrpoConfig, GrpoSettings } from './grpo/config.ts';
export { createGrpoTrainer, type GrpoTrainer } from './grpo.ts';
export type { TrainEvent } from './iteration.ts';
export { type PolicyRouterOptions, policyRouter } from './policy-router.ts';
export {
  createPpoTrainer,
  type PpoSnapshot,
  type PpoTrainer,
} from './ppo-trainer.ts';
export type { TrainHooks, TrainProgress, TrainResult } from './run-session.ts';
export {
  type ForkOptions,
  fork,
  openTrained,
  type ResumeRunOptions,
  resume,
  type TrainOptions,
  train,
} from './train.ts';
export { configJsonSchema, resolveConfig } from './train-config.ts';
export { TrainError } from './train-error.ts';
export {
  ConfigError,
  describeConfig,
  type TrainConfig,
  type TrainSettings,
} from './train-schema.ts';
export {
  cloneText,
  resumeText,
  type TextResumeOptions,
  type TextTrainOptions,
  trainText,
} from './train-text.ts';
