import { didYouMean } from '../base/nearest.ts';
import { Rng } from '../random/rng.ts';
import type { Drawing } from '../view/drawing.ts';
import { emptyScene, type Scene } from '../view/scene.ts';
import { checkSeed, type Env, type EnvView, type ResetOptions, type StepResult, stepResult } from './env.ts';
import { fail, show } from './errors.ts';
import { checkAlike, fieldsOf, fromJson, type Json, toJson } from './plain-data.ts';
import type { Space } from './spaces.ts';

/** What a state looks like in three dimensions: its shapes once, and where they are. */
export interface SimulationView<S extends object> {
  readonly scene: Scene;
  /** Seconds of the world's time that a step takes: how fast a replay runs. */
  readonly stepSeconds: number;
  /** Position (x, y, z) and quaternion (w, x, y, z) of each body of the scene, in the world: (bodies, 7). */
  writePose(state: NoInfer<S>, out: Float32Array): void;
  /** Positions of the scene's joints: (joints); only where there are some. */
  writeJoints?(state: NoInfer<S>, out: Float32Array): void;
}

/**
 * A task as functions on a state. The state is plain data (numbers, strings, booleans, null, arrays, typed arrays and
 * object literals), so saving and restoring it to the bit comes for free.
 */
export interface Simulation<S extends object> {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Names of the reward's parts to report apart; `step` writes them to `result.rewardTerms`. */
  readonly rewardTerms?: readonly string[];
  /** Names of what it measures besides, such as a speed: `step` writes them to `result.measures`; logged as `env/<name>`. */
  readonly measures?: readonly string[];
  /** A fresh state for a new episode. All randomness comes from `rng`. */
  start(rng: Rng): S;
  /**
   * How far training is, from 0 to 1, for a task that grows harder: keep it for the next `start`. Never called where a policy
   * is evaluated or played, which is the task as it is at the end.
   */
  setProgress?(fraction: number): void;
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
  /** What a state looks like in two dimensions, such as a board: on the page, in replays and pictures (docs/robot-view.md). */
  draw?(state: NoInfer<S>): Drawing;
  /** With `draw`: how many seconds a step is shown; 0.1 unless given. */
  readonly stepSeconds?: number;
  /** What a state looks like in three dimensions; instead of `draw`. */
  readonly view?: SimulationView<S>;
  close?(): void;
}

/** All that a simulation may have: what is misspelt would otherwise do nothing, in silence. */
const simulationKeys = Object.keys({
  observationSpace: 1,
  actionSpace: 1,
  rewardTerms: 1,
  measures: 1,
  start: 1,
  setProgress: 1,
  observe: 1,
  step: 1,
  save: 1,
  load: 1,
  check: 1,
  draw: 1,
  stepSeconds: 1,
  view: 1,
  close: 1,
} satisfies Record<keyof Simulation<object>, 1>);

function refuseUnknown(sim: object): void {
  const unknown = Object.keys(sim).filter(key => !simulationKeys.includes(key));
  if (unknown.length > 0)
    fail(
      'definition-invalid',
      `simulation: ${unknown.join(', ')} ${unknown.length === 1 ? 'is' : 'are'} unknown: ${didYouMean(unknown[0], simulationKeys) || `it has ${simulationKeys.join(', ')}`}`,
    );
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
  if (typeof sim !== 'object' || sim === null)
    fail('definition-invalid', `simulation: ${show(sim)} is not an object of functions`);
  refuseUnknown(sim);
  for (const name of ['start', 'observe', 'step'] as const)
    if (typeof sim[name] !== 'function')
      fail('definition-invalid', `simulation: ${name} is ${show(sim[name])}, not a function`);
  if (sim.draw !== undefined && sim.view !== undefined)
    fail('definition-invalid', 'simulation has draw and view: leave one of them out');
  return new SimulationEnv(sim);
}

class SimulationEnv<S extends object> implements Env {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly measures: readonly string[];
  readonly view?: () => EnvView;
  readonly setProgress?: (fraction: number) => void;
  readonly close: () => void;
  readonly #sim: Simulation<S>;
  readonly #result: StepResult;
  #rng = new Rng(0);
  #state: S | undefined;

  constructor(sim: Simulation<S>) {
    this.observationSpace = sim.observationSpace;
    this.actionSpace = sim.actionSpace;
    this.rewardTerms = sim.rewardTerms ?? [];
    this.measures = sim.measures ?? [];
    this.close = () => sim.close?.();
    this.#sim = sim;
    this.#result = stepResult(this.rewardTerms.length);
    if (this.measures.length > 0) this.#result.measures = new Float64Array(this.measures.length);
    if (sim.setProgress) this.setProgress = fraction => sim.setProgress?.(fraction);
    const { draw, view } = sim;
    if (draw) this.view = () => this.#drawn(draw);
    else if (view) this.view = () => this.#viewed(view);
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
    result.measures?.fill(0);
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

  /** What is there to be drawn. */
  #shown(): S {
    return this.#state ?? fail('not-reset', 'drawn before reset: call reset first');
  }

  #drawn(draw: (state: S) => Drawing): EnvView {
    return {
      scene: emptyScene,
      stepSeconds: this.#sim.stepSeconds ?? 0.1,
      writePose: () => {},
      writeJoints: () => {},
      draw: () => draw(this.#shown()),
    };
  }

  #viewed({ scene, stepSeconds, writePose, writeJoints }: SimulationView<S>): EnvView {
    return {
      scene,
      stepSeconds,
      writePose: out => writePose(this.#shown(), out),
      writeJoints: out => writeJoints?.(this.#shown(), out),
    };
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
