import { availableParallelism } from 'node:os';
import { Rng } from '../../random/rng.ts';
import { checkSeed, type Env, type EnvSpec, type ResetOptions } from '../env.ts';
import { type EnvErrorPlace, fail, show } from '../errors.ts';
import { fieldsOf, type Json } from '../plain-data.ts';
import { type Space, sameSpace } from '../spaces.ts';
import type { VectorArrays, VectorShape } from './arrays.ts';

/**
 * N environments stepped together.
 *
 * ```ts
 * const envs = await makeVectorEnv('CartPole-v1', { envCount: 8 });
 * await envs.reset({ seed: 1 });
 * const actions = new Float32Array(envs.envCount * envs.actionSize);     // (N, actionSize)
 * await envs.step(actions);
 * envs.rewards[i]; envs.terminated[i]; envs.observations;                // (N), (N), (N, obsSize)
 * ```
 *
 * Where an episode ends, its last observation goes to `finalObservations`, its return and length to `episodeReturns` and
 * `episodeLengths`, and the next episode starts in the same step: `observations` holds its first one.
 *
 * Environment i gets its own seed, the i-th child of the vector's, so it does not depend on N, on the other environments,
 * or on the thread that runs it: the in-process vector and the one with workers give the same bits. Their states are
 * interchangeable as well.
 */
export interface VectorEnv extends VectorArrays, VectorShape {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Names of the columns of `episodeRewardTerms`. */
  readonly rewardTerms: readonly string[];
  /** Names of the columns of `episodeMeasures`. */
  readonly measures: readonly string[];
  /** Whether `blownUp` is worth counting. */
  readonly mayBlowUp: boolean;
  /** What each environment was made from; absent for environments made by hand. */
  readonly spec: EnvSpec | undefined;
  /** Episodes that ended in the last step: 0 says that no flag is set. */
  readonly endedCount: number;
  /** Starts an episode in every environment. Needed before the first step, unless a state is restored. */
  reset(options?: ResetOptions): Promise<void>;
  /** How far training is, from 0 to 1: episodes that start from now on get it, where the environment asks. */
  setProgress(fraction: number): void;
  /**
   * (N, actionSize) Steps every environment. The actions are copied. Undefined where all is done when it returns, so that
   * a fast loop awaits only what there is to wait for: `const pending = envs.step(actions); if (pending) await pending;`.
   * What goes wrong before there is a promise is thrown.
   */
  step(actions: Float32Array): Promise<void> | undefined;
  /** All that the future depends on, as JSON; between steps. */
  state(): Promise<VectorState>;
  /** Continues to the bit from what `state` gave; `observations` are those of that moment. */
  restore(state: unknown): Promise<void>;
  /**
   * What happened to environments that live in other processes since the last time, in sentences: one was started again, say.
   * Absent is nothing.
   */
  takeNotices?(): string[];
  /** Closes the environments, and ends the worker threads. */
  close(): Promise<void>;
}

const STATE_VERSION = 1;

/** A vector's state, the same for both kinds. */
export type VectorState = {
  readonly version: typeof STATE_VERSION;
  /** The environment's id, if it has one. */
  readonly id: string | null;
  /** (N) */
  readonly envs: readonly Json[];
};

export function vectorState(spec: EnvSpec | undefined, envs: readonly Json[]): VectorState {
  return { version: STATE_VERSION, id: spec?.id ?? null, envs };
}

/** The environments' states in a vector's, after checking that it is one for this vector. */
export function envStatesOf(state: unknown, spec: EnvSpec | undefined, envCount: number): unknown[] {
  const { version, id, envs } = fieldsOf(state, ['version', 'id', 'envs'], 'the state of the environments');
  if (version !== STATE_VERSION) {
    fail(
      'state-invalid',
      `the state of the environments has version ${show(version)}, this Keel reads ${STATE_VERSION}: resume with the Keel that wrote it`,
    );
  }
  if (id !== (spec?.id ?? null)) {
    fail(
      'state-invalid',
      `the state is of ${show(id)}, these are ${show(spec?.id ?? null)}: resume with the same environment`,
    );
  }
  if (!Array.isArray(envs) || envs.length !== envCount) {
    const count = Array.isArray(envs) ? envs.length : 'no';
    fail('state-invalid', `the state holds ${count} environments, this vector has ${envCount}: use as many`);
  }
  return envs;
}

/** (N) Each environment's seed. The first ones do not depend on how many there are. */
export function envSeeds(seed: number, envCount: number): number[] {
  return new Rng(checkSeed(seed)).split(envCount).map(rng => rng.uniform() * 2 ** 53);
}

/** Before so many are made. */
export function checkEnvCount(envCount: number): void {
  if (!Number.isSafeInteger(envCount) || envCount < 1 || envCount > 65_536)
    fail('vector-invalid', `envCount ${show(envCount)} is not a whole number in 1..65536: try 8`);
}

/** Threads or processes, at the most. */
export const MOST_WORKERS = 256;

export function checkWorkers(workers: number): void {
  if (!Number.isSafeInteger(workers) || workers < 1 || workers > MOST_WORKERS)
    fail(
      'vector-invalid',
      `workers ${show(workers)} is not a whole number in 1..${MOST_WORKERS}: try ${availableParallelism()}`,
    );
}

/** The sizes of N such environments. */
export function shapeFor(env: Env, envCount: number): VectorShape {
  checkEnvCount(envCount);
  return {
    envCount,
    obsSize: env.observationSpace.flatSize,
    actionSize: env.actionSpace.flatSize,
    termCount: env.rewardTerms.length,
    measureCount: env.measures?.length ?? 0,
  };
}

/** All environments of a vector must have the same spaces and reward terms. */
export function checkSameSpaces(envs: readonly Env[]): void {
  const first = envs[0];
  envs.forEach((env, i) => {
    for (const name of ['observationSpace', 'actionSpace'] as const) {
      if (sameSpace(first[name], env[name])) continue;
      fail(
        'vector-invalid',
        `environment ${i} has the ${name} ${env[name].describe()}, environment 0 has ${first[name].describe()}: make them alike`,
      );
    }
    if (JSON.stringify(first.measures) !== JSON.stringify(env.measures)) {
      fail(
        'vector-invalid',
        `environment ${i} has the measures ${env.measures?.join(', ')}, environment 0 others`,
      );
    }
    if (JSON.stringify(first.rewardTerms) !== JSON.stringify(env.rewardTerms)) {
      fail(
        'vector-invalid',
        `environment ${i} has the reward terms ${env.rewardTerms.join(', ')}, environment 0 others`,
      );
    }
  });
}

/** `environment 3 of 8 (CartPole-v1, seed 12, step 77)` */
export function nameOf(place: EnvErrorPlace, envCount: number, id: string | undefined): string {
  const when = place.step === 0 ? 'reset' : `step ${place.step}`;
  return `environment ${place.index} of ${envCount} (${id ? `${id}, ` : ''}seed ${place.seed}, ${when})`;
}
