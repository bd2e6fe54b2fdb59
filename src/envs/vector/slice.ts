import type { Env, OutsideEnv, ResetOptions } from '../env.ts';
import { EnvError, errorCode, fail, messageOf } from '../errors.ts';
import { countOf, fieldsOf, type Json, numberFromJson, numberToJson } from '../plain-data.ts';
import type { VectorMemory, VectorShape } from './arrays.ts';
import { nameOf } from './vector.ts';

/** Reset options that let the random stream go on. */
const CONTINUE = {};

/** An environment, its rows of the vector's memory, and its episode so far. */
interface Running {
  readonly env: Env;
  readonly observation: Float32Array; // (obsSize)
  readonly finalObservation: Float32Array; // (obsSize)
  readonly action: Float32Array; // (actionSize)
  readonly episodeTerms: Float64Array; // (T)
  readonly episodeMeasures: Float64Array; // (M)
  episodeReturn: number;
  episodeLength: number;
}

/**
 * Some of a vector's environments: steps them one after the other, starts the next episode where one ends, and keeps
 * count. In one thread a single slice is the whole vector; with workers each has one. The two kinds of vector differ only
 * in who calls this, so their results are the same to the bit.
 */
export class EnvSlice {
  readonly #first: number;
  readonly #shape: VectorShape;
  readonly #memory: VectorMemory;
  readonly #running: readonly Running[];
  readonly #onCurrent: (index: number) => void;
  /** Of one of the environments that another process has, who speaks for all of them. */
  readonly #outside: OutsideEnv | undefined;
  /** Environments whose next episode was asked for, by their place in the slice. */
  readonly #ended: number[] = [];
  /** Index in the vector of the environment at work, -1 between calls. */
  #current = -1;

