/** An environment in Python as one of Keel's. */
import { Rng } from '../../random/rng.ts';
import {
  checkSeed,
  type Env,
  type OutsideEnv,
  type Picture,
  type ResetOptions,
  type StepResult,
  stepResult,
} from '../env.ts';
import { fail } from '../errors.ts';
import { countOf, fieldsOf, type Json, numberFromJson, numberToJson } from '../plain-data.ts';
import type { Space } from '../spaces.ts';
import { Episode } from './episode.ts';
import { TERMINATED, TRUNCATED } from './frames.ts';
import type { Host, HostOptions } from './host.ts';
import type { Described, Member } from './member.ts';
import { type Place, placeFor } from './shares.ts';
import type { Staged } from './staged.ts';

/** Seeds that every Python environment takes: NumPy's older generators and `random` included. */
const SEEDS = 2 ** 31;
/** Where an environment names no pace of its own. */
const USUAL_FPS = 30;

/** Starts the process that one will be made in, without waiting until it can. */
export function startPython(options: HostOptions, isQuiet: boolean): void {
  placeFor(options).host.begin(isQuiet);
}

/** Makes one in this thread's process. */
export function pythonEnv(options: HostOptions): Env {
  const place = placeFor(options);
  return new PythonEnv(place, place.host.add(), options.config.info);
}

class PythonEnv implements Env, OutsideEnv {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly rewardTerms: readonly string[] = [];
  readonly measures: readonly string[];
  readonly outside: OutsideEnv = this;
  readonly limit: number | null;
  readonly picture?: () => Picture;
  beganAnew: Float32Array | undefined;
  readonly #host: Host;
  readonly #staged: Staged;
  readonly #member: Member;
  readonly #described: Described;
  readonly #result: StepResult;
  readonly #measured: Measured;
  #rng = new Rng(0);
  #isFresh = true;
  /** The episode that was asked for ahead: what `reset` will be told, and the seed that comes of it. */
  #ahead: { readonly seed: number | undefined; readonly own: number } | undefined;

  constructor(
    { host, staged }: Place,
    { member, described }: { readonly member: Member; readonly described: Described },
    info: readonly string[],
  ) {
    this.#host = host;
    this.#staged = staged;
    this.#member = member;
    this.#described = described;
    this.observationSpace = described.observationSpace;
    this.actionSpace = described.actionSpace;
    this.limit = described.limit;
    this.measures = info.map(name => name.replaceAll(/[^\w.-]/g, '_'));
    this.#measured = new Measured(info.length);
    this.#result = { ...stepResult(), ...(info.length > 0 && { measures: this.#measured.values }) };
    if (described.renders)
      this.picture = () => ({ ...host.render(member), stepSeconds: 1 / (described.fps ?? USUAL_FPS) });
  }

  /**
   * Every episode has a seed of its own, drawn from that of the stream: so it can be repeated, by whatever process. The first
   * after a seed has that one, where Python takes it.
   */
  reset({ seed = this.#usualSeed() }: ResetOptions, obs: Float32Array): void {
    const own = this.#ahead?.seed === seed ? this.#ahead?.own : undefined;
    this.#ahead = undefined;
    this.#isFresh = false;
    this.#begin(own ?? this.#ownSeed(seed), obs);
  }

  #usualSeed(): number | undefined {
    return this.#isFresh ? 0 : undefined;
  }

