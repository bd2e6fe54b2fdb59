import { placeInOwnCode } from '../../base/trace.ts';
import {
  checkSeed,
  type Env,
  type EnvSpec,
  type EnvView,
  type OutsideEnv,
  type ResetOptions,
  type StepResult,
} from '../env.ts';
import { EnvError, type EnvErrorCode, errorCode, fail, messageOf, show } from '../errors.ts';
import { countOf, fieldsOf, type Json } from '../plain-data.ts';
import { allowedAt, placeOf, type Space } from '../spaces.ts';

type Phase = 'fresh' | 'running' | 'over' | 'broken' | 'closed';
const phases: readonly unknown[] = ['fresh', 'running', 'over', 'broken', 'closed'] satisfies Phase[];

/**
 * Checks every call and its outcome, so that a fault is named where it happens and not three updates later as a NaN loss:
 * calls in order, actions in their space, observations written whole and finite, a finite reward, one kind of end.
 *
 * It costs some nanoseconds a number. Whether observations stay in their space is left to `checkEnv`: wrong limits are
 * worth a warning, not a dead run.
 */
export function checked(env: Env, spec: EnvSpec): Env & { readonly spec: EnvSpec } {
  return new CheckedEnv(env, spec);
}

class CheckedEnv implements Env {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[];
  readonly measures: readonly string[];
  readonly mayBlowUp: boolean;
  readonly spec: EnvSpec;
  readonly outside?: OutsideEnv;
  /** Only where the environment can be drawn. */
  readonly view?: () => EnvView;
  readonly setProgress?: (fraction: number) => void;
  readonly #env: Env;
  #phase: Phase = 'fresh';
  /** Steps of this episode, for messages. */
  #episodeStep = 0;

  constructor(env: Env, spec: EnvSpec) {
    this.observationSpace = env.observationSpace;
    this.actionSpace = env.actionSpace;
    this.rewardTerms = env.rewardTerms;
    this.measures = env.measures ?? [];
    this.mayBlowUp = env.mayBlowUp ?? false;
    this.spec = spec;
    this.#env = env;
    if (env.outside) this.outside = env.outside;
    if (env.view) this.view = () => env.view!();
    if (env.setProgress) this.setProgress = fraction => env.setProgress?.(fraction);
  }

  reset(options: ResetOptions, obs: Float32Array): void {
    if (this.#phase === 'closed') this.#fail('env-closed', 'reset after close: make a new one');
    if (options.seed !== undefined) checkSeed(options.seed);
    this.#checkBuffer(obs);
    this.#episodeStep = 0;
    this.#phase = 'broken'; // until it has gone well
    erase(obs);
    try {
      this.#env.reset(options, obs);
    } catch (error) {
      this.#threw(error);
    }
    this.#checkObservation(obs);
    this.#phase = 'running';
  }

  step(action: Float32Array, obs: Float32Array): StepResult {
    if (this.#phase !== 'running') this.#refuse();
    if (action.length !== this.actionSpace.flatSize) {
      const { flatSize } = this.actionSpace;
      this.#fail(
        'action-size',
        `the action has ${action.length} numbers, ${this.actionSpace.describe()} has ${flatSize}: pass a Float32Array of ${flatSize}`,
      );
    }
    const outside = this.actionSpace.firstOutside(action);
    if (outside !== -1) {
      const [place, allowed] = [placeOf(this.actionSpace, outside), allowedAt(this.actionSpace, outside)];
      this.#fail(
        'action-outside',
        `action${place} is ${show(action[outside])}, not ${allowed}: clip it with actionSpace.clip, or widen the space`,
      );
    }
    this.#checkBuffer(obs);
    this.#episodeStep++;
    this.#phase = 'broken';
    erase(obs);
    let result: StepResult;
    try {
      result = this.#env.step(action, obs);
    } catch (error) {
      this.#threw(error);
    }
    this.#checkResult(result);
    if (this.measures.length > 0) this.#checkMeasures(result);
    this.#checkObservation(obs);
    this.#phase = result.terminated || result.truncated ? 'over' : 'running';
    return result;
  }