  /** `envs` are number `first` and following; `onCurrent` hears of each index before its environment runs, and of -1 after all. */
  constructor(
    envs: readonly Env[],
    first: number,
    shape: VectorShape,
    memory: VectorMemory,
    onCurrent: (index: number) => void = () => {},
  ) {
    this.#first = first;
    this.#shape = shape;
    this.#memory = memory;
    this.#onCurrent = onCurrent;
    this.#outside = envs.find(({ outside }) => outside !== undefined)?.outside;
    this.#running = envs.map((env, k) => {
      const row = (array: Float32Array, size: number): Float32Array =>
        array.subarray((first + k) * size, (first + k + 1) * size);
      return {
        env,
        observation: row(memory.observations, shape.obsSize),
        finalObservation: row(memory.finalObservations, shape.obsSize),
        action: row(memory.actions, shape.actionSize),
        episodeTerms: new Float64Array(shape.termCount),
        episodeMeasures: new Float64Array(shape.measureCount),
        episodeReturn: 0,
        episodeLength: 0,
      };
    });
  }

  /** Asks environments of another process for new episodes, which goes to work; `seeds` are those of the whole vector. */
  sendReset(seeds: readonly number[] | undefined): void {
    if (this.#outside === undefined) return;
    for (const [k, { env }] of this.#running.entries())
      env.outside?.stageReset(resetOf(seeds, this.#first + k));
    this.#outside.send();
  }

  /** Starts a new episode in each. */
  reset(seeds: readonly number[] | undefined): void {
    const memory = this.#memory;
    this.#each((running, i) => {
      if (seeds) {
        memory.seeds[i] = seeds[i];
        memory.steps[i] = 0;
      }
      startEpisode(running, resetOf(seeds, i), memory.progress[0]);
      memory.rewards[i] = 0;
      memory.terminated[i] = 0;
      memory.truncated[i] = 0;
      memory.blownUp[i] = 0;
    });
  }

  /** Steps each with its row of actions. */
  step(): void {
    this.send();
    this.takeStep();
    this.takeEpisodes();
  }

  /** Sends the actions to environments of another process, which goes to work. */
  send(): void {
    if (this.#outside === undefined) return;
    for (const { env, action } of this.#running) env.outside?.stage(action);
    this.#outside.send();
  }

  /** Waits for what was sent; false where that takes so long that `later` should wait for it. */
  answers(): boolean {
    return this.#outside?.answers() ?? true;
  }

  /** The same, and leaves the thread free meanwhile. */
  async later(): Promise<void> {
    await this.#outside?.later();
  }

  /** Takes the results of the steps. Where an episode ends in another process, the next is asked for, and `takeEpisodes` begins it. */
  takeStep(): void {
    const memory = this.#memory;
    const { termCount, measureCount } = this.#shape;
    try {
      for (let k = 0; k < this.#running.length; k++) {
        const running = this.#running[k];
        const i = this.#first + k;
        this.#current = i;
        this.#onCurrent(i);
        memory.steps[i]++;
        const result = running.env.step(running.action, running.observation);
        memory.rewards[i] = result.reward;
        memory.terminated[i] = result.terminated ? 1 : 0;
        memory.truncated[i] = result.truncated ? 1 : 0;
        memory.blownUp[i] = result.blownUp ? 1 : 0;
        running.episodeReturn += result.reward;
        running.episodeLength++;
        for (let t = 0; t < termCount; t++) running.episodeTerms[t] += result.rewardTerms[t];
        for (let m = 0; m < measureCount; m++) running.episodeMeasures[m] += result.measures![m];
        if (result.terminated || result.truncated) {
          running.finalObservation.set(running.observation);
          memory.episodeReturns[i] = running.episodeReturn;
          memory.episodeLengths[i] = running.episodeLength;
          memory.episodeRewardTerms.set(running.episodeTerms, i * termCount);
          memory.episodeMeasures.set(running.episodeMeasures, i * measureCount);
          const { outside } = running.env;
          if (outside === undefined) startEpisode(running, CONTINUE, memory.progress[0]);
          else {
            outside.stageReset(CONTINUE);
            this.#ended.push(k);
          }
        }
      }
    } catch (error) {
      throw this.#named(error);
    }
    this.#leave();
    if (this.#ended.length > 0) this.#outside?.send();
  }

  /** Whether `takeStep` has asked for episodes. */
  get hasEnded(): boolean {
    return this.#ended.length > 0;
  }

  /** Takes the first observations of the episodes that were asked for. */
  takeEpisodes(): void {
    if (this.#ended.length === 0) return;
    try {
      for (const k of this.#ended.splice(0)) {
        this.#current = this.#first + k;
        this.#onCurrent(this.#current);
        startEpisode(this.#running[k], CONTINUE, this.#memory.progress[0]);
      }
    } catch (error) {
      throw this.#named(error);
    }
    this.#leave();
  }

  /** The state of each. */
  state(): Json[] {
    const states: Json[] = [];
    this.#each((running, i) => {
      states.push({
        env: running.env.state(),
        observation: Array.from(running.observation, numberToJson),
        seed: this.#memory.seeds[i],
        steps: this.#memory.steps[i],
        episodeReturn: numberToJson(running.episodeReturn),
        episodeLength: running.episodeLength,
        episodeTerms: Array.from(running.episodeTerms, numberToJson),
        ...(this.#shape.measureCount > 0
          ? { episodeMeasures: Array.from(running.episodeMeasures, numberToJson) }
          : {}),
      });
    });
    return states;
  }

  /** Restores each from the states of the whole vector. */
  restore(states: readonly unknown[]): void {
    const memory = this.#memory;
    this.#each((running, i) => {
      const { measureCount } = this.#shape;
      const fields = measureCount > 0 ? [...STATE_FIELDS, 'episodeMeasures'] : STATE_FIELDS;
      const saved = fieldsOf(states[i], fields, `state ${i}`);
      memory.seeds[i] = countOf(saved.seed, 'seed');
      memory.steps[i] = countOf(saved.steps, 'steps');
      running.env.restore(saved.env);
      running.observation.set(numbersOf(saved.observation, this.#shape.obsSize, 'observation'));
      running.episodeTerms.set(numbersOf(saved.episodeTerms, this.#shape.termCount, 'episodeTerms'));
      if (measureCount > 0)
        running.episodeMeasures.set(numbersOf(saved.episodeMeasures, measureCount, 'episodeMeasures'));
      running.episodeReturn = numberFromJson(saved.episodeReturn, 'episodeReturn');
      running.episodeLength = countOf(saved.episodeLength, 'episodeLength');
      const anew = running.env.outside?.beganAnew;
      if (anew) {
        running.observation.set(anew);
        beginCounts(running);
      }
      memory.rewards[i] = 0;
      memory.terminated[i] = 0;
      memory.truncated[i] = 0;
      memory.blownUp[i] = 0;
    });
  }

  /** What happened to environments of other processes since the last time, in sentences. */
  takeNotices(): string[] {
    if (this.#outside === undefined) return [];
    return this.#running.flatMap(({ env }) => env.outside?.notices() ?? []);
  }

  /** Closes all, and then throws what the first of them threw. */
  close(): void {
    let failure: EnvError | undefined;
    for (const [k, { env }] of this.#running.entries()) {
      try {
        env.close?.();
      } catch (error) {
        this.#current = this.#first + k;
        failure ??= this.#named(error);
      }
    }
    if (failure) throw failure;
  }

  #each(visit: (running: Running, index: number) => void): void {
    try {
      for (let k = 0; k < this.#running.length; k++) {
        this.#current = this.#first + k;
        this.#onCurrent(this.#current);
        visit(this.#running[k], this.#current);
      }
    } catch (error) {
      throw this.#named(error);
    }
    this.#leave();
  }

  #leave(): void {
    this.#current = -1;
    this.#onCurrent(-1);
  }

  /** The error with the environment's place in it. */
  #named(error: unknown): EnvError {
    const index = this.#current;
    this.#leave();
    const place = { index, seed: this.#memory.seeds[index], step: this.#memory.steps[index] };
    const id = this.#running[index - this.#first].env.spec?.id;
    const message = `${nameOf(place, this.#shape.envCount, id)}: ${messageOf(error)}`;
    return new EnvError(errorCode(error) ?? 'env-threw', message, { cause: error, place });
  }
}

const STATE_FIELDS = [
  'env',
  'observation',
  'seed',
  'steps',
  'episodeReturn',
  'episodeLength',
  'episodeTerms',
];

const resetOf = (seeds: readonly number[] | undefined, i: number): ResetOptions =>
  seeds ? { seed: seeds[i] } : CONTINUE;

function startEpisode(running: Running, options: { readonly seed?: number }, progress: number): void {
  if (!Number.isNaN(progress)) running.env.setProgress?.(progress);
  running.env.reset(options, running.observation);
  beginCounts(running);
}

function beginCounts(running: Running): void {
  running.episodeReturn = 0;
  running.episodeLength = 0;
  running.episodeTerms.fill(0);
  running.episodeMeasures.fill(0);
}

function numbersOf(json: unknown, length: number, where: string): number[] {
  if (!Array.isArray(json) || json.length !== length) {
    fail('state-invalid', `${where} has ${Array.isArray(json) ? json.length : 'no'} numbers, not ${length}`);
  }
  return json.map((value, i) => numberFromJson(value, `${where}[${i}]`));
}
