/** Environments: the contract, Keel's own, a user's own, many at once, and checks of them. */
export { isEnvFile } from '../base/code-reference.ts';
export type {
  Colour,
  Drawing,
  DrawnCells,
  DrawnCircle,
  DrawnLine,
  DrawnRectangle,
  DrawnShape,
  DrawnText,
} from '../view/drawing.ts';
export {
  type CheckCode,
  type CheckFinding,
  type CheckLevel,
  type CheckOptions,
  type CheckReport,
  checkEnv,
} from './check.ts';
export { formatCheckReport } from './check-format.ts';
export { type AcrobotOptions, acrobot, acrobotDefinition } from './classic/acrobot.ts';
export { type CartPoleOptions, cartPole, cartPoleDefinition } from './classic/cart-pole.ts';
export {
  type MountainCarContinuousOptions,
  mountainCarContinuous,
  mountainCarContinuousDefinition,
} from './classic/mountain-car-continuous.ts';
export { type PendulumOptions, pendulum, pendulumDefinition } from './classic/pendulum.ts';
export { cluster, clusterDefinition } from './cluster/cluster-env.ts';
export type { ClusterOptions } from './cluster/options.ts';
export { type CourierOptions, courier, courierDefinition } from './courier/courier.ts';
export {
  type AnyMakeOptions,
  createEnv,
  type Demonstrator,
  defineEnv,
  type EnvDefinition,
  type Imported,
  type MadeEnv,
  type MakeOptions,
  type RecordingHook,
  type Score,
} from './definition.ts';
export {
  type Env,
  type EnvSpec,
  type EnvView,
  type ResetOptions,
  type StepResult,
  stepResult,
} from './env.ts';
export { EnvError, type EnvErrorCode, type EnvErrorPlace } from './errors.ts';
export { loadEnvFile, resolveEnv } from './load.ts';
export {
  arachne,
  arachneDefinition,
  type LeggedOptions,
  quadruped,
  quadrupedDefinition,
} from './mujoco/arachne/arachne.ts';
export { loadEngine } from './mujoco/engine.ts';
export { type Attributes, type AttributeValue, type Element, element, toXml } from './mujoco/mjcf.ts';
export type { MoreArrays, Physics, PhysicsArrays, SavedPhysics } from './mujoco/physics.ts';
export * from './mujoco/suite/suite.ts';
export { type PhysicsTask, physicsEnv } from './mujoco/task.ts';
export type { OptionSchema, OptionSchemas, OptionValue, OptionValues } from './options.ts';
export type { Json } from './plain-data.ts';
export * from './probe/probes.ts';
export {
  type EnvInfo,
  findEnv,
  isEnvName,
  knownEnv,
  listEnvs,
  makeEnv,
  prepareEnv,
  type RegisteredEnv,
  registerEnv,
} from './registry.ts';
export { type Simulation, type SimulationView, simulation } from './simulation.ts';
export * from './spaces.ts';
export type { VectorArrays, VectorShape } from './vector/arrays.ts';
export { inProcessVectorEnv } from './vector/in-process.ts';
export { makeVectorEnv, type VectorOptions } from './vector/make.ts';
export type { VectorEnv, VectorState } from './vector/vector.ts';
export { type WorkerVectorOptions, workerVectorEnv } from './vector/workers.ts';
export { timeLimit } from './wrappers/time-limit.ts';
