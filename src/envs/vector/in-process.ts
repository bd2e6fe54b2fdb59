import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Env } from '../env.ts';
import { vectorMemory } from './arrays.ts';
import { Batch } from './batch.ts';
import { EnvSlice } from './slice.ts';
import { checkSameSpaces, shapeFor, type VectorEnv } from './vector.ts';

/** Steps block this thread: this often signals (Ctrl-C), timers and the page get their turn, in the middle of a rollout. */
const TURN_MS = 100;
/** The clock takes a tenth of a microsecond, a third of a fast step. After a look that found little time gone, so many steps go by. */
const STEPS_BETWEEN_LOOKS = 32;
const LITTLE_MS = 1;

/**
 * N environments in this thread, one after the other. Best for fast ones, such as all classic ones: handing a step to
 * another thread takes tens of microseconds, their steps take less than one.
 *
 * `make` gets the index of the environment to make; all must have the same spaces.
 */
export function inProcessVectorEnv(make: (index: number) => Env, envCount: number): VectorEnv {
  const first = make(0);
  const shape = shapeFor(first, envCount);
  const envs = [first, ...Array.from({ length: envCount - 1 }, (_, i) => make(i + 1))];
  checkSameSpaces(envs);
  const memory = vectorMemory(shape);
  const slice = new EnvSlice(envs, 0, shape, memory);
  let turnAt = performance.now();
  let lookedAt = turnAt;
  let stepsToLook = 0;
  const giveTurn = async (): Promise<void> => {
    await nextTurn();
    turnAt = performance.now();
  };
  return new Batch(first, shape, memory, {
    reset(seeds) {
      slice.reset(seeds);
      return undefined;
    },
    step() {
      slice.step();
      if (--stepsToLook >= 0) return undefined;
      const now = performance.now();
      stepsToLook = now - lookedAt < LITTLE_MS ? STEPS_BETWEEN_LOOKS : 0;
      lookedAt = now;
      return now - turnAt < TURN_MS ? undefined : giveTurn();
    },
    state: () => slice.state(),
    restore(states) {
      slice.restore(states);
      return undefined;
    },
    close() {
      slice.close();
      return undefined;
    },
  });
}
