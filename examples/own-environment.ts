/**
 * An environment of one's own: a thermostat that should hold 20 degrees. `keel train ./examples/own-environment.ts`
 * trains it, train-own-environment.mts does so from code.
 */
import { box, defineEnv, simulation } from 'keel';

export default defineEnv({
  id: 'Thermostat-v0',
  description: 'Heat or cool a room against the weather; 1 a step for holding 20 degrees.',
  maxEpisodeSteps: 100,
  make: () =>
    simulation({
      observationSpace: box({ shape: [2], low: -10, high: 10 }), // (degrees - 20, outside - 20) / 10
      actionSpace: box({ shape: [1], low: -1, high: 1 }), // heating power
      start: rng => ({ inside: 10 + 20 * rng.uniform(), outside: 30 * rng.uniform() }),
      observe: ({ inside, outside }) => [(inside - 20) / 10, (outside - 20) / 10],
      step(state, [power], result) {
        state.inside += 2 * power + 0.1 * (state.outside - state.inside);
        result.reward = Math.exp(-((state.inside - 20) ** 2));
      },
    }),
});
