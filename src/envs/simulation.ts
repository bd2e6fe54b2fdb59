import { Rng } from '../random/rng.ts';
import { checkSeed, type Env, type ResetOptions, type StepResult, stepResult } from './env.ts';
import { fail } from './errors.ts';
import { checkAlike, fieldsOf, fromJson, type Json, toJson } from './plain-data.ts';
import type { Space } from './spaces.ts';

/**
 * A task as functions on a state. The state is plain data (numbers, strings, booleans, null, arrays, typed arrays and
 * object literals), so saving and restoring it to the bit comes for free.
 */
export interface Simulation<S extends object> {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Names of the reward's parts to report apart; `step` writes them to `result.rewardTerms`. */
  readonly rewardTerms?: readonly string[];
  /** A fresh state for a new episode. All randomness comes from `rng`. */
  start(rng: Rng): S;
  /** Writes the observation to `obs`, (obsSize), or returns it, which is simpler and slower. */
  observe(state: NoInfer<S>, obs: Float32Array): ArrayLike<number> | undefined;
  /**
   * Changes the state and sets `result`, whose fields begin as 0 and false. With `rewardTerms` set those and leave
   * `result.reward` alone: it becomes their sum.
   */
  step(state: NoInfer<S>, action: Float32Array, result: StepResult, rng: Rng): void;
  /** Only for a state that is not plain data, such as a physics engine's: what to save of it, and back. */
  save?(state: NoInfer<S>): unknown;
  load?(saved: unknown): NoInfer<S>;
  /** Throws where a restored state cannot be. */
  check?(state: NoInfer<S>): void;
  close?(): void;
}

/**
 * An environment from functions on a plain state; a user's own looks like this:
 *
 * ```ts
 * export default defineEnv({
 *   id: 'Walk-v0', description: 'Reach 1.', maxEpisodeSteps: 100,
 *   make: () => simulation({
 *     observationSpace: box({ shape: [1], low: -2, high: 2 }),
 *     actionSpace: discrete(2),
 *     start: rng => ({ x: rng.uniform() - 0.5 }),
 *     observe: state => [state.x],
 *     step(state, action, result) {
 *       state.x += action[0] === 1 ? 0.1 : -0.1;
 *       result.reward = state.x >= 1 ? 1 : -0.01;
 *       result.terminated = Math.abs(state.x) >= 1;
 *     },
 *   }),
 * });
 * ```
 */
export function simulation<S extends object>(sim: Simulation<S>): Env {
  return new SimulationEnv(sim);
}

class SimulationEnv<S extends object> implements Env {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly close: () => void;
  readonly #sim: Simulation<S>;
  readonly #result: StepResult;
  #rng = new Rng(0);
  #state: S | undefined;

  constructor(sim: Simulation<S>) {
    this.observationSpace = sim.observationSpace;
    this.actionSpace = sim.actionSpace;
    this.rewardTerms = sim.rewardTerms ?? [];
    this.close = () => sim.close?.();
    this.#sim = sim;
    this.#result = stepResult(this.rewardTerms.length);
  }

  reset(options: ResetOptions, obs: Float32Array): void {
    if (options.seed !== undefined) this.#rng = new Rng(checkSeed(options.seed));
    this.#state = this.#sim.start(this.#rng);
    this.#observe(this.#state, obs);
  }

  step(action: Float32Array, obs: Float32Array): StepResult {
    const state = this.#state ?? fail('not-reset', 'step before reset: call reset first');
    const result = this.#result;
    result.reward = 0;
    result.terminated = false;
    result.truncated = false;
    result.blownUp = false;
    const terms = result.rewardTerms;
    if (terms.length === 0) {
      this.#sim.step(state, action, result, this.#rng);
    } else {
      terms.fill(0);
      this.#sim.step(state, action, result, this.#rng);
      let sum = 0;
      for (let i = 0; i < terms.length; i++) sum += terms[i];
      result.reward = sum;
    }
    this.#observe(state, obs);
    return result;
  }

  state(): Json {
    const { save } = this.#sim;
    const state = this.#state === undefined || save === undefined ? this.#state : save(this.#state);
    return {
      rng: toJson(this.#rng.state(), 'rng'),
      state: state === undefined ? null : toJson(state, 'state'),
    };
  }

  restore(saved: unknown): void {
    const fields = fieldsOf(saved, ['rng', 'state'], 'the state of the simulation');
    const rng = Rng.fromState(fields.rng);
    const state = fields.state === null ? undefined : this.#decode(fromJson(fields.state, 'state'));
    this.#rng = rng;
    this.#state = state;
  }

  #decode(saved: unknown): S {
    const { load, start, check } = this.#sim;
    let state: S;
    if (load) {
      state = load(saved);
    } else {
      checkAlike(saved, start(new Rng(0)), 'state');
      state = saved as S;
    }
    check?.(state);
    return state;
  }

  #observe(state: NoInfer<S>, obs: Float32Array): void {
    const returned = this.#sim.observe(state, obs);
    if (returned === undefined) return;
    if (returned.length !== obs.length) {
      fail(
        'observation-size',
        `observe returned ${returned.length} numbers, ${this.observationSpace.describe()} has ${obs.length}: change one of them`,
      );
    }
    obs.set(returned);
  }
}
