import { MAX_SEED } from '../random/rng.ts';
import type { Drawing } from '../view/drawing.ts';
import type { Scene } from '../view/scene.ts';
import { fail, show } from './errors.ts';
import type { OptionValues } from './options.ts';
import type { Json } from './plain-data.ts';
import type { Space } from './spaces.ts';

/** What one step gave besides the observation. The environment reuses the object: read it before the next step. */
export interface StepResult {
  reward: number;
  /** The task itself has ended here: there is no future reward to estimate. */
  terminated: boolean;
  /** The episode was cut here, by a time limit or a bound: the future goes on, so its value must be bootstrapped. */
  truncated: boolean;
  /** The reward's parts, in the order of `Env.rewardTerms`; they sum to `reward`. Empty where there are no names. */
  readonly rewardTerms: Float64Array;
  /** What `Env.measures` names, of this step; absent where there are none. */
  measures?: Float64Array;
  /** The simulation broke down here (a state that is not finite), which ended the episode; absent is false. */
  blownUp?: boolean;
}

/** How an episode begins. */
export interface ResetOptions {
  /** Starts the environment's randomness anew. Without one the stream goes on; a fresh environment starts from 0. */
  readonly seed?: number;
}

/** What an environment was made from; a checkpoint holds it, and `makeEnv(id, { ...options, maxEpisodeSteps })` repeats it. */
export interface EnvSpec {
  /** With its version: `CartPole-v1`. */
  readonly id: string;
  readonly version: number;
  /** Every option, defaults included. */
  readonly options: OptionValues;
  /** Steps after which an episode is truncated; null where it never is. */
  readonly maxEpisodeSteps: number | null;
  /** The mean return from which the task counts as solved. */
  readonly rewardThreshold: number | null;
  /** The user's file that defines it, absolute; null for Keel's own, for Gymnasium's and for those registered in code. */
  readonly file: string | null;
}

/** What it takes to draw an environment: its shapes once, and after each step where they are. */
export interface EnvView {
  readonly scene: Scene;
  /** Seconds of the world's time that a step takes: how fast a replay runs. */
  readonly stepSeconds: number;
  /** Position (x, y, z) and quaternion (w, x, y, z) of each body of the scene, in the world: (bodies, 7). */
  writePose(out: Float32Array): void;
  /** Positions of the scene's joints: (joints). */
  writeJoints(out: Float32Array): void;
  /** What is there now in two dimensions, instead of the scene, which is empty then. */
  draw?(): Drawing;
}

/** What an environment shows of itself: three bytes (red, green, blue) a pixel, row after row from the top. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
  /** Seconds of the world's time that a step takes: how fast a film of it runs. */
  readonly stepSeconds: number;
}

/** What an environment can do besides that lives in another process, in Python. */
export interface OutsideEnv {
  /** The limit of an episode's steps that it brings along; null for none. */
  readonly limit: number | null;
  /** Notes the action of the next `step`, so that those of several environments travel together. */
  stage(action: Float32Array): void;
  /** Notes that the next call is a `reset` with these options, for the same reason. */
  stageReset(options: ResetOptions): void;
  /** Sends what was noted for all environments of its process, which goes to work; does nothing where nothing was. */
  send(): void;
  /** Waits for the process's answer to what was sent; false where that takes so long that `later` should wait for it. */
  answers(): boolean;
  /** Waits for that answer and leaves the thread free meanwhile. */
  later(): Promise<void>;
  /** Where `restore` could not go on in the middle of an episode: the first observation of the one that it began. */
  readonly beganAnew: Float32Array | undefined;
  /** What happened to it since the last time, in sentences: that it was started again. */
  notices(): string[];
  /** Only where it can show itself, made with the option `render`. */
  readonly picture?: () => Picture;
}

/**
 * A task, after Gymnasium's contract, on flat numbers so that a step allocates nothing.
 *
 * ```ts
 * const env = makeEnv('CartPole-v1');
 * const obs = new Float32Array(env.observationSpace.flatSize);    // (obsSize)
 * const action = new Float32Array(env.actionSpace.flatSize);      // (actionSize)
 * env.reset({ seed: 1 }, obs);
 * const { reward, terminated, truncated } = env.step(action, obs);
 * ```
 *
 * Observations and actions have the flat layout of their space (spaces.ts): numbers in order, categories as indices, the
 * parts of composite spaces one after the other. `reset` and `step` write all of `obs` and read none of it.
 *
 * Differences from Gymnasium: no `info`; `terminated` and `truncated` are never both true (at its time limit an episode
 * that ends is terminated); an action outside its space is an error everywhere, not in some environments (clip it with
 * `actionSpace.clip`); a fresh environment without a seed is seeded with 0, so that every run can be repeated.
 *
 * Few write this by hand: `simulation` makes one from functions on a plain state. What `createEnv` and `makeEnv` return
 * also has the time limit and checks every call.
 */
export interface Env {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Names of the reward's parts that are reported apart; most environments have none. */
  readonly rewardTerms: readonly string[];
  /** Names of what it measures of itself besides, such as a speed: logged as `env/<name>`, and nothing is learnt from it. */
  readonly measures?: readonly string[];
  /** Whether its simulation can break down, so that `StepResult.blownUp` is worth counting; absent is false. */
  readonly mayBlowUp?: boolean;
  /** Only of environments that live in another process. */
  readonly outside?: OutsideEnv;
  /** Set by `createEnv`. */
  readonly spec?: EnvSpec;
  /** Starts an episode and writes its first observation. */
  reset(options: ResetOptions, obs: Float32Array): void;
  /** Takes the action and writes the observation after it; after the last step of an episode, that is the final one. */
  step(action: Float32Array, obs: Float32Array): StepResult;
  /** All that the future depends on, randomness included. JSON keeps it to the bit. */
  state(): Json;
  /** Continues from what `state` gave, to the bit; checks it, because it comes from a file. */
  restore(state: unknown): void;
  /**
   * How to draw what is there now. Environments without a body have none; those with one are recorded while they are
   * trained, and can be seen on the page.
   */
  view?(): EnvView;
  /**
   * How far training is, from 0 to 1, for tasks that grow harder; the next episode starts with it. Whoever evaluates leaves
   * it alone, and gets the task as it is at the end.
   */
  setProgress?(fraction: number): void;
  /** Frees what the garbage collector does not. */
  close?(): void;
}

/** A result to reuse; `terms` is the number of reward terms. */
export function stepResult(terms = 0): StepResult {
  return { reward: 0, terminated: false, truncated: false, rewardTerms: new Float64Array(terms) };
}

/** A seed as `Rng` takes it, or an error that says what one is. */
export function checkSeed(seed: unknown): number {
  if (typeof seed !== 'number' || !Number.isSafeInteger(seed) || seed < 0) {
    fail('seed-invalid', `seed ${show(seed)} is not a whole number in 0..${MAX_SEED}: use one, such as 0`);
  }
  return seed;
}
