/**
 * A Python process and the environments in it. A process that dies or hangs is started again, and its environments are taken
 * to where they were by the same actions from the same seeds: what is collected is what it would have been.
 */

import { isMainThread } from 'node:worker_threads';
import { jsonOf } from '../../base/json.ts';
import { EnvError, fail } from '../errors.ts';
import { Child, type ChildConfig } from './child.ts';
import type { Episode } from './episode.ts';
import { ChildGone, errorOf, type Told, ToldError } from './faults.ts';
import type { Python } from './find-python.ts';
import { type Described, describedFrom, type Member, newMember } from './member.ts';
import { replay } from './replay.ts';

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

/** The process and its environments; the next process, where that one has gone. */
export class Host {
  readonly #options: HostOptions;
  /** Whose it is, where nobody else comes for it. */
  readonly share: string;
  readonly #forget: () => void;
  readonly #members = new Set<Member>();
  /** Whether the process has been asked for its first environment ahead. */
  #isMaking = false;
  #child: Child | undefined;
  /** Whether it has ever had an environment. */
  #hasMade = false;
  #deaths = 0;
  #framesSince = 0;
  /** Why the process was lost that the next one replaces. */
  #reason: string | undefined;
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
      made = this.call(child => this.#make(child));
    } catch (error) {
      if (this.#members.size === 0) this.#close();
      throw error;
    }
    const { index, described } = made;
    this.#hasMade = true;
    const member = newMember(index, described, this.#measureCount);
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
          throw this.errorOf(error.told);
        }
        this.#child = undefined;
      }
    }
    if (this.#members.size > 0) return;
    if (!isMainThread || this.share !== '') this.#close();
    else this.#lingering = setTimeout(() => this.#close(), LINGER_MS).unref();
  }

  /** What an environment of its own gives for its state. */
  state(member: Member): string {
    return this.call(child => {
      child.room(4).writeUInt32LE(member.index, 0);
      return child.ask('state', 4).toString('utf8');
    });
  }

  /** A picture of what is there: width, height, and three bytes a pixel. */
  render(member: Member): { width: number; height: number; rgb: Uint8Array } {
    return this.call(child => {
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
    return this.call(child => replay(child, member.index, episode, this.#measureCount));
  }

  /** Asks something of the process, which is started (again) where there is none. */
  call<T>(ask: (child: Child) => T): T {
    for (let tries = 1; ; tries++) {
      try {
        this.#child ??= this.#start();
        return ask(this.#child);
      } catch (error) {
        if (error instanceof ToldError) throw this.errorOf(error.told);
        if (!(error instanceof ChildGone)) throw error;
        this.#lose(error.message, tries);
      }
    }
  }

  /** The process, where there is one. */
  get child(): Child | undefined {
    return this.#child;
  }

  /** Takes the answer of a process that nobody waits for any more: the next question needs the pipe. */
  settle(child: Child | undefined): void {
    if (child === undefined || child !== this.#child || !child.isAsked) return;
    try {
      child.receive();
    } catch (error) {
      if (error instanceof ChildGone) this.#child = undefined;
      else if (!(error instanceof ToldError)) throw error;
    }
  }

  /** Counts what was answered: after so much of it earlier deaths are forgotten. */
  countFrame(): void {
    if (++this.#framesSince >= FRAMES_TO_FORGIVE) this.#deaths = 0;
  }

  /** Counts a death; too many are an error. */
  #lose(reason: string, tries: number): void {
    this.#child?.end();
    this.#child = undefined;
    this.#isMaking = false;
    const { what, restarts } = this.#options;
    // Somebody may have killed it; what ends by itself does so again.
    if (!this.#hasMade && tries >= MOST_STARTS)
      fail('python-failed', `the Python process of ${what} did not get through its start: ${reason}`);
    if (!this.#hasMade) return;
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

  /** Starts a process, and takes the environments that there are to where they were. */
  #start(): Child {
    const { python, config } = this.#options;
    const child = new Child(python, config);
    try {
      let first: Member | undefined;
      const lost: string[] = [];
      for (const member of this.#members) {
        first ??= member;
        member.index = this.#make(child).index;
        member.lost = member.episode && replay(child, member.index, member.episode, this.#measureCount);
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

  #make(child: Child): { index: number; described: Described } {
    if (!this.#isMaking) child.send('make', 0);
    this.#isMaking = false;
    const json = jsonOf(child.receive().toString('utf8')) as Readonly<Record<string, unknown>>;
    return describedFrom(json);
  }

  /** What an environment threw, as an error of ours. */
  errorOf(told: Told): EnvError {
    return errorOf(told, this.#options.what, this.#options.python.executable);
  }

  get #measureCount(): number {
    return this.#options.config.info.length;
  }

  /** Ends the process, with whatever is in it. */
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
