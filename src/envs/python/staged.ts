/**
 * Steps and resets of the environments of one process, which travel together: what is noted for each is sent in one frame,
 * and the answer is for all. Where the process dies meanwhile, the same is asked of the next one.
 */
import { jsonOf } from '../../base/json.ts';
import type { Child } from './child.ts';
import type { Told } from './faults.ts';
import { answerLayout, FAILED, rowOf } from './frames.ts';
import type { Host } from './host.ts';
import type { Member } from './member.ts';

/** What environments are asked to do together. */
type Together = 'step' | 'reset';

/** What was noted for environments of a process, until it is answered. */
export class Staged {
  readonly #host: Host;
  /** Who waits for what, or has been sent it. */
  #staged: Member[] = [];
  #together: Together = 'step';
  /** The process that is at work on what was staged. */
  #sentTo: Child | undefined;
  #actions = new Float32Array(0);

  constructor(host: Host) {
    this.#host = host;
  }

  /** Notes an action: the next `take` sends all that were noted, in one frame. */
  stage(member: Member, action: Float32Array): void {
    member.action.set(action);
    this.#stage('step', member);
  }

  /** Notes that an episode is to begin. */
  stageReset(member: Member, seed: number): void {
    member.episode = undefined; // where the process dies now, there is nothing to repeat
    member.lost = undefined;
    member.seed = seed;
    this.#stage('reset', member);
  }

  #stage(what: Together, member: Member): void {
    // What was staged before and not fetched is of a call that failed.
    if (this.#sentTo !== undefined || this.#together !== what) {
      const before = this.#sentTo;
      this.#sentTo = undefined;
      this.#host.settle(before);
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
    const { child } = this.#host;
    if (this.#staged.length === 0 || this.#sentTo !== undefined || child === undefined) return;
    this.#write(child);
  }

  /** Waits for the answer to what was sent; false where that should be waited for by `later`. */
  answers(): boolean {
    return this.#sentTo === undefined || this.#sentTo.begins();
  }

  /** Waits for that answer and leaves the thread free meanwhile. */
  async later(): Promise<void> {
    await this.#sentTo?.later();
  }

  /** Begins an episode, and those of all others whose reset was staged, and writes its first observation. Throws what the environment threw. */
  reset(member: Member, seed: number, observation: Float32Array): void {
    const { step } = member;
    if (member.seed !== seed || !(step.isThere || this.#isStaged('reset', member)))
      this.stageReset(member, seed);
    if (!step.isThere) this.#flush();
    step.isThere = false;
    if (step.told !== undefined) throw this.#host.errorOf(step.told);
    observation.set(step.observation);
  }

  /** The step of the action that was staged, or else of this one; all that were staged are taken. Throws what the environment threw. */
  take(member: Member, action: Float32Array): Member['step'] {
    const { step } = member;
    if (!step.isThere) {
      if (!this.#isStaged('step', member)) this.stage(member, action);
      this.#flush();
    }
    step.isThere = false;
    if (step.told !== undefined) throw this.#host.errorOf(step.told);
    return step;
  }

  /** Takes the answer for all that were staged. */
  #flush(): void {
    try {
      this.#host.call(child => this.#receive(child));
    } finally {
      this.#staged = [];
      this.#sentTo = undefined;
    }
    this.#host.countFrame();
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
    const size = going[0].action.length;
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
    const measureCount = going[0].step.measures.length;
    const obsSize = going[0].step.observation.length;
    const payload = child.receive();
    const layout = answerLayout(this.#together, payload, { count, measureCount, obsSize });
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
}

const toldIn = (bytes: Buffer): readonly (Told & { readonly at: number })[] =>
  jsonOf(bytes.toString('utf8')) as readonly (Told & { readonly at: number })[];
