import { setImmediate as nextTurn } from 'node:timers/promises';

/** The clock takes a tenth of a microsecond, a third of a fast step. After a look that found little time gone, so many steps go by. */
const STEPS_BETWEEN_LOOKS = 32;
const LITTLE_MS = 1;

/** Gives the event loop its turn now and then, where steps block this thread: signals (Ctrl-C), timers and the page wait for it. */
export class Turns {
  readonly #everyMs: number;
  #givenAt = performance.now();
  #lookedAt = this.#givenAt;
  #stepsToLook = 0;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** To be asked after each step: whether it is time. */
  due(): boolean {
    if (--this.#stepsToLook >= 0) return false;
    const now = performance.now();
    this.#stepsToLook = now - this.#lookedAt < LITTLE_MS ? STEPS_BETWEEN_LOOKS : 0;
    this.#lookedAt = now;
    return now - this.#givenAt >= this.#everyMs;
  }

  async give(): Promise<void> {
    await nextTurn();
    this.#givenAt = performance.now();
  }
}
