/** Small trainers in a line, and environments made for one purpose. */
import { createHash } from 'node:crypto';
import type { IterationResult } from '../../../../src/algos/algorithm.ts';
import { createPpoTrainer, type PpoTrainer } from '../../../../src/algos/ppo/iteration.ts';
import type { PpoConfig } from '../../../../src/algos/ppo/settings.ts';
import { ppoSettings } from '../../../../src/algos/ppo/settings.ts';
import {
  box,
  cartPole,
  discrete,
  type Env,
  inProcessVectorEnv,
  type Space,
  simulation,
  type VectorEnv,
} from '../../../../src/envs/index.ts';

export interface TrainerOptions {
  env?: (index: number) => Env;
  envs?: number;
  seed?: number;
  totalSteps?: number;
}

/** 128 samples in 4 minibatches, 3 epochs, a network of one small layer. */
export const tiny: Partial<PpoConfig> = { stepsPerRollout: 32, minibatchSize: 32, epochs: 3, hidden: [8] };

const made: { trainer: PpoTrainer; envs: VectorEnv }[] = [];

/** A trainer that has been started; `disposeTrainers` frees it. */
export async function trainerOf(
  settings: Partial<PpoConfig> = {},
  { env = () => cartPole(), envs: envCount = 4, seed = 1, totalSteps = 1280 }: TrainerOptions = {},
): Promise<PpoTrainer> {
  const envs = inProcessVectorEnv(env, envCount);
  const trainer = await createPpoTrainer({
    envs,
    config: ppoSettings.schema.parse({ ...tiny, seed, steps: totalSteps, ...settings }),
  });
  made.push({ trainer, envs });
  await trainer.start();
  return trainer;
}

/** For `afterAll`. */
export async function disposeTrainers(): Promise<void> {
  for (const { trainer, envs } of made.splice(0)) {
    trainer.dispose();
    await envs.close();
  }
}

export async function iterations(trainer: PpoTrainer, count: number): Promise<IterationResult[]> {
  const results: IterationResult[] = [];
  for (let i = 0; i < count; i++) results.push(await trainer.iterate());
  return results;
}

/** A trainer and its first iterations. */
export async function trained(
  settings: Partial<PpoConfig> = {},
  options: TrainerOptions & { iterations?: number } = {},
): Promise<{ trainer: PpoTrainer; rows: Record<string, number>[]; results: IterationResult[] }> {
  const trainer = await trainerOf(settings, options);
  const results = await iterations(trainer, options.iterations ?? 1);
  return { trainer, results, rows: results.map(({ row }) => row) };
}

export const sha256 = (values: Float32Array): string =>
  createHash('sha256')
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest('hex');

/** A row without what the clock said. */
export const timeless = (row: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(row).filter(([key]) => !key.startsWith('time/')));

export interface Faulty {
  /** What to do to the reward of step number `steps` (from 1, over all episodes) of environment `index`. */
  reward?: (steps: number, index: number) => number;
  observation?: (steps: number, index: number) => number;
  actions?: Space;
}

/** One number in, one out, episodes of 8 steps; made by hand, so that nothing checks what it gives. */
export function faultyEnv({ reward, observation, actions = discrete(2) }: Faulty): (index: number) => Env {
  return index => {
    // Out of the state, so that it counts on over episodes.
    let steps = 0;
    return simulation({
      observationSpace: box({ shape: [1] }),
      actionSpace: actions,
      start: () => ({ t: 0 }),
      observe: state => [observation?.(steps, index) ?? Math.sin(state.t + index)],
      step(state, action, result) {
        steps++;
        state.t++;
        result.reward = reward?.(steps, index) ?? action[0];
        result.terminated = state.t >= 8;
      },
    });
  };
}
