import type { Env, EnvSpec, ResetOptions } from '../env.ts';
import type { Space } from '../spaces.ts';
import { type VectorMemory, type VectorShape, vectorMemory } from './arrays.ts';
import { EnvSlice } from './slice.ts';
import {
  checkActions,
  checkSameSpaces,
  envSeeds,
  envStatesOf,
  shapeFor,
  unusable,
  type VectorEnv,
  type VectorState,
  vectorState,
} from './vector.ts';

/**
 * N environments in this thread, one after the other: best for fast ones, such as all of the classic ones, where handing
 * work to another thread takes longer than the work.
 */
export class InProcessVectorEnv implements VectorEnv {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly spec: EnvSpec | undefined;
  readonly envCount: number;
  readonly obsSize: number;
  readonly actionSize: number;
  readonly termCount: number;
  readonly observations: Float32Array;
  readonly rewards: Float64Array;
  readonly terminated: Uint8Array;
  readonly truncated: Uint8Array;
  readonly finalObservations: Float32Array;
  readonly episodeReturns: Float64Array;
  readonly episodeLengths: Int32Array;
  readonly episodeRewardTerms: Float64Array;
  endedCount = 0;
  readonly #memory: VectorMemory;
  readonly #slice: EnvSlice;
  #seeded = false;
  #closed = false;
  #failure: unknown;

  /** `make` gets the index of the environment to make; all must have the same spaces. */
  constructor(make: (index: number) => Env, envCount: number) {
    const first = make(0);
    const shape: VectorShape = shapeFor(first, envCount);
    const envs = [first, ...Array.from({ length: envCount - 1 }, (_, i) => make(i + 1))];
    checkSameSpaces(envs);
    this.observationSpace = first.observationSpace;
    this.actionSpace = first.actionSpace;
    this.rewardTerms = first.rewardTerms;
    this.spec = first.spec;
    this.envCount = envCount;
    this.obsSize = shape.obsSize;
    this.actionSize = shape.actionSize;
    this.termCount = shape.termCount;
    const memory = vectorMemory(shape);
    this.observations = memory.observations;
    this.rewards = memory.rewards;
    this.terminated = memory.terminated;
    this.truncated = memory.truncated;
    this.finalObservations = memory.finalObservations;
    this.episodeReturns = memory.episodeReturns;
    this.episodeLengths = memory.episodeLengths;
    this.episodeRewardTerms = memory.episodeRewardTerms;
    this.#memory = memory;
    this.#slice = new EnvSlice(envs, 0, shape, memory);
  }

  async reset(options: ResetOptions = {}): Promise<void> {
    const seed = options.seed ?? (this.#seeded ? undefined : 0);
    const seeds = seed === undefined ? undefined : envSeeds(seed, this.envCount);
    this.#run(() => this.#slice.reset(seeds));
    this.#seeded = true;
    this.endedCount = 0;
  }

  async step(actions: Float32Array): Promise<void> {
    checkActions(actions, this);
    this.#memory.actions.set(actions);
    this.#run(() => this.#slice.step());
    this.endedCount = countEnded(this);
  }

  async state(): Promise<VectorState> {
    return vectorState(
      this.spec,
      this.#run(() => this.#slice.state()),
    );
  }

  async restore(state: unknown): Promise<void> {
    const states = envStatesOf(state, this.spec, this.envCount);
    this.#run(() => this.#slice.restore(states));
    this.#seeded = true;
    this.endedCount = 0;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#slice.close();
  }

  #run<T>(work: () => T): T {
    if (this.#closed || this.#failure !== undefined) throw unusable(this.#failure);
    try {
      return work();
    } catch (error) {
      // Some environments have moved and some have not: nothing could go on from here.
      this.#failure = error;
      throw error;
    }
  }
}

/** How many episodes ended in the last step. */
export function countEnded({ terminated, truncated }: Pick<VectorEnv, 'terminated' | 'truncated'>): number {
  let count = 0;
  for (let i = 0; i < terminated.length; i++) count += terminated[i]! | truncated[i]!;
  return count;
}
