/**
 * An environment of one's own: a thermostat that should hold 20 degrees. It can be trained from the command line, too:
 * `keel train ./examples/own-environment.ts`.
 */
import { box, defineEnv, simulation, train } from '../src/index.ts';

const thermostat = defineEnv({
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

export default thermostat;

// Run by itself, it trains; imported by `keel train`, it only says what it is.
if (process.argv[1]?.endsWith('own-environment.ts')) {
  const steps = Number(process.argv[2] ?? 60_000);
  const { registerEnv } = await import('../src/index.ts');
  registerEnv(thermostat);
  const config = { steps, envs: 8, stepsPerRollout: 128, minibatchSize: 128, learningRate: 1e-3 };
  const { dir, lastRow } = await train({ env: 'Thermostat-v0', config, root: process.argv[3] ?? 'runs' });
  console.log(`return ${lastRow?.['episode/return']?.toFixed(1)} of 100; the run is ${dir}`);
}
