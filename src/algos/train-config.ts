/** From what a user wrote to a whole config: unknown, wrong, inert and contradicting keys are errors. */
import { z } from 'zod';
import { settingProblems } from './explain-settings.ts';
import { unevenMinibatches } from './minibatches.ts';
import { ConfigError, type TrainConfig, trainSchema } from './train-schema.ts';

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

/** What a caller passed as settings; nothing is none. Types do not hold for who writes JavaScript. */
export function settingsOf(given: unknown): Record<string, unknown> {
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' || Array.isArray(given))
    throw new ConfigError(
      `config is ${JSON.stringify(given)?.slice(0, 40)}, not keys with values: write { steps: 100_000 }`,
    );
  return { ...given };
}

/** Checks settings and fills in defaults. `layers` are presets, files and flags in the order in which they win. */
export function resolveConfig(...layers: readonly Readonly<Record<string, unknown>>[]): TrainConfig {
  const settings: Record<string, unknown> = Object.assign({}, ...layers);
  // Only what the user wrote can be inert: a preset is for every use of its environment.
  const written = new Set(layers.slice(1).flatMap(layer => Object.keys(layer)));
  // In the order in which the user wrote them.
  const problems = settingProblems(Object.assign({}, ...layers.slice(1), settings), layers[0]);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config = trainSchema.parse(settings);
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
  if (
    config.logStdEnd !== null &&
    (config.logStdEnd < config.logStdMin || config.logStdEnd > config.logStdInitial)
  ) {
    found.push(
      `logStdEnd ${config.logStdEnd} is outside of ${config.logStdMin} (logStdMin) to ${config.logStdInitial} (logStdInitial): it is where the bound falls to`,
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
  if (config.network === 'set' && config.normaliseObservations) {
    found.push(
      'normaliseObservations would scale each item apart, which network set must see alike: use one of them',
    );
  }
  const uneven = unevenMinibatches(config.envs, config.stepsPerRollout, config.minibatchSize);
  if (uneven) found.push(uneven);
  return found;
}

/** The same for editors: a JSON schema. */
export function configJsonSchema(): unknown {
  return z.toJSONSchema(trainSchema, { io: 'input' });
}
