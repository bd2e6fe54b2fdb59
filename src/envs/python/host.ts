/**
 * A Python process and the environments in it. They are stepped by one frame for all. A process that dies or hangs is started
 * again, and its environments are taken to where they were by the same actions from the same seeds: what is collected is what
 * it would have been.
 */

import { isMainThread } from 'node:worker_threads';
import { jsonOf } from '../../base/json.ts';
import { EnvError, fail } from '../errors.ts';
import type { Space } from '../spaces.ts';
import { Child, type ChildConfig, ChildGone, errorOf, type Told, ToldError } from './child.ts';
import type { Episode } from './episode.ts';
import type { Python } from './find-python.ts';
import { type Ask, answerLayout, FAILED } from './frames.ts';
import { spaceFromPython } from './spaces-from-python.ts';

/** What the Python side says of an environment that it has made. */
export interface Described {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Steps after which Gymnasium's wrapper would have cut an episode. */
  readonly limit: number | null;
  /** Whether it has get_state and set_state. */
  readonly hasState: boolean;
  readonly seeding: 'argument' | 'method' | 'none';
  readonly renders: boolean;
  readonly fps: number | null;
}

/** An environment of the process, as the host knows it. */
export interface Member {
  /** Its number in the process; another one after each start. */
  index: number;
  /** Where its episode is; undefined before the first. */
  episode: Episode | undefined;
  /** Why its episode cannot go on, after the process was started again. */
  lost: string | undefined;
  readonly notices: string[];
  /** The action that waits to be taken. */
  readonly action: Float32Array;
  /** The seed of the episode that waits to be begun. */
  seed: number;
  /** Of the step that was taken last or the episode that was begun, until it is fetched. */
  readonly step: {
    isThere: boolean;
    reward: number;
    flags: number;
    readonly observation: Float32Array;
    readonly measures: Float64Array;
    told: Told | undefined;
  };
}

/** What an environment is asked to do along with others. */
type Together = 'step' | 'reset';

/** How a host is started, and how long it may fail. */
export interface HostOptions {
  /** What errors call the environment. */
  readonly what: string;
  readonly python: Python;
  readonly config: ChildConfig;
  /** Starts again that are allowed in so many frames. */
  readonly restarts: number;
}

/** After so many frames earlier deaths are forgotten. */
const FRAMES_TO_FORGIVE = 10_000;
/** Deaths at one and the same call: then it is the call. */
const MOST_TRIES = 3;
/** Starts that are tried before there has been an environment. */
const MOST_STARTS = 2;
/** How long a process without environments is kept, where the next one may be made soon. */
const LINGER_MS = 3000;

const hosts = new Map<string, Host>();

let share = '';
/** Makes environments in another process than those of the same kind that are made otherwise, or in another share. */
export function inShare<T>(name: string, make: () => T): T {
  const before = share;
  share = name;
  try {
    return make();
  } finally {
    share = before;
  }
}

/** Ends the process of a share, with whatever is in it. */
export function endShare(name: string): void {
  for (const host of [...hosts.values()]) if (host.share === name) host.end();
}

/** The process of this thread, or of the share, for such environments; started when the first is made. */
export function hostFor(options: HostOptions): Host {
  const key = share + JSON.stringify(options);
  const host = hosts.get(key) ?? new Host(options, share, () => hosts.delete(key));
  hosts.set(key, host);
  return host;
}

export class Host {
  readonly #options: HostOptions;
  /** Whose it is, where nobody else comes for it. */
  readonly share: string;
  readonly #forget: () => void;
  readonly #members = new Set<Member>();
  /** Who waits for what, or has been sent it. */
  #staged: Member[] = [];
  #together: Together = 'step';
  /** The process that is at work on what was staged. */
  #sentTo: Child | undefined;
  /** Whether the process has been asked for its first environment ahead. */
  #isMaking = false;
  #actions = new Float32Array(0);
  #child: Child | undefined;
  #described: Described | undefined;
  #deaths = 0;
  #framesSince = 0;
  #lingering: NodeJS.Timeout | undefined;

  constructor(options: HostOptions, share: string, forget: () => void) {
    this.#options = options;
    this.share = share;
    this.#forget = forget;
  }

