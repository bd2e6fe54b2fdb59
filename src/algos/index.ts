/** Training: PPO, its config, whole runs, evaluation and export. */
export { type ActorCritic, actorCritic } from './actor-critic.ts';
export { type CloneOptions, type CloneResult, clone } from './clone-policy.ts';
export { type EvaluateOptions, type Evaluation, evaluatePolicy } from './evaluate.ts';
export { policyGraph } from './export.ts';
export { type PolicyRouterOptions, policyRouter } from './policy-router.ts';
export {
  createPpoTrainer,
  type PpoSnapshot,
  type PpoTrainer,
  TrainError,
  type TrainEvent,
} from './ppo-trainer.ts';
export {
  type ForkOptions,
  fork,
  openTrained,
  type ResumeRunOptions,
  resume,
  type TrainHooks,
  type TrainOptions,
  type TrainProgress,
  type TrainResult,
  train,
} from './train.ts';
export { configJsonSchema, resolveConfig } from './train-config.ts';
export {
  ConfigError,
  describeConfig,
  type TrainConfig,
  type TrainSettings,
} from './train-schema.ts';
