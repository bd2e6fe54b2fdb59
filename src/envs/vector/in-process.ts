import type { Env } from '../env.ts';
import { vectorMemory } from './arrays.ts';
import { Batch } from './batch.ts';
import { EnvSlice } from './slice.ts';
import { Turns } from './turns.ts';
import { checkSameSpaces, shapeFor, type VectorEnv } from './vector.ts';

/** Steps block this thread: this often signals (Ctrl-C), timers and the page get their turn, in the middle of a rollout. */
const TURN_MS = 100;

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
  const turns = new Turns(TURN_MS);
  return new Batch(first, shape, memory, {
    reset(seeds) {
      slice.reset(seeds);
      return undefined;
    },
    step() {
      slice.step();
      return turns.due() ? turns.give() : undefined;
    },
    notices: () => slice.takeNotices(),
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
