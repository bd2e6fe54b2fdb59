/** An environment whose world is a MuJoCo model: a task says how it starts, what is seen, and what it is worth. */
import { Rng } from '../../random/rng.ts';
import { checkSeed, type Env, type EnvView, type ResetOptions, type StepResult, stepResult } from '../env.ts';
import { fail, show } from '../errors.ts';
import { checkAlike, fieldsOf, fromJson, type Json, toJson } from '../plain-data.ts';
import { box, type Space } from '../spaces.ts';
import { engine } from './engine.ts';
import { type MoreArrays, openModel, type Physics } from './physics.ts';
import { viewOf } from './scene.ts';

/** A task in a MuJoCo model: how it starts, what is seen, and what it is worth. */
export interface PhysicsTask<M extends object> {
  /** The model, as MJCF text. */
  readonly model: string;
  /** Substeps to an action. */
  readonly frameSkip: number;
  /** Arrays that `observe` or `score` reads and that are not saved of every model. */
  readonly alsoSaved?: MoreArrays;
  /** Numbers in an observation; unbounded. */
  readonly observationSize: number;
  /** Where the model's control ranges are not the actions' limits. */
  readonly actionSpace?: Space;
  /** Names of the reward's parts; `score` writes them, and the reward is their sum. */
  readonly rewardTerms: readonly string[];
  /** Names of what `score` measures besides, in `result.measures`. */
  readonly measures?: readonly string[];
  /** Whether the task grows harder with training, so that `start` heeds its `progress`. */
  readonly growsHarder?: boolean;
  /**
   * Places the bodies, which are in the model's initial state, and returns what the task remembers besides: plain data.
   * `progress` is how far training is, 1 unless someone said.
   */
  start(physics: Physics, rng: Rng, progress: number): M;
  /** Turns the action into controls before the substeps; unless given, the action is the controls. */
  control?(physics: Physics, action: Float32Array, memory: NoInfer<M>, rng: Rng): void;
  /** After the substeps: writes `result.rewardTerms` and `result.terminated`. */
  score(physics: Physics, action: Float32Array, memory: NoInfer<M>, result: StepResult): void;
  /** (observationSize) */
  observe(physics: Physics, memory: NoInfer<M>, obs: Float32Array): void;
}

/**
 * Opens the task's model and makes an environment of it. Where a step leaves the physics in a state that is not finite, the
 * episode ends there: terminated, with no reward for that step, the observation before it, and `blownUp` set.
 */
export function physicsEnv<M extends object>(task: PhysicsTask<M>): Env {
  return new PhysicsEnv(task);
}

class PhysicsEnv<M extends object> implements Env {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly setProgress?: (fraction: number) => void;
  readonly measures: readonly string[];
  readonly mayBlowUp = true;
  readonly #task: PhysicsTask<M>;
  readonly #physics: Physics;
  readonly #result: StepResult;
  /** The last observation, which stands in for one that cannot be made. */
  readonly #seen: Float32Array; // (obsSize)
  #rng = new Rng(0);
  #progress = 1;
  #memory: M | undefined;

  constructor(task: PhysicsTask<M>) {
    const physics = openModel(task.model, task.alsoSaved);
    this.#task = task;
    this.#physics = physics;
    this.observationSpace = box({
      shape: [task.observationSize],
      low: Number.NEGATIVE_INFINITY,
      high: Number.POSITIVE_INFINITY,
    });
    this.actionSpace = task.actionSpace ?? controlSpace(physics);
    this.rewardTerms = task.rewardTerms;
    this.measures = task.measures ?? [];
    this.#result = stepResult(task.rewardTerms.length);
    if (this.measures.length > 0) this.#result.measures = new Float64Array(this.measures.length);
    this.#seen = new Float32Array(task.observationSize);
    if (task.growsHarder) {
      this.setProgress = fraction => {
        this.#progress = checkProgress(fraction);
      };
    }
  }

  reset(options: ResetOptions, obs: Float32Array): void {
    if (options.seed !== undefined) this.#rng = new Rng(checkSeed(options.seed));
    this.#physics.reset();
    this.#memory = this.#task.start(this.#physics, this.#rng, this.#progress);
    this.#physics.forward();
    this.#observe(this.#memory, obs);
  }

  step(action: Float32Array, obs: Float32Array): StepResult {
    const memory = this.#memory ?? fail('not-reset', 'step before reset: call reset first');
    const task = this.#task;
    const physics = this.#physics;
    const result = this.#result;
    result.terminated = false;
    result.truncated = false;
    result.blownUp = false;
    result.reward = 0;
    result.rewardTerms.fill(0);
    result.measures?.fill(0);
    if (task.control) task.control(physics, action, memory, this.#rng);
    else physics.arrays.ctrl.set(action);
    physics.step(task.frameSkip);
    if (!physics.isSound()) return this.#blowUp(obs);
    task.score(physics, action, memory, result);
    let reward = 0;
    for (let i = 0; i < result.rewardTerms.length; i++) reward += result.rewardTerms[i];
    result.reward = reward;
    this.#observe(memory, obs);
    return result;
  }

  state(): Json {
    const saved =
      this.#memory === undefined
        ? null
        : toJson({ physics: this.#physics.save(), memory: this.#memory }, 'state');
    return { rng: toJson(this.#rng.state(), 'rng'), progress: this.#progress, state: saved };
  }

  restore(json: unknown): void {
    const fields = fieldsOf(json, ['rng', 'progress', 'state'], 'the state of the robot');
    const rng = Rng.fromState(fields.rng);
    const progress = checkProgress(fields.progress);
    if (fields.state === null) {
      this.#memory = undefined;
    } else {
      const state = fieldsOf(fields.state, ['physics', 'memory'], 'the state of the robot');
      const memory = fromJson(state.memory, 'memory');
      this.#physics.reset();
      checkAlike(memory, this.#task.start(this.#physics, new Rng(0), progress), 'memory');
      this.#physics.load(fromJson(state.physics, 'physics'));
      this.#memory = memory as M;
      this.#task.observe(this.#physics, this.#memory, this.#seen);
    }
    this.#rng = rng;
    this.#progress = progress;
  }

  view(): EnvView {
    const physics = this.#physics;
    const stepSeconds = physics.substepSeconds * this.#task.frameSkip;
    return viewOf(engine(), physics.model, stepSeconds, () => physics.arrays);
  }

  close(): void {
    this.#physics.close();
  }

  #observe(memory: M, obs: Float32Array): void {
    this.#task.observe(this.#physics, memory, obs);
    this.#seen.set(obs);
  }

  #blowUp(obs: Float32Array): StepResult {
    const result = this.#result;
    result.terminated = true;
    result.blownUp = true;
    obs.set(this.#seen);
    // Nothing of it stays: a state that is saved now can be restored.
    this.#physics.reset();
    return result;
  }
}

function checkProgress(fraction: unknown): number {
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1))
    fail(
      'state-invalid',
      `the progress ${show(fraction)} is not in 0..1: pass the share of training that is done`,
    );
  return fraction;
}

/** The actuators' control ranges as a space. */
function controlSpace(physics: Physics): Space {
  const low: number[] = [];
  const high: number[] = [];
  for (let i = 0; i < physics.ctrlSize; i++) {
    low.push(physics.ctrlRange[2 * i]);
    high.push(physics.ctrlRange[2 * i + 1]);
  }
  return box({ shape: [physics.ctrlSize], low, high });
}
