/** Jobs that take a moment. */
import { VERSION } from '../../../src/base/version.ts';
import type { RunJob } from '../../../src/sweep/place.ts';

/** Steps of an iteration of {@link tinyJob}. */
export const iterationSteps = 64;

/** A run of four iterations in CartPole; `until` null goes to its end. */
export function tinyJob(run: string, changes: Partial<RunJob> = {}): RunJob {
  return {
    run,
    version: VERSION,
    subject: { kind: 'env', reference: 'cartpole', sha256: null, options: {} },
    config: { steps: 4 * iterationSteps, learningRate: 1e-3 },
    preset: { envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 1, hidden: [8], csv: false },
    seed: 3,
    until: null,
    objective: { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' },
    priority: 0,
    ...changes,
  };
}

/** One that goes on until it is stopped, for what happens in the middle; it saves after each iteration. */
export const longJob = (run: string): RunJob =>
  tinyJob(run, { config: { steps: 50_000_000, checkpointEvery: 1 }, until: null });
