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
export * from './algos/index.ts';
export * as engine from './engine/index.ts';
export {
  box,
  defineEnv,
  dict,
  discrete,
  type Env,
  makeEnv,
  multiBinary,
  multiDiscrete,
  registerEnv,
  simulation,
  tuple,
} from './envs/index.ts';
export * as kl from './kl/index.ts';
export * as lm from './lm/index.ts';
export * as nn from './nn/index.ts';
export { Rng, type RngState } from './random/index.ts';
export { listRuns, openRun, readRows, resolveRun } from './runs/index.ts';