  state(): Json {
    return { id: this.spec.id, phase: this.#phase, episodeStep: this.#episodeStep, env: this.#env.state() };
  }

  restore(state: unknown): void {
    const { id } = this.spec;
    const fields = fieldsOf(state, ['id', 'phase', 'episodeStep', 'env'], `the state of ${id}`);
    if (fields.id !== id) {
      this.#fail(
        'state-invalid',
        `the state is of ${show(fields.id)}: resume with that environment, or start anew`,
      );
    }
    const { phase } = fields;
    if (!phases.includes(phase))
      this.#fail('state-invalid', `phase ${show(phase)} is unknown: pass what state() gave`);
    const episodeStep = countOf(fields.episodeStep, 'episodeStep');
    try {
      this.#env.restore(fields.env);
    } catch (error) {
      throw new EnvError('state-invalid', `${id} cannot continue from this state: ${messageOf(error)}`, {
        cause: error,
      });
    }
    const anew = this.#env.outside?.beganAnew !== undefined;
    this.#phase = anew ? 'running' : (phase as Phase);
    this.#episodeStep = anew ? 0 : episodeStep;
  }

  close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#env.close?.();
  }

  #refuse(): never {
    switch (this.#phase) {
      case 'fresh':
        return this.#fail('not-reset', 'step before reset: call reset first');
      case 'over':
        return this.#fail(
          'episode-over',
          `step after the episode's end at step ${this.#episodeStep}: call reset to start the next`,
        );
      case 'broken':
        return this.#fail('not-reset', 'step after an error: call reset to start anew');
      default:
        return this.#fail('env-closed', 'step after close: make a new one');
    }
  }

  #checkBuffer(obs: Float32Array): void {
    const { flatSize } = this.observationSpace;
    if (obs.length === flatSize) return;
    this.#fail(
      'observation-size',
      `the array for the observation has ${obs.length} numbers, ${this.observationSpace.describe()} has ${flatSize}: pass a Float32Array of ${flatSize}`,
    );
  }

  #checkObservation(obs: Float32Array): void {
    for (let i = 0; i < obs.length; i++) {
      const value = obs[i];
      if (value - value === 0) continue; // neither NaN nor infinite
      const remedy = Number.isNaN(value)
        ? 'it was computed as NaN, or never written: each call must write all numbers'
        : 'a division by nearly 0, or a number above 3.4e38, which float32 cannot hold';
      this.#fail(
        'observation-not-finite',
        `observation${placeOf(this.observationSpace, i)} is ${value}${this.#when()}: ${remedy}`,
      );
    }
  }

  #checkResult(result: StepResult): void {
    const { reward, terminated, truncated } = result ?? {};
    if (typeof reward !== 'number' || !Number.isFinite(reward)) {
      this.#fail(
        'reward-not-finite',
        `the reward is ${show(reward)}${this.#when()}: it must be a finite number`,
      );
    }
    if (typeof terminated !== 'boolean' || typeof truncated !== 'boolean') {
      this.#fail(
        'flags-invalid',
        `terminated is ${show(terminated)} and truncated ${show(truncated)}${this.#when()}: both must be true or false`,
      );
    }
    if (terminated && truncated) {
      this.#fail(
        'flags-invalid',
        `terminated and truncated are both true${this.#when()}: truncated only means cut before the end, so set one`,
      );
    }
    if (this.rewardTerms.length !== (result.rewardTerms?.length ?? 0)) {
      this.#fail(
        'reward-not-finite',
        `${result.rewardTerms?.length ?? 0} reward terms${this.#when()}, ${this.rewardTerms.length} have names (${this.rewardTerms.join(', ')})`,
      );
    }
  }

  #checkMeasures({ measures }: StepResult): void {
    for (let i = 0; i < this.measures.length; i++) {
      const value = measures?.[i];
      if (value === undefined || !Number.isFinite(value))
        this.#fail(
          'reward-not-finite',
          `the measure ${this.measures[i]} is ${show(value)}${this.#when()}: it must be a finite number`,
        );
    }
  }

  #when(): string {
    return this.#episodeStep === 0 ? ' after reset' : ` after step ${this.#episodeStep} of the episode`;
  }

  #threw(error: unknown): never {
    const code = errorCode(error);
    if (code !== undefined && code !== 'env-threw')
      throw new EnvError(code, `${this.spec.id}: ${messageOf(error)}`, { cause: error });
    const during = this.#episodeStep === 0 ? 'reset' : `step ${this.#episodeStep} of the episode`;
    const place = placeInOwnCode(error);
    throw new EnvError(
      'env-threw',
      `${this.spec.id} threw in ${during}: ${messageOf(error)}${place === undefined ? '' : ` (${place})`}`,
      { cause: error },
    );
  }

  #fail(code: EnvErrorCode, message: string): never {
    return fail(code, `${this.spec.id}: ${message}`);
  }
}

/** Marks every number as not written. */
function erase(obs: Float32Array): void {
  for (let i = 0; i < obs.length; i++) obs[i] = Number.NaN;
}
