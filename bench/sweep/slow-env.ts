/** An environment whose steps take as long as told: computing, or waiting for something else, as a remote simulator does. */
import { box, defineEnv, simulation } from '../../src/envs/index.ts';

type SlowOptions = { readonly stepMs: number; readonly by: string };

const cell = new Int32Array(new SharedArrayBuffer(4));

/** Nothing else runs in this thread meanwhile. */
function pass(ms: number, by: string): void {
  if (ms === 0) return;
  if (by === 'waiting') {
    Atomics.wait(cell, 0, 0, ms);
    return;
  }
  const end = performance.now() + ms;
  while (performance.now() < end);
}

export default defineEnv<SlowOptions>({
  id: 'Slow-v0',
  description: 'A point to be held near 0, at a chosen time a step.',
  maxEpisodeSteps: 100,
  slow: true,
  options: {
    stepMs: { default: 1, doc: 'milliseconds of a step', min: 0 },
    by: { default: 'computing', doc: 'what they pass with', oneOf: ['computing', 'waiting'] },
  },
  make: ({ stepMs, by }) =>
    simulation({
      observationSpace: box({ shape: [2] }),
      actionSpace: box({ shape: [1], low: -1, high: 1 }),
      start: rng => ({ x: rng.normal(), v: 0 }),
      observe: ({ x, v }) => [x, v],
      step(state, action, result) {
        pass(stepMs, by);
        state.v = 0.9 * state.v + 0.1 * action[0];
        state.x += state.v;
        result.reward = -Math.abs(state.x);
      },
    }),
});
