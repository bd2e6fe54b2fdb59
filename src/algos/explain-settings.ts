/** What is wrong with settings, in words: unknown keys with what was meant, values with what is expected. */
import type { z } from 'zod';
import { nearest } from '../text/nearest.ts';
import { describeConfig, type TrainConfig, trainSchema } from './train-schema.ts';

/** What other trainers call our keys: Stable-Baselines3, CleanRL, RLlib, Tianshou, rsl_rl, TRL. Without case and separators. */
export const otherNames: Readonly<Record<string, keyof TrainConfig>> = {
  actorlr: 'learningRate',
  batchsize: 'minibatchSize',
  clipcoef: 'clipRange',
  clipeps: 'clipRange',
  clipparam: 'clipRange',
  clipratio: 'clipRange',
  cliprangevf: 'valueClip',
  cliprangevalue: 'valueClip',
  vfclipparam: 'valueClip',
  clipvloss: 'valueClip',
  criticlr: 'criticLearningRate',
  desiredkl: 'adaptiveRateTarget',
  discount: 'gamma',
  discountfactor: 'gamma',
  entcoef: 'entropyCoef',
  entropycoeff: 'entropyCoef',
  entropycoefficient: 'entropyCoef',
  entropybonus: 'entropyCoef',
  epsclip: 'clipRange',
  gae: 'gaeLambda',
  lam: 'gaeLambda',
  lambda: 'gaeLambda',
  gaelam: 'gaeLambda',
  gradclip: 'gradientClip',
  gradnorm: 'gradientClip',
  maxgradnorm: 'gradientClip',
  initklcoef: 'klCoef',
  klbound: 'guard',
  klcoeff: 'klCoef',
  kltarget: 'targetKl',
  maxkl: 'guard',
  logstdinit: 'logStdInitial',
  lr: 'learningRate',
  lrschedule: 'learningRateSchedule',
  anneallr: 'learningRateSchedule',
  minibatch: 'minibatchSize',
  sgdminibatchsize: 'minibatchSize',
  netarch: 'hidden',
  hiddensizes: 'hidden',
  fcnethiddens: 'hidden',
  layers: 'hidden',
  normadv: 'normaliseAdvantages',
  normalizeadvantage: 'normaliseAdvantages',
  advnorm: 'normaliseAdvantages',
  normalizeobservations: 'normaliseObservations',
  normobs: 'normaliseObservations',
  normreward: 'normaliseRewards',
  rewnorm: 'normaliseRewards',
  nenvs: 'envs',
  numenvs: 'envs',
  numworkers: 'workers',
  nepochs: 'epochs',
  numepochs: 'epochs',
  updateepochs: 'epochs',
  noptepochs: 'epochs',
  numsgditer: 'epochs',
  numlearningepochs: 'epochs',
  numppoepochs: 'epochs',
  repeatpercollect: 'epochs',
  nsteps: 'stepsPerRollout',
  numsteps: 'stepsPerRollout',
  horizon: 'stepsPerRollout',
  numstepsperenv: 'stepsPerRollout',
  rolloutfragmentlength: 'stepsPerRollout',
  rolloutlength: 'stepsPerRollout',
  rolloutsteps: 'stepsPerRollout',
  savefreq: 'checkpointEvery',
  saveinterval: 'checkpointEvery',
  timesteps: 'steps',
  totalsteps: 'steps',
  totaltimesteps: 'steps',
  maxsteps: 'steps',
  usehuber: 'valueHuber',
  vfcoef: 'valueCoef',
  vflosscoeff: 'valueCoef',
  valuelosscoef: 'valueCoef',
};

const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_.\s]/g, '');

/** The key that was meant: by another trainer's name for it, in other letters (`learning_rate`), or misspelt. */
export function meantKey(
  word: string,
  schema: z.ZodObject = trainSchema,
  names: Readonly<Record<string, string>> = otherNames,
): string | undefined {
  const keys = Object.keys(schema.shape);
  const wanted = plain(word);
  const other = Object.hasOwn(names, wanted) ? names[wanted] : undefined;
  return keys.find(key => plain(key) === wanted) ?? other ?? nearest(word, keys);
}

/**
 * Unknown keys and values of a wrong kind, a line for each. What keys mean together is checked after. `below` is what
 * counts without them: a preset, or the settings of the run that goes on.
 */
export function settingProblems(
  settings: Readonly<Record<string, unknown>>,
  below: Readonly<Record<string, unknown>> = {},
  schema: z.ZodObject = trainSchema,
  names: Readonly<Record<string, string>> = otherNames,
): string[] {
  const problems: string[] = [];
  const fallbacks = new Map<string, unknown>(
    describeConfig(schema).map(({ key, fallback }) => [key, fallback]),
  );
  const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
  for (const [key, value] of Object.entries(settings)) {
    if (!Object.hasOwn(shape, key)) {
      const meant = meantKey(key, schema, names);
      problems.push(
        `${key} is not a config key: ${meant ? `did you mean ${meant}?` : 'keel config lists them'}`,
      );
      continue;
    }
    const { error } = shape[key]!.safeParse(value);
    for (const issue of error?.issues ?? []) {
      const path = [key, ...issue.path].join('.');
      const given = issue.path.reduce<unknown>(
        (at, part) => (at as Record<PropertyKey, unknown>)?.[part],
        value,
      );
      const nullable = shape[key]!.safeParse(null).success ? ' or null' : '';
      const reason = issue.code === 'too_small' && Object.hasOwn(reasons, key) ? ` (${reasons[key]})` : '';
      const remedy =
        Object.hasOwn(below, key) && below[key] !== value
          ? `without this ${key} is ${shown(below[key])}`
          : `the default ${issue.path.length > 0 ? `of ${key} ` : ''}is ${shown(fallbacks.get(key))}`;
      problems.push(`${path} is ${shown(given)}, ${expectation(issue, nullable)}${reason}: ${remedy}`);
    }
  }
  return problems;
}

type Issue = z.core.$ZodIssue;

/** Why a limit is where it is, for those that do not speak for themselves. */
const reasons: Readonly<Record<string, string>> = {
  guard: 'single precision cannot tell a smaller KL from 0, and the policy would never move',
};

/** "not a number", "below its least value 1". */
function expectation(issue: Issue, nullable: string): string {
  switch (issue.code) {
    case 'invalid_type':
      return `not ${kinds[issue.expected] ?? issue.expected}${nullable}`;
    case 'invalid_value':
      return `not one of ${issue.values.map(String).join(', ')}${nullable}`;
    case 'too_small':
      if (issue.origin === 'array') return `which needs at least ${issue.minimum} of them`;
      return issue.inclusive === false
        ? `not above ${issue.minimum}`
        : `below its least value ${issue.minimum}`;
    case 'too_big':
      return issue.inclusive === false
        ? `not below ${issue.maximum}`
        : `above its largest value ${issue.maximum}`;
    default:
      return `which does not fit (${issue.message})`;
  }
}

const kinds: Readonly<Record<string, string>> = {
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list such as [64, 64]',
  string: 'a text',
  object: 'keys with values',
};

/** A value in a message: as JSON, one line, short. */
function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
