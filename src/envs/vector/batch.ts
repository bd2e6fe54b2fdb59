import type { Env, EnvSpec, ResetOptions } from '../env.ts';
import { EnvError, fail, messageOf } from '../errors.ts';
import type { Json } from '../plain-data.ts';
import type { Space } from '../spaces.ts';
import type { VectorMemory, VectorShape } from './arrays.ts';
import { envSeeds, envStatesOf, type VectorEnv, type VectorState, vectorState } from './vector.ts';

/** Who runs the environments. Each call reads and writes the batch's memory; an error leaves the environments useless. */
export interface Backend {
  /** (N) seeds, or none to let the random streams go on. */
  reset(seeds: readonly number[] | undefined): Promise<void> | undefined;
  step(): Promise<void> | undefined;
  /** (N) */
  state(): Promise<Json[]> | Json[];
  restore(states: readonly unknown[]): Promise<void> | undefined;
  /** What happened to environments of other processes since the last time. */
  notices(): string[];
  close(): Promise<void> | undefined;
}

/** A vector environment over a backend: what both kinds do alike, which is all but running the environments. */
export class Batch implements VectorEnv {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly measures: readonly string[];
  readonly mayBlowUp: boolean;
  readonly spec: EnvSpec | undefined;
  readonly envCount: number;
  readonly obsSize: number;
  readonly actionSize: number;
  readonly termCount: number;
  readonly measureCount: number;
  readonly observations: Float32Array;
  readonly rewards: Float64Array;
  readonly terminated: Uint8Array;
  readonly truncated: Uint8Array;
  readonly finalObservations: Float32Array;
  readonly episodeReturns: Float64Array;
  readonly episodeLengths: Int32Array;
  readonly episodeRewardTerms: Float64Array;
  readonly episodeMeasures: Float64Array;
  readonly blownUp: Uint8Array;
  endedCount = 0;
  readonly #actions: Float32Array;
  readonly #progress: Float64Array;
  readonly #backend: Backend;
  #phase: 'fresh' | 'idle' | 'busy' | 'failed' | 'closed' = 'fresh';
  #failure: unknown;

  /** `env` is one of them, or one like them. */
  constructor(env: Env, shape: VectorShape, memory: VectorMemory, backend: Backend) {
    this.observationSpace = env.observationSpace;
    this.actionSpace = env.actionSpace;
    this.rewardTerms = env.rewardTerms;
    this.measures = env.measures ?? [];
    this.mayBlowUp = env.mayBlowUp ?? false;
    this.spec = env.spec;
    this.envCount = shape.envCount;
    this.obsSize = shape.obsSize;
    this.actionSize = shape.actionSize;
    this.termCount = shape.termCount;
    this.measureCount = shape.measureCount;
    this.observations = memory.observations;
    this.rewards = memory.rewards;
    this.terminated = memory.terminated;
    this.truncated = memory.truncated;
    this.finalObservations = memory.finalObservations;
    this.episodeReturns = memory.episodeReturns;
    this.episodeLengths = memory.episodeLengths;
    this.episodeRewardTerms = memory.episodeRewardTerms;
    this.episodeMeasures = memory.episodeMeasures;
    this.blownUp = memory.blownUp;
    this.#actions = memory.actions;
    this.#progress = memory.progress;
    this.#progress[0] = Number.NaN;
    this.#backend = backend;
  }

  async reset(options: ResetOptions = {}): Promise<void> {
    const seed = options.seed ?? (this.#phase === 'fresh' ? 0 : undefined);
    const seeds = seed === undefined ? undefined : envSeeds(seed, this.envCount);
    this.#begin('reset');
    try {
      await this.#backend.reset(seeds);
    } catch (error) {
      this.#stop(error);
    }
    this.endedCount = 0;
    this.#finish();
  }

  setProgress(fraction: number): void {
    this.#progress[0] = fraction;
  }

  step(actions: Float32Array): Promise<void> | undefined {
    const { envCount, actionSize } = this;
    if (actions.length !== envCount * actionSize) {
      fail(
        'action-size',
        `${actions.length} numbers of actions, ${envCount} environments need ${envCount} x ${actionSize} = ${envCount * actionSize}: pass a Float32Array of that length`,
      );
    }
    if (this.#phase === 'fresh') fail('not-reset', 'step before reset: call reset first, or restore a state');
    this.#begin('step');
    const copy = this.#actions;
    for (let i = 0; i < copy.length; i++) copy[i] = actions[i]; // set() takes longer for the few that there are
    let pending: Promise<void> | undefined;
    try {
      pending = this.#backend.step();
    } catch (error) {
      this.#stop(error);
    }
    if (pending) return this.#stepLater(pending);
    this.#stepped();
    return undefined;
  }

  async #stepLater(pending: Promise<void>): Promise<void> {
    try {
      await pending;
    } catch (error) {
      this.#stop(error);
    }
    this.#stepped();
  }

  #stepped(): void {
    const { envCount } = this;
    let ended = 0;
    for (let i = 0; i < envCount; i++) ended += this.terminated[i] | this.truncated[i];
    this.endedCount = ended;
    this.#finish();
  }

  async state(): Promise<VectorState> {
    if (this.#phase === 'fresh') fail('not-reset', 'state before reset: there is nothing to save yet');
    this.#begin('state');
    try {
      const states = await this.#backend.state();
      this.#finish();
      return vectorState(this.spec, states);
    } catch (error) {
      return this.#stop(error);
    }
  }

  async restore(state: unknown): Promise<void> {
    const states = envStatesOf(state, this.spec, this.envCount);
    this.#begin('restore');
    try {
      await this.#backend.restore(states);
    } catch (error) {
      this.#stop(error);
    }
    this.endedCount = 0;
    this.#finish();
  }

  takeNotices(): string[] {
    return this.#backend.notices();
  }

  async close(): Promise<void> {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    await this.#backend.close();
  }

  #begin(call: string): void {
    const phase = this.#phase;
    if (phase === 'busy') {
      fail('vector-invalid', `${call} while another call is under way: await each call before the next`);
    }
    if (phase === 'closed') fail('env-closed', `${call} after close: make new environments`);
    if (phase === 'failed') {
      throw new EnvError(
        'env-closed',
        `${call} after an error, which stopped the environments: make new ones (the error was: ${messageOf(this.#failure)})`,
        { cause: this.#failure },
      );
    }
    this.#phase = 'busy';
  }

  #finish(): void {
    if (this.#phase === 'busy') this.#phase = 'idle';
  }

  /** Some environments have moved and some have not: nothing can go on from here. */
  #stop(error: unknown): never {
    if (this.#phase === 'busy') this.#phase = 'failed';
    this.#failure = error;
    throw error;
  }
}
