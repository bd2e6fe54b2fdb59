/** From what a user wrote to a whole config of GRPO: unknown, wrong, inert and contradicting keys are errors. */
import { settingProblems } from '../explain-settings.ts';
import { ConfigError } from '../train-schema.ts';
import { type GrpoConfig, grpoSchema } from './config.ts';

/** What other trainers call our keys: TRL, verl, OpenRLHF. Without case and separators. */
export const grpoOtherNames: Readonly<Record<string, keyof GrpoConfig>> = {
  beta: 'klRefCoef',
  klcoef: 'klRefCoef',
  klcoeff: 'klRefCoef',
  initklcoef: 'klRefCoef',
  initkltarget: 'klRefTarget',
  targetkl: 'klRefTarget',
  kltarget: 'klRefTarget',
  numgenerations: 'groupSize',
  rolloutn: 'groupSize',
  nsamplesperprompt: 'groupSize',
  batchsize: 'promptsPerIteration',
  trainbatchsize: 'promptsPerIteration',
  rolloutbatchsize: 'promptsPerIteration',
  ppominibatchsize: 'minibatchSize',
  microbatch: 'microbatchSize',
  microtrainbatchsize: 'microbatchSize',
  perdevicetrainbatchsize: 'microbatchSize',
  numiterations: 'epochs',
  ppoepochs: 'epochs',
  nepochs: 'epochs',
  maxcompletionlength: 'maxNewTokens',
  maxresponselength: 'maxNewTokens',
  generatemaxlen: 'maxNewTokens',
  maxtokens: 'maxNewTokens',
  epsilon: 'clipLow',
  cliprange: 'clipLow',
  epsilonhigh: 'clipHigh',
  lr: 'learningRate',
  maxgradnorm: 'gradientClip',
  losstype: 'aggregation',
  lossaggmode: 'aggregation',
  scalerewards: 'advantage',
  advestimator: 'advantage',
  masktruncatedcompletions: 'truncated',
  entcoef: 'entropyCoef',
  entropycoeff: 'entropyCoef',
  maxsteps: 'steps',
  totalsteps: 'steps',
  nlayer: 'layers',
  nembd: 'width',
  nhead: 'heads',
  npositions: 'context',
};

/** Keys that do nothing unless others are set, and what to do about it. */
const inert: readonly {
  keys: readonly (keyof GrpoConfig)[];
  without: (config: GrpoConfig) => boolean;
  add: string;
}[] = [
  {
    keys: ['learningRateEnd'],
    without: c => c.learningRateSchedule === 'constant',
    add: 'learningRateSchedule linear or cosine',
  },
  { keys: ['groupStdFloor'], without: c => c.advantage !== 'group', add: 'advantage group' },
  { keys: ['lengthFree'], without: c => c.lengthPenalty === 0, add: 'lengthPenalty' },
  { keys: ['truncatedPenalty'], without: c => c.truncated !== 'penalise', add: 'truncated penalise' },
  {
    keys: ['klRefEstimator', 'klRefCoef', 'klRefCoefWarmup', 'klRefCoefRule', 'klCap'],
    without: c => c.reference === 'none',
    add: 'a reference (reference frozen)',
  },
  { keys: ['referenceEvery'], without: c => c.reference !== 'refreshed', add: 'reference refreshed' },
  { keys: ['referenceDecay'], without: c => c.reference !== 'averaged', add: 'reference averaged' },
  {
    keys: ['klRefTarget', 'klRefCoefMin', 'klRefCoefMax'],
    without: c => c.klRefCoefRule === 'fixed',
    add: 'klRefCoefRule adaptive or horizon',
  },
  { keys: ['klRefHorizon'], without: c => c.klRefCoefRule !== 'horizon', add: 'klRefCoefRule horizon' },
  { keys: ['guardRetries'], without: c => c.guard === null, add: 'guard' },
  { keys: ['recoveryFactor'], without: c => c.recoveries === 0, add: 'recoveries of at least 1' },
];

/** A key that is switched off contradicts nothing, whatever the others are; a rate that ends at 0 is not off. */
const isOff = (key: keyof GrpoConfig, value: unknown): boolean =>
  value === null || (value === 0 && key !== 'learningRateEnd');

/** Unknown keys and values of a wrong kind, a line for each. */
export function grpoProblems(
  settings: Readonly<Record<string, unknown>>,
  below: Readonly<Record<string, unknown>> = {},
): string[] {
  return settingProblems(settings, below, grpoSchema, grpoOtherNames);
}

/** Checks settings and fills in defaults. `layers` are presets, files and flags in the order in which they win. */
export function resolveGrpoConfig(...layers: readonly Readonly<Record<string, unknown>>[]): GrpoConfig {
  const settings: Record<string, unknown> = Object.assign({}, ...layers);
  const written = new Set(layers.slice(1).flatMap(layer => Object.keys(layer)));
  const problems = grpoProblems(Object.assign({}, ...layers.slice(1), settings), layers[0]);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config = grpoSchema.parse(settings);
  for (const { keys, without, add } of inert) {
    for (const key of keys) {
      if (written.has(key) && !isOff(key, config[key]) && without(config))
        problems.push(`${key} has no effect without ${add}: add that, or remove ${key}`);
    }
  }
  problems.push(...contradictions(config));
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

function contradictions(config: GrpoConfig): string[] {
  const found: string[] = [];
  const batch = config.promptsPerIteration * config.groupSize;
  if (config.minibatchSize !== null && batch % config.minibatchSize !== 0) {
    const near = divisors(batch).reduce((a, b) =>
      Math.abs(b - config.minibatchSize!) < Math.abs(a - config.minibatchSize!) ? b : a,
    );
    found.push(
      `minibatchSize ${config.minibatchSize} does not divide ${batch} (promptsPerIteration ${config.promptsPerIteration} x groupSize ${config.groupSize}): try ${near}`,
    );
  }
  if (config.width % config.heads !== 0)
    found.push(
      `width ${config.width} is no multiple of heads ${config.heads}: try ${config.heads * Math.ceil(config.width / config.heads)}`,
    );
  if (config.klRefCoefRule !== 'fixed' && config.klRefCoef === 0)
    found.push(
      `klRefCoefRule ${config.klRefCoefRule} has nothing to adapt at klRefCoef 0: start at .01 or so`,
    );
  if (config.klRefCoefMin > config.klRefCoefMax)
    found.push(
      `klRefCoefMin ${config.klRefCoefMin} is above klRefCoefMax ${config.klRefCoefMax}: exchange them`,
    );
  if (config.maxNewTokens !== null && config.lengthFree >= config.maxNewTokens && config.lengthPenalty > 0)
    found.push(`lengthFree ${config.lengthFree} is not below maxNewTokens ${config.maxNewTokens}: use less`);
  return found;
}

function divisors(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i + 1).filter(d => n % d === 0);
}
