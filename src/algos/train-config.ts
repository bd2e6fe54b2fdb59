/** The whole config of a training run: PPO's keys and those of the run, on one level. */
import { z } from 'zod';
import { nearest } from '../text/nearest.ts';
import { type PpoConfig, ppoSchema } from './ppo-config.ts';

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
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Worker threads for slow environments; 0 runs them in this thread.'),
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

/** Keys that do nothing unless others are set, and what to do about it. */
const inert: readonly {
  keys: readonly (keyof TrainConfig)[];
  without: (config: TrainConfig) => boolean;
  add: string;
}[] = [
  {
    keys: ['learningRateEnd'],
    without: c => c.learningRateSchedule === 'constant',
    add: 'learningRateSchedule linear or cosine',
  },
  {
    keys: ['clipRangeEnd'],
    without: c => c.clipRangeSchedule === 'constant',
    add: 'clipRangeSchedule linear or cosine',
  },
  { keys: ['entropyWarmupCoef'], without: c => c.entropyWarmupSteps === 0, add: 'entropyWarmupSteps' },
  { keys: ['entropyWarmupSteps'], without: c => c.entropyWarmupCoef === 0, add: 'entropyWarmupCoef' },
  { keys: ['entropyMinCoef'], without: c => c.entropyMin === null, add: 'entropyMin' },
  { keys: ['guardRetries'], without: c => c.guard === null, add: 'guard' },
  { keys: ['targetKlFactor', 'targetKlPer'], without: c => c.targetKl === null, add: 'targetKl' },
  {
    keys: ['klCoefTarget', 'klCoefMax'],
    without: c => c.klCoefRule === 'fixed',
    add: 'klCoefRule adaptive or horizon',
  },
  { keys: ['klCoefHorizon'], without: c => c.klCoefRule !== 'horizon', add: 'klCoefRule horizon' },
  {
    keys: ['adaptiveRateTarget', 'adaptiveRateMin', 'adaptiveRateMax'],
    without: c => !c.adaptiveRate,
    add: 'adaptiveRate true',
  },
  {
    keys: ['klRefCoefInitial', 'klRefCoefFinal', 'klRefDecaySteps'],
    without: c => c.reference === 'none',
    add: 'a reference policy (reference frozen)',
  },
  { keys: ['referenceEvery'], without: c => c.reference !== 'refreshed', add: 'reference refreshed' },
  { keys: ['referenceDecay'], without: c => c.reference !== 'averaged', add: 'reference averaged' },
  { keys: ['recoveryFactor'], without: c => c.recoveries === 0, add: 'recoveries of at least 1' },
];

/** Checks settings and fills in defaults. `layers` are presets, files and flags in the order in which they win. */
export function resolveConfig(...layers: readonly Readonly<Record<string, unknown>>[]): TrainConfig {
  const settings: Record<string, unknown> = Object.assign({}, ...layers);
  // Only what the user wrote can be inert: a preset is for every use of its environment.
  const written = new Set(layers.slice(1).flatMap(layer => Object.keys(layer)));
  const problems: string[] = [];
  const keys = Object.keys(trainSchema.shape);
  for (const key of Object.keys(settings)) {
    if (keys.includes(key)) continue;
    const near = nearest(key, keys);
    problems.push(`${key} is not a config key: ${near ? `did you mean ${near}?` : 'keel config lists them'}`);
    delete settings[key];
  }
  const parsed = trainSchema.safeParse(settings);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const path = issue.path.join('.');
      const given = issue.path.reduce<unknown>(
        (at, key) => (at as Record<PropertyKey, unknown>)?.[key],
        settings,
      );
      problems.push(`${path} is ${JSON.stringify(given)}: ${issue.message}`);
    }
    throw new ConfigError(problems.join('\n'));
  }
  const config = parsed.data;
  for (const { keys: dependants, without, add } of inert) {
    for (const key of dependants) {
      if (written.has(key) && without(config))
        problems.push(`${key} has no effect without ${add}: add that, or remove ${key}`);
    }
  }
  problems.push(...contradictions(config));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

function contradictions(config: TrainConfig): string[] {
  const found: string[] = [];
  if (config.logStdMin > config.logStdMax) {
    found.push(`logStdMin ${config.logStdMin} is above logStdMax ${config.logStdMax}: swap them`);
  }
  if (config.adaptiveRateMin > config.adaptiveRateMax) {
    found.push(
      `adaptiveRateMin ${config.adaptiveRateMin} is above adaptiveRateMax ${config.adaptiveRateMax}: swap them`,
    );
  }
  if (config.logStdInitial < config.logStdMin || config.logStdInitial > config.logStdMax) {
    found.push(
      `logStdInitial ${config.logStdInitial} is outside of ${config.logStdMin} to ${config.logStdMax}: start inside`,
    );
  }
  if (config.minibatchSize === 1 && config.normaliseAdvantages) {
    found.push(
      'minibatchSize 1 leaves nothing of a normalised advantage: use at least 2, or normaliseAdvantages false',
    );
  }
  if (config.klCoefRule !== 'fixed' && config.klCoef === 0) {
    found.push(`klCoefRule ${config.klCoefRule} has nothing to adapt at klCoef 0: start at .1 or so`);
  }
  const samples = config.envs * config.stepsPerRollout;
  if (samples % config.minibatchSize !== 0) {
    const divisors = Array.from({ length: samples }, (_, i) => i + 1).filter(n => samples % n === 0);
    const near = [
      divisors.filter(n => n < config.minibatchSize).at(-1),
      divisors.find(n => n > config.minibatchSize),
    ];
    found.push(
      `minibatchSize ${config.minibatchSize} does not divide ${samples} (envs ${config.envs} x stepsPerRollout ${config.stepsPerRollout}): try ${near.filter(n => n !== undefined).join(' or ')}`,
    );
  }
  return found;
}

/** Each key with its default and what it does, for `keel config` and the documentation. */
export function describeConfig(): { key: string; fallback: unknown; doc: string }[] {
  const defaults = trainSchema.parse({}) as Record<string, unknown>;
  return Object.entries(trainSchema.shape).map(([key, schema]) => ({
    key,
    fallback: defaults[key],
    doc: schema.description ?? '',
  }));
}

/** The same for editors: a JSON schema. */
export function configJsonSchema(): unknown {
  return z.toJSONSchema(trainSchema, { io: 'input' });
}

export type { PpoConfig };
