/**
 * Keel: policies trained inside a KL bound.
 *
 * ```ts
 * import { train } from 'keel';
 * const { dir } = await train({ env: 'cartpole', config: { steps: 100_000 } });
 * ```
 *
 * Each part is also a subpath of the package, e.g. `keel/engine`.
 */
export type { EpisodeEvaluation } from './algos/agents/evaluate.ts';
export type {
  Algorithm,
  IterationResult,
  Learner,
  Opening,
  PartReport,
  PolicyOpening,
  PreflightOptions,
  Progress,
  Restoring,
  Settings,
  Start,
  WhichCheckpoint,
} from './algos/algorithm.ts';
export { registerAlgorithm } from './algos/algorithms.ts';
export type { Advice, Advisor, Change, Look } from './algos/autopilot/advice.ts';
export type { ClonePolicyConfig, ClonePolicySettings } from './algos/clone/policy/settings.ts';
export type { CloneTextConfig, CloneTextSettings } from './algos/clone/text/settings.ts';
export type { LearnerEvaluation, Reached } from './algos/evaluation.ts';
export type { TrainEvent } from './algos/events.ts';
export { createGrpoTrainer, type GrpoTrainer, type GrpoTrainerOptions } from './algos/grpo/iteration.ts';
export { type GrpoConfig, type GrpoSettings, grpoSettings } from './algos/grpo/settings.ts';
export type { TrainHooks, TrainProgress, TrainResult } from './algos/hooks.ts';
export type {
  ActOptions,
  EvaluatePolicyOptions,
  Evaluation,
  Exported,
  Observation,
  Policy,
} from './algos/policy.ts';
export type { PpoSnapshot } from './algos/ppo/checkpoint.ts';
export { createPpoTrainer, type PpoTrainer, type PpoTrainerOptions } from './algos/ppo/iteration.ts';
export { type PpoConfig, type PpoSettings, ppoSettings } from './algos/ppo/settings.ts';
export {
  type BeginOptions,
  type CloneOptions,
  type Configured,
  clone,
  type ForkOptions,
  type InEnvironment,
  type OfAlgorithm,
  type OnTask,
  type OpenPolicyOptions,
  openPolicy,
  type ResumeOptions,
  type TrainOptions,
  type Usual,
} from './algos/runs.ts';
export type { Subject } from './algos/subject.ts';
export type { CompletionEvaluation, MeasuredEvaluation } from './algos/text/evaluate.ts';
export type { Trust } from './algos/trust.ts';
export type { Summary } from './algos/update/moments.ts';
export { fork, resume, train } from './autopilot/runs.ts';
export { ConfigError, KeelError, type Problem, RunError, TrainError } from './base/errors.ts';
export * as engine from './engine/index.ts';
export { defineEnv } from './envs/definition.ts';
export type { Env } from './envs/env.ts';
export { makeEnv, registerEnv } from './envs/registry.ts';
export { simulation } from './envs/simulation.ts';
export { box, dict, discrete, multiBinary, multiDiscrete, tuple } from './envs/spaces.ts';
export * as kl from './kl/index.ts';
export * as lm from './lm/index.ts';
export * as nn from './nn/index.ts';
export { Rng, type RngState } from './random/rng.ts';
export { readRows } from './runs/log.ts';
export type { NamedCode } from './runs/named-code.ts';
export { listRuns, openRun, resolveRun } from './runs/store.ts';
export type { UntrustedCode } from './runs/trust.ts';
export {
  describeSettings,
  refuseLiveChange,
  resolveSettings,
  settingsJsonSchema,
} from './settings/resolve.ts';
export { evaluationKeys, runKeys } from './settings/shared.ts';
export {
  type DoctorSetting,
  type Needs,
  type RunConfig,
  type Setting,
  type SettingFacts,
  type SettingTable,
  setting,
  type TableFacts,
  table,
} from './settings/spec.ts';
export * as values from './settings/values.ts';
export type { Constraints, Halving, Objective, RunOutcome, Study, Trial } from './studies/schema.ts';
export type { StudySummary } from './studies/summary.ts';
export { type NewSweep, type SweepOptions, type SweepResult, sweep } from './sweep/sweep.ts';
