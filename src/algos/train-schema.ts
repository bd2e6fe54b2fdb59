/** The keys of a training run's config: PPO's and those of the run, on one level. */
import { z } from 'zod';
import { ppoSchema } from './ppo-config.ts';

const count = z.number().int().min(1);

export const trainSchema = ppoSchema.extend({
  steps: count.default(100_000).describe('Environment steps of the run, over all environments.'),
  seed: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Where all randomness comes from: the same seed gives the same bits.'),
  envs: count.default(8).describe('Environments that run side by side.'),
  workers: z
    .union([z.literal('auto'), z.number().int().min(0)])
    .default('auto')
    .describe(
      'Worker threads for the environments; auto: as many as the machine runs at once if they are slow, else 0, which runs them in this thread.',
    ),
  device: z.enum(['cpu', 'webgpu', 'cuda']).default('cpu').describe('Where networks are computed.'),
  threads: count.default(1).describe('Threads that one operator may use; 1 is best for small networks.'),
  rewardScale: z
    .number()
    .positive()
    .default(1)
    .describe('Rewards are multiplied by this before anything else.'),
  checkpointEvery: count
    .default(10)
    .describe('Iterations between checkpoints; the last and the best are kept.'),
  keepEvery: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Keep every checkpoint whose iteration this divides; 0 keeps none for that.'),
  record: z
    .boolean()
    .default(true)
    .describe(
      'Record an episode now and then, to be seen on the page; only where the environment can be drawn, or routes requests.',
    ),
  tensorboard: z.boolean().default(true).describe('Write TensorBoard event files beside the log.'),
  csv: z.boolean().default(true).describe('Write metrics.csv beside the log.'),
});

export type TrainConfig = z.infer<typeof trainSchema>;
/** What a user may set. */
export type TrainSettings = Readonly<Partial<z.input<typeof trainSchema>>>;

/** A config that cannot be used; the message has a line for each thing that is wrong. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

/** Each key with its default and what it does, for `keel config` and the documentation. */
export function describeConfig(
  schema: z.ZodObject = trainSchema,
): { key: string; fallback: unknown; doc: string }[] {
  const defaults = schema.parse({}) as Record<string, unknown>;
  return Object.entries(schema.shape as Record<string, z.ZodType>).map(([key, schema]) => ({
    key,
    fallback: defaults[key],
    doc: schema.description ?? '',
  }));
}
