/** Trainers whose rollouts are collected in shards. */
import { createPpoTrainer, type PpoTrainer } from '../../../../src/algos/ppo/iteration.ts';
import { type PpoConfig, ppoSettings } from '../../../../src/algos/ppo/settings.ts';
import type { ShardPlace } from '../../../../src/algos/ppo/shards/place.ts';
import type { VectorEnv } from '../../../../src/envs/index.ts';
import { makeVectorEnv } from '../../../../src/envs/index.ts';
import { sha256, timeless, tiny } from './trainer.ts';

const made: { trainer: PpoTrainer; envs: VectorEnv }[] = [];

export interface ShardedOptions {
  readonly env?: string;
  readonly envs?: number;
  readonly settings?: Partial<PpoConfig>;
  readonly place?: ShardPlace;
  readonly seed?: number;
}

/** A trainer that was not started; `disposeSharded` frees it. */
export async function sharded(shards: number, options: ShardedOptions = {}): Promise<PpoTrainer> {
  const { env = 'CartPole-v1', envs: all = 8, settings = {}, place, seed = 1 } = options;
  const envs = await makeVectorEnv(env, { envCount: all / shards });
  const config = ppoSettings.schema.parse({ ...tiny, seed, steps: 100_000, envs: all, shards, ...settings });
  const trainer = await createPpoTrainer({ envs, config, place });
  made.push({ trainer, envs });
  return trainer;
}

/** For `afterAll`. */
export async function disposeSharded(): Promise<void> {
  for (const { trainer, envs } of made.splice(0)) {
    trainer.dispose();
    await envs.close();
  }
}

/** Everything that some iterations come to: rows without the clock, and a digest of the weights. */
export async function courseOf(
  trainer: PpoTrainer,
  iterations: number,
): Promise<{ rows: Record<string, number>[]; weights: string }> {
  const rows: Record<string, number>[] = [];
  for (let i = 0; i < iterations; i++) rows.push(timeless((await trainer.iterate()).row));
  return { rows, weights: sha256(trainer.weights) };
}

/** All that can be normalised, and noise that remembers. */
export const everything: Partial<PpoConfig> = {
  normaliseObservations: true,
  normaliseRewards: true,
  noiseCorrelation: 0.7,
  learningRate: 3e-3,
};