  #ownSeed(seed: number | undefined): number {
    if (seed !== undefined) this.#rng = new Rng(checkSeed(seed));
    return seed !== undefined && seed < SEEDS ? seed : this.#rng.integer(SEEDS);
  }

  stage(action: Float32Array): void {
    this.#staged.stage(this.#member, action);
  }

  stageReset({ seed = this.#usualSeed() }: ResetOptions): void {
    this.#ahead = { seed, own: this.#ownSeed(seed) };
    this.#staged.stageReset(this.#member, this.#ahead.own);
  }

  send(): void {
    this.#staged.send();
  }

  answers(): boolean {
    return this.#staged.answers();
  }

  later(): Promise<void> {
    return this.#staged.later();
  }

  step(action: Float32Array, obs: Float32Array): StepResult {
    const { episode } = this.#member;
    const taken = this.#staged.take(this.#member, action);
    const result = this.#result;
    const { measures } = taken;
    // A process that died has taken it along, and what was to happen in this step.
    const isLost = this.#member.lost !== undefined;
    if (isLost) {
      taken.observation.set(episode!.last);
      measures.fill(Number.NaN);
    }
    result.reward = isLost ? 0 : taken.reward;
    result.terminated = !isLost && (taken.flags & TERMINATED) !== 0;
    result.truncated = isLost || (!result.terminated && (taken.flags & TRUNCATED) !== 0);
    obs.set(taken.observation);
    if (measures.length > 0) this.#measured.take(measures);
    episode?.add(action, result.reward, taken.observation);
    return result;
  }

  state(): Json {
    const { episode } = this.#member;
    const saved =
      episode !== undefined && this.#described.hasState && this.#member.lost === undefined
        ? this.#stateOf(episode)
        : episode;
    return {
      rng: this.#rng.state() as unknown as Json,
      episode: saved?.toJson() ?? null,
      measured: this.#measured.state(),
    };
  }

  /** What it gives itself: the episode needs no actions then. */
  #stateOf(episode: Episode): Episode {
    const own = new Episode(episode.seed, this.#host.state(this.#member), this.#sizes);
    own.last.set(episode.last);
    return own;
  }

  restore(saved: unknown): void {
    const fields = fieldsOf(saved, ['rng', 'episode', 'measured'], 'the state of the Python environment');
    const rng = Rng.fromState(fields.rng);
    const episode = fields.episode === null ? undefined : Episode.fromJson(fields.episode, this.#sizes);
    this.#measured.restore(fields.measured);
    this.#rng = rng;
    this.beganAnew = undefined;
    this.#ahead = undefined;
    this.#isFresh = episode === undefined;
    if (episode === undefined) {
      this.#member.episode = undefined;
      return;
    }
    // Who goes on by parts restores after each what is there already.
    const { episode: now, lost } = this.#member;
    if (now && lost === undefined && JSON.stringify(now.toJson()) === JSON.stringify(episode.toJson()))
      return;
    this.#member.episode = undefined;
    const problem = this.#host.repeat(this.#member, episode);
    if (problem === undefined) {
      this.#member.episode = episode;
      this.#member.lost = undefined;
      return;
    }
    const first = new Float32Array(this.observationSpace.flatSize);
    this.#begin(this.#rng.integer(SEEDS), first);
    this.beganAnew = first;
    this.#member.notices.push(
      `an environment could not go on in the middle of its episode (${problem}) and began another: with get_state and set_state it could`,
    );
  }

  notices(): string[] {
    return this.#member.notices.splice(0);
  }

  close(): void {
    this.#host.drop(this.#member);
  }

  #begin(seed: number, obs: Float32Array): void {
    this.beganAnew = undefined;
    this.#measured.begin();
    this.#staged.reset(this.#member, seed, obs);
    const episode = new Episode(seed, null, this.#sizes);
    episode.last.set(obs);
    this.#member.episode = episode;
  }

  get #sizes(): { obsSize: number; actionSize: number } {
    return { obsSize: this.observationSpace.flatSize, actionSize: this.actionSpace.flatSize };
  }
}

/**
 * Numbers of `info`, of which a step may lack some: what is logged of one is its mean over the steps that had it. A vector
 * sums what each step gives and divides by the steps, so each gives what the mean so far, times the steps so far, has grown by.
 */
class Measured {
  readonly values: Float64Array;
  #sums: Float64Array;
  #counts: Float64Array;
  #steps = 0;

  constructor(count: number) {
    this.values = new Float64Array(count);
    this.#sums = new Float64Array(count);
    this.#counts = new Float64Array(count);
  }

  begin(): void {
    this.#sums.fill(0);
    this.#counts.fill(0);
    this.#steps = 0;
  }

  take(found: Float64Array): void {
    const before = this.#steps++;
    for (let i = 0; i < found.length; i++) {
      const value = found[i];
      const had = this.#counts[i];
      const meanBefore = had > 0 ? this.#sums[i] / had : 0;
      if (Number.isFinite(value)) {
        this.#sums[i] += value;
        this.#counts[i]++;
      }
      const count = this.#counts[i];
      const mean = count > 0 ? this.#sums[i] / count : 0;
      this.values[i] = count === this.#steps ? value : mean * this.#steps - meanBefore * before;
    }
  }

  state(): Json {
    return { steps: this.#steps, sums: [...this.#sums].map(numberToJson), counts: [...this.#counts] };
  }

  restore(saved: unknown): void {
    const { steps, sums, counts } = fieldsOf(saved, ['steps', 'sums', 'counts'], 'measured');
    const { length } = this.values;
    if (!Array.isArray(sums) || !Array.isArray(counts) || sums.length !== length || counts.length !== length)
      fail('state-invalid', 'measured is of other numbers of info: resume with those that it was saved with');
    this.#steps = countOf(steps, 'measured.steps');
    this.#sums = Float64Array.from(sums as unknown[], (value, i) =>
      numberFromJson(value, `measured.sums[${i}]`),
    );
    this.#counts = Float64Array.from(counts as unknown[], (value, i) =>
      countOf(value, `measured.counts[${i}]`),
    );
  }
}