  /** Starts the process and lets it make its first environment, which `add` takes. What fails does so again there; a quiet one prints no traceback. */
  begin(isQuiet: boolean): void {
    if (this.#child !== undefined) return;
    try {
      this.#child = this.#start();
    } catch {
      return;
    }
    this.#child.room(1)[0] = 1;
    this.#child.send('make', isQuiet ? 1 : 0);
    this.#isMaking = true;
  }

  /** Makes one more environment in the process. */
  add(): { member: Member; described: Described } {
    clearTimeout(this.#lingering);
    let made: { index: number; described: Described };
    try {
      made = this.#call(child => this.#make(child));
    } catch (error) {
      if (this.#members.size === 0) this.#close();
      throw error;
    }
    const { index, described } = made;
    this.#described = described;
    const { observationSpace } = described;
    const member: Member = {
      index,
      episode: undefined,
      lost: undefined,
      notices: [],
      action: new Float32Array(described.actionSpace.flatSize),
      seed: 0,
      step: {
        isThere: false,
        reward: 0,
        flags: 0,
        observation: new Float32Array(observationSpace.flatSize),
        measures: new Float64Array(this.#options.config.info.length),
        told: undefined,
      },
    };
    this.#members.add(member);
    return { member, described };
  }

  /** Closes an environment; with the last one the process ends. */
  drop(member: Member): void {
    if (!this.#members.delete(member)) return;
    // What is at work on something that nobody waits for any more is ended with the last of them.
    if (this.#child !== undefined && !this.#child.isAsked) {
      try {
        this.#child.room(4).writeUInt32LE(member.index, 0);
        this.#child.ask('drop', 4);
      } catch (error) {
        if (error instanceof ToldError) {
          if (this.#members.size === 0) this.#close();
          throw this.#errorOf(error.told);
        }
        this.#child = undefined;
      }
    }
    if (this.#members.size > 0) return;
    if (!isMainThread || this.share !== '') this.#close();
    else this.#lingering = setTimeout(() => this.#close(), LINGER_MS).unref();
  }

  /** Begins an episode, and those of all others whose reset was staged, and writes its first observation. Throws what the environment threw. */
  reset(member: Member, seed: number, observation: Float32Array): void {
    const { step } = member;
    if (member.seed !== seed || !(step.isThere || this.#isStaged('reset', member)))
      this.stageReset(member, seed);
    if (!step.isThere) this.#flush();
    step.isThere = false;
    if (step.told !== undefined) throw this.#errorOf(step.told);
    observation.set(step.observation);
  }

  /** Notes that an episode is to begin. */
  stageReset(member: Member, seed: number): void {
    member.episode = undefined; // where the process dies now, there is nothing to repeat
    member.lost = undefined;
    member.seed = seed;
    this.#stage('reset', member);
  }

  /** Notes an action: the next `take` sends all that were noted, in one frame. */
  stage(member: Member, action: Float32Array): void {
    member.action.set(action);
    this.#stage('step', member);
  }

  #stage(what: Together, member: Member): void {
    // What was staged before and not fetched is of a call that failed.
    if (this.#sentTo !== undefined || this.#together !== what) {
      this.#settle();
      this.#staged = [];
    }
    this.#together = what;
    member.step.isThere = false;
    if (!this.#staged.includes(member)) this.#staged.push(member);
  }

  #isStaged(what: Together, member: Member): boolean {
    return this.#together === what && this.#staged.includes(member);
  }

  /** Sends what was staged, without waiting for the answer. */
  send(): void {
    if (this.#staged.length === 0 || this.#sentTo !== undefined || this.#child === undefined) return;
    this.#write(this.#child);
  }

  /** Waits for the answer to what was sent; false where that should be waited for by `later`. */
  answers(): boolean {
    return this.#sentTo === undefined || this.#sentTo.begins();
  }

  async later(): Promise<void> {
    await this.#sentTo?.later();
  }

  /** The step of the action that was staged, or else of this one; all that were staged are taken. Throws what the environment threw. */
  take(member: Member, action: Float32Array): Member['step'] {
    const { step } = member;
    if (!step.isThere) {
      if (!this.#isStaged('step', member)) this.stage(member, action);
      this.#flush();
    }
    step.isThere = false;
    if (step.told !== undefined) throw this.#errorOf(step.told);
    return step;
  }

  /** Takes the answer for all that were staged. */
  #flush(): void {
    try {
      this.#call(child => this.#receive(child));
    } finally {
      this.#staged = [];
      this.#sentTo = undefined;
    }
    if (++this.#framesSince >= FRAMES_TO_FORGIVE) this.#deaths = 0;
  }

  /** Those that can go on: an episode that was lost with its process cannot. */
  #going(): Member[] {
    return this.#together === 'reset' ? this.#staged : this.#staged.filter(({ lost }) => lost === undefined);
  }

  #write(child: Child): void {
    const going = this.#going();
    const count = going.length;
    if (count === 0) return;
    this.#sentTo = child;
    if (this.#together === 'reset') {
      const room = child.room(4 + 12 * count);
      room.writeUInt32LE(count, 0);
      going.forEach(({ index, seed }, k) => {
        room.writeUInt32LE(index, 4 + 4 * k);
        room.writeBigInt64LE(BigInt(seed), 4 + 4 * count + 8 * k);
      });
      child.send('reset', room.length);
      return;
    }
    const size = this.#described!.actionSpace.flatSize;
    const room = child.room(4 + 4 * count + 4 * count * size);
    room.writeUInt32LE(count, 0);
    // An own array, because the room need not begin where numbers may.
    if (this.#actions.length !== count * size) this.#actions = new Float32Array(count * size);
    for (let k = 0; k < count; k++) {
      room.writeUInt32LE(going[k].index, 4 + 4 * k);
      this.#actions.set(going[k].action, k * size);
    }
    room.set(new Uint8Array(this.#actions.buffer), 4 + 4 * count);
    child.send('step', room.length);
  }

  #receive(child: Child): void {
    if (this.#sentTo !== child) {
      this.#sentTo = undefined;
      this.#write(child);
    }
    for (const { step } of this.#staged) {
      step.told = undefined;
      step.isThere = true;
    }
    if (this.#sentTo === undefined) return;
    const going = this.#going();
    const count = going.length;
    const { payload, layout } = this.#checked(this.#together, child.receive(), count);
    const obsSize = this.#described!.observationSpace.flatSize;
    const measureCount = this.#options.config.info.length;
    const told = payload.length > layout.bytes ? toldIn(payload.subarray(layout.bytes)) : [];
    const rows = rowOf(payload, layout.observations, count * obsSize);
    for (let k = 0; k < count; k++) {
      const { step } = going[k];
      step.reward = payload.readDoubleLE(8 * k);
      step.flags = payload[layout.flags + k];
      for (let m = 0; m < measureCount; m++)
        step.measures[m] = payload.readDoubleLE(layout.measures + 8 * (k * measureCount + m));
      const { observation } = step;
      if (obsSize > 64) observation.set(rows.subarray(k * obsSize, (k + 1) * obsSize));
      else for (let i = 0, at = k * obsSize; i < obsSize; i++) observation[i] = rows[at + i];
      if (step.flags & FAILED) step.told = told.find(({ at }) => at === k);
    }
  }

  /** Takes an answer that nobody waits for any more: the next question needs the pipe. */
  #settle(): void {
    const child = this.#sentTo;
    this.#sentTo = undefined;
    if (child === undefined || child !== this.#child || !child.isAsked) return;
    try {
      child.receive();
    } catch (error) {
      if (error instanceof ChildGone) this.#child = undefined;
      else if (!(error instanceof ToldError)) throw error;
    }
  }

  /** What an environment of its own gives for its state. */
  state(member: Member): string {
    return this.#call(child => {
      child.room(4).writeUInt32LE(member.index, 0);
      return child.ask('state', 4).toString('utf8');
    });
  }

  /** A picture of what is there: width, height, and three bytes a pixel. */
  render(member: Member): { width: number; height: number; rgb: Uint8Array } {
    return this.#call(child => {
      child.room(4).writeUInt32LE(member.index, 0);
      const answer = child.ask('render', 4);
      const [width, height] = [answer.readUInt32LE(0), answer.readUInt32LE(4)];
      const rgb = Uint8Array.from(answer.subarray(8));
      if (rgb.length !== 3 * width * height)
        throw new EnvError(
          'python-failed',
          `a picture of ${width} x ${height} came with ${rgb.length} bytes`,
        );
      return { width, height, rgb };
    });
  }

  /** Takes an environment to where an episode was. Says why it could not; undefined where it is there, to the bit. */
  repeat(member: Member, episode: Episode): string | undefined {
    return this.#call(child => this.#repeatIn(child, member, episode));
  }

  #repeatIn(child: Child, member: Member, episode: Episode): string | undefined {
    if (!episode.isWhole) return 'its episode was too long to be kept';
    const { seed, base, steps, actions } = episode;
    const text = Buffer.from(base ?? '', 'utf8');
    const padded = Math.ceil(text.length / 4) * 4;
    const bytes = 24 + padded + actions.byteLength;
    const room = child.room(bytes).fill(0, 0, 24 + padded);
    room.writeUInt32LE(member.index, 0);
    room.writeUInt32LE(steps, 4);
    room.writeBigInt64LE(BigInt(seed), 8);
    room.writeUInt32LE(text.length, 16);
    text.copy(room, 24);
    room.set(new Uint8Array(actions.buffer, actions.byteOffset, actions.byteLength), 24 + padded);
    try {
      const { payload, layout } = this.#checked('replay', child.ask('replay', bytes));
      // Of a state without steps there is no observation to compare.
      if (base !== null && steps === 0) return undefined;
      const seen = rowOf(payload, layout.observations, episode.last.length);
      return episode.agrees(seen, payload.readDoubleLE(0))
        ? undefined
        : 'the same actions from the same seed led elsewhere';
    } catch (error) {
      if (error instanceof ToldError) return error.told.message.split('\n')[0];
      throw error;
    }
  }

  #make(child: Child): { index: number; described: Described } {
    if (!this.#isMaking) child.send('make', 0);
    this.#isMaking = false;
    const json = jsonOf(child.receive().toString('utf8')) as Readonly<Record<string, unknown>>;
    const { index, observation, action, ...rest } = json;
    const described = {
      ...(rest as unknown as Described),
      observationSpace: spaceFromPython(observation),
      actionSpace: spaceFromPython(action),
    };
    return { index: index as number, described };
  }

  /** The parts of an answer for so many, if it has their size. */
  #checked(ask: Ask, payload: Buffer, count = 1) {
    const layout = answerLayout(
      count,
      this.#options.config.info.length,
      this.#described!.observationSpace.flatSize,
    );
    if (payload.length < layout.bytes)
      throw new ChildGone(`its answer to ${ask} has ${payload.length} bytes, ${layout.bytes} are right`);
    return { payload, layout };
  }

  /** Asks something of the process, which is started (again) where there is none. */
  #call<T>(ask: (child: Child) => T): T {
    for (let tries = 1; ; tries++) {
      try {
        this.#child ??= this.#start();
        return ask(this.#child);
      } catch (error) {
        if (error instanceof ToldError) throw this.#errorOf(error.told);
        if (!(error instanceof ChildGone)) throw error;
        this.#lose(error.message, tries);
      }
    }
  }

  /** Counts a death; too many are an error. */
  #lose(reason: string, tries: number): void {
    this.#child?.end();
    this.#child = undefined;
    this.#isMaking = false;
    const { what, restarts } = this.#options;
    // Somebody may have killed it; what ends by itself does so again.
    if (this.#described === undefined && tries >= MOST_STARTS)
      fail('python-failed', `the Python process of ${what} did not get through its start: ${reason}`);
    if (this.#described === undefined) return;
    this.#deaths++;
    this.#framesSince = 0;
    if (tries >= MOST_TRIES)
      fail('python-failed', `its Python process died ${tries} times at the same call: ${reason}`);
    if (this.#deaths > restarts)
      fail(
        'python-failed',
        `its Python process has died ${this.#deaths} times, ${restarts} are allowed in ${FRAMES_TO_FORGIVE} steps (envOptions.restarts): ${reason}`,
      );
    this.#reason = reason;
  }

  /** Why the process was lost that the next one replaces. */
  #reason: string | undefined;

  #start(): Child {
    const { python, config } = this.#options;
    const child = new Child(python, config);
    try {
      let first: Member | undefined;
      const lost: string[] = [];
      for (const member of this.#members) {
        first ??= member;
        member.index = this.#make(child).index;
        member.lost = member.episode && this.#repeatIn(child, member, member.episode);
        if (member.lost !== undefined) lost.push(member.lost);
      }
      if (this.#reason !== undefined && first !== undefined) {
        const rest =
          lost.length === 0
            ? 'all go on where they were'
            : `${lost.length} cannot go on (${lost[0]}), their episodes are cut`;
        first.notices.push(
          `a Python process with ${this.#members.size} environments was started again: ${this.#reason}; ${rest}`,
        );
      }
      this.#reason = undefined;
      return child;
    } catch (error) {
      child.end();
      throw error;
    }
  }

  #errorOf(told: Told): EnvError {
    return errorOf(told, this.#options.what, this.#options.python.executable);
  }

  end(): void {
    this.#members.clear();
    this.#close();
  }

  #close(): void {
    this.#forget();
    this.#child?.quit();
    this.#child = undefined;
  }
}

/** So many numbers in an answer; they stay until the next question. */
function rowOf(payload: Buffer, at: number, length: number): Float32Array {
  return new Float32Array(payload.buffer, payload.byteOffset + at, length);
}

const toldIn = (bytes: Buffer): readonly (Told & { readonly at: number })[] =>
  jsonOf(bytes.toString('utf8')) as readonly (Told & { readonly at: number })[];
