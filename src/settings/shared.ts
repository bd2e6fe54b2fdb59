/** Settings that several algorithms have. What differs between them, defaults above all, is an argument. */
import * as z from 'zod/mini';
import { type Contradiction, fixed, live, type Needs, type SettingFacts, setting, wrong } from './spec.ts';
import { belowOne, count, countFromZero, fromZero, positive, schedule, share } from './values.ts';

// ---- the run -------------------------------------------------------------------------------------------------------

/** How long a run is; the doc says what is counted. */
export const steps = (fallback: number, doc: string) =>
  setting(count, fallback, doc, {
    aliases: 'timesteps totalsteps totaltimesteps maxsteps',
    doctor: 'totalSteps',
  });

/** Where and how it is computed. */
const device = setting(z.enum(['cpu', 'webgpu', 'cuda']), 'cpu', 'Where networks are computed.');

const seed = fixed(countFromZero, 0, 'Where all randomness comes from: the same seed gives the same bits.');

const checkpointKeys = {
  checkpointEvery: setting(count, 10, 'Iterations between checkpoints; the last and the best are kept.', {
    aliases: 'savefreq saveinterval',
  }),
  keepEvery: setting(
    countFromZero,
    0,
    'Keep every checkpoint whose iteration this divides; 0 keeps none for that.',
  ),
};

/** Episodes of training without which a return to stop at is not believed: a few may be luck. */
export const STOP_EPISODES = 20;

const whenEvaluating = { key: 'evaluateEvery', not: 0, add: 'evaluateEvery of at least 1' } as const;

/**
 * Looking while it trains. `episodes` are what an evaluation plays: so many unless told. Where training has no returns of
 * its own, as in cloning, there is nothing to stop at without evaluations.
 */
export const evaluationKeys = ({
  episodes,
  doc,
  ownReturns,
}: {
  readonly episodes: number;
  readonly doc: string;
  readonly ownReturns: boolean;
}) => ({
  evaluateEvery: setting(
    countFromZero,
    0,
    'Iterations between evaluations; one follows the last iteration, too. They then pick the best checkpoint. 0 never evaluates.',
    { aliases: 'evalfreq evalevery evalinterval evaluationinterval testfreq' },
  ),
  evaluateEpisodes: setting(count, episodes, doc, {
    aliases: 'evalepisodes nevalepisodes numevalepisodes evaluationduration',
    needs: whenEvaluating,
  }),
  stopAt: setting(
    z.nullable(z.number()),
    null,
    ownReturns
      ? `The run ends once the mean return is at least this: of an evaluation; without evaluateEvery, of the newest episodes of training, as checkpoints are scored, at least ${STOP_EPISODES}. null does all steps.`
      : 'The run ends once the mean return of an evaluation is at least this; null does all steps.',
    {
      aliases: 'stopreturn stopreward rewardthreshold targetreturn targetreward',
      ...(!ownReturns && { needs: { ...whenEvaluating, off: null } }),
    },
  ),
});

const whenPiloted = { key: 'autopilot', is: true } as const;

/** What the doctor may do by itself (docs/autopilot.md). */
export const autopilotKeys = {
  autopilot: setting(
    z.boolean(),
    false,
    'The doctor looks at the run while it trains, and does what it is sure of: changes a setting, or goes back to a healthy checkpoint.',
  ),
  autopilotEvery: setting(count, 10, 'Iterations between two looks of the autopilot.', {
    needs: whenPiloted,
  }),
  autopilotWait: setting(
    count,
    20,
    'Iterations after a step of the autopilot before it judges again, by what came since.',
    { needs: whenPiloted },
  ),
  autopilotSteps: setting(count, 3, 'Steps that the autopilot takes at most, those of forks included.', {
    needs: whenPiloted,
  }),
  autopilotConfidence: setting(
    share,
    0.91,
    'How sure the doctor must be of the root cause before the autopilot acts.',
    { needs: whenPiloted },
  ),
};

/** Of policies in environments. */
const episodeEvaluation = {
  episodes: 20,
  doc: 'Episodes of an evaluation: the same ones each time, with the most likely actions, in environments of their own whose seeds training never has.',
};

/** Of language models. */
const promptEvaluation = {
  episodes: 100,
  doc: 'Prompts of an evaluation: the same ones each time, completed with the most likely tokens, from a seed that training never has.',
};

export const logKeys = {
  tensorboard: setting(z.boolean(), true, 'Write TensorBoard event files beside the log.'),
  csv: setting(z.boolean(), true, 'Write metrics.csv beside the log.'),
};

/** What every run has, whatever its algorithm; the doc says what its steps are. */
export const runKeys = (fallback: number, doc: string) => ({
  steps: steps(fallback, doc),
  seed,
  ...checkpointKeys,
  ...logKeys,
});

/** The run of a language model. */
export const textRunKeys = ({ ownReturns }: { readonly ownReturns: boolean }) => ({
  seed,
  device,
  threads: setting(count.check(z.maximum(1024)), 2, 'Threads that one operator may use.'),
  ...checkpointKeys,
  ...evaluationKeys({ ...promptEvaluation, ownReturns }),
  ...logKeys,
});

// ---- environments --------------------------------------------------------------------------------------------------

export const gamma = setting(share, 0.99, 'Discount of a reward one step later.', {
  aliases: 'discount discountfactor',
  doctor: 'gamma',
});

export const valueCoef = setting(fromZero, 0.5, 'Weight of the value loss.', {
  aliases: 'vfcoef vflosscoeff valuelosscoef',
  doctor: 'valueCoef',
});

/** The environments themselves. */
export const envKeys = {
  envs: fixed(count, 8, 'Environments that run side by side.', { aliases: 'nenvs numenvs', doctor: 'envs' }),
  workers: setting(
    z.union([z.literal('auto'), countFromZero]),
    'auto',
    'Worker threads for the environments, processes for those in Python; auto: the slow ones are spread over as many threads as the machine runs at once, this one included; 0 runs all in this thread.',
    { aliases: 'numworkers' },
  ),
  device,
  threads: setting(
    z.union([z.literal('auto'), count.check(z.maximum(1024))]),
    'auto',
    'With 2 or more, policy and value function learn side by side, to the same bits; auto: where the machine runs two threads at once. Of networks wider than 128, what one operator may use; there auto is 1.',
  ),
  rewardScale: setting(positive, 1, 'Rewards are multiplied by this before anything else.'),
};

/** What a run on environments has beside its steps and its log. */
export const environmentKeys = ({ ownReturns }: { readonly ownReturns: boolean }) => ({
  seed,
  ...envKeys,
  ...checkpointKeys,
  ...evaluationKeys({ ...episodeEvaluation, ownReturns }),
});

/** The std of continuous actions as the network has it. */
export const logStdKeys = {
  logStdInitial: fixed(z.number(), 0, 'Starting log of the std of continuous actions.', {
    aliases: 'logstdinit',
    doctor: 'logStdInitial',
    actions: 'continuous',
  }),
  logStdMin: setting(z.number().check(z.minimum(-20)), -5, 'Its lower bound.', { actions: 'continuous' }),
  logStdMax: setting(z.number().check(z.maximum(20)), 2, 'Its upper bound.', {
    actions: 'continuous',
    doctor: 'logStdMax',
  }),
};

/** What the network is, and what it sees. */
export const networkKeys = {
  hidden: fixed(
    z.array(count).check(z.minLength(1)),
    [64, 64],
    'Widths of the hidden layers of actor and critic.',
    { aliases: 'netarch hiddensizes fcnethiddens layers', example: '[64, 64]' },
  ),
  criticHidden: fixed(
    z.nullable(z.array(count).check(z.minLength(1))),
    null,
    'Widths of the hidden layers of the critic alone; null is those of the actor.',
    { example: '[128, 128]' },
  ),
  activation: fixed(z.enum(['tanh', 'relu', 'gelu']), 'tanh', 'Between layers.'),
  network: fixed(
    z.enum(['mlp', 'set']),
    'mlp',
    'Layers over the whole observation (mlp), or the same weights for each of its items, one action each, whatever their number (set).',
  ),
  normaliseObservations: fixed(
    z.boolean(),
    false,
    'Running mean and std of observations, held within +-10.',
    { aliases: 'normalizeobservations normobs' },
  ),
};

/** What is wrong with the settings of a network together. */
export function* networkContradictions(config: {
  readonly logStdInitial: number;
  readonly logStdMin: number;
  readonly logStdMax: number;
  readonly network: string;
  readonly criticHidden: readonly number[] | null;
  readonly normaliseObservations: boolean;
}): Generator<Contradiction> {
  const { logStdInitial, logStdMin, logStdMax } = config;
  if (logStdMin > logStdMax)
    yield wrong('logStdMin', `${logStdMin} is above logStdMax ${logStdMax}: swap them`);
  if (logStdInitial < logStdMin || logStdInitial > logStdMax)
    yield wrong('logStdInitial', `${logStdInitial} is outside of ${logStdMin} to ${logStdMax}: start inside`);
  if (config.network === 'set' && config.criticHidden !== null)
    yield wrong('criticHidden', 'has no effect with network set: remove it, or use network mlp');
  if (config.network === 'set' && config.normaliseObservations)
    yield wrong(
      'normaliseObservations',
      'would scale each item apart, which network set must see alike: use one of them',
    );
}

// ---- the optimiser -------------------------------------------------------------------------------------------------

export const learningRate = (fallback: number, doc: string, facts: SettingFacts = {}) =>
  live(positive, fallback, doc, {
    aliases: 'lr actorlr',
    offered: 'always',
    doctor: 'learningRate',
    ...facts,
  });

export const learningRateSchedule = (
  fallback: z.infer<typeof schedule>,
  doc = 'How the learning rate goes to learningRateEnd times its start.',
  facts: SettingFacts = {},
) =>
  setting(schedule, fallback, doc, {
    aliases: 'lrschedule anneallr',
    doctor: 'learningRateSchedule',
    ...facts,
  });

/** What says how something goes to its end does nothing where it stays. */
export const whenScheduled = (key: string): Needs => ({
  key,
  not: 'constant',
  add: `${key} linear or cosine`,
});

export const learningRateEnd = (fallback: number, facts: SettingFacts = {}) =>
  live(share, fallback, 'The share of the learning rate that a schedule ends at.', {
    needs: whenScheduled('learningRateSchedule'),
    ...facts,
  });

export const warmupShare = (fallback: number) =>
  live(share, fallback, 'The share of the run over which the learning rate rises from 0.');

export const adamEpsilon = (fallback: number) => setting(positive, fallback, "Adam's epsilon.");

export const gradientClip = (fallback: number, facts: SettingFacts = {}) =>
  setting(
    z.nullable(positive),
    fallback,
    'Largest norm of a gradient: of each network by itself, of a language model over all its weights; null does not clip.',
    {
      aliases: 'gradclip gradnorm maxgradnorm',
      doctor: 'maxGradNorm',
      ...facts,
    },
  );

export const entropyCoef = (doc: string) =>
  setting(fromZero, 0, doc, {
    aliases: 'entcoef entropycoeff entropycoefficient entropybonus',
    doctor: 'entropyCoef',
  });

/** What all training of language models shares. */
export const textOptimiserKeys = {
  learningRateEnd: learningRateEnd(0.1),
  adamBeta1: setting(belowOne, 0.9, "Adam's share of the gradients' mean that stays."),
  adamBeta2: setting(belowOne, 0.95, 'The same for their squares.'),
  adamEpsilon: adamEpsilon(1e-8),
  weightDecay: live(share, 0, "AdamW's decay of matrices."),
  gradientClip: gradientClip(1, { change: 'live' }),
  microbatchSize: setting(
    count,
    32,
    'Sequences that go through the model at once; gradients of several add up to a minibatch.',
    { aliases: 'microbatch microtrainbatchsize perdevicetrainbatchsize' },
  ),
};

// ---- what holds an update ------------------------------------------------------------------------------------------

/**
 * The smallest bound that an update can use. KLs are measured in single precision and held with a margin of 5e-8 for its
 * rounding (src/kl/guard.ts): of 1e-6 that is a twentieth, of 1e-7 half, and of 5e-8 nothing is left to move in.
 */
export const MIN_GUARD = 1e-6;

const TOO_SMALL = 'single precision cannot tell a smaller KL from 0, and the policy would never move';
const stateBound = z.nullable(z.number().check(z.minimum(MIN_GUARD)));

/** The guard: bounds on the KL `of` an update and of each `state`, and retries at a lower `rate`. */
export const guardKeys = (
  { of, state, rate }: { readonly of: string; readonly state: string; readonly rate: string },
  facts: SettingFacts = {},
) => ({
  guard: live(
    stateBound,
    0.05,
    `Hard bound on the mean exact KL ${of}, at least 1e-6; null switches the guard off.`,
    {
      offered: 'always',
      reason: TOO_SMALL,
      ...facts,
    },
  ),
  guardRetries: live(
    countFromZero,
    3,
    `Times that an update far beyond the bound is done again at a lower ${rate} before the guard steps back; 0 never lowers it.`,
    { needs: { key: 'guard', not: null, off: 0 } },
  ),
  guardP99: live(
    stateBound,
    null,
    `Hard bound that the exact KL of at most one ${state} in a hundred may pass; null is none. Steps back, never tries again.`,
    { reason: TOO_SMALL, doctor: 'guardP99' },
  ),
  guardMax: live(
    stateBound,
    null,
    `Hard bound on the exact KL of every single ${state}; null is none. Steps back, never tries again.`,
    { reason: TOO_SMALL, doctor: 'guardMax' },
  ),
});

/** What is wrong with the bounds on single states together. */
export function* guardContradictions({
  guardP99,
  guardMax,
}: {
  readonly guardP99: number | null;
  readonly guardMax: number | null;
}): Generator<Contradiction> {
  if (guardP99 !== null && guardMax !== null && guardP99 >= guardMax)
    yield wrong(
      'guardP99',
      `${guardP99} is not below guardMax ${guardMax}, which then does all: lower it, or remove one`,
    );
}

/** What follows steps that are not finite: they are skipped, then the run goes back to `healthy` at a lower rate. */
export const recoveryKeys = (
  skipped: string,
  healthy: string,
  { recoveries, rates }: { readonly recoveries: number; readonly rates: string },
) => ({
  skipLimit: setting(count, 5, `Non-finite ${skipped} in a row that restore ${healthy}.`),
  recoveryFactor: live(positive.check(z.maximum(1)), 0.1, `What a restore multiplies the ${rates} by.`, {
    needs: { key: 'recoveries', not: 0, add: 'recoveries of at least 1' },
  }),
  recoveries: live(countFromZero, recoveries, 'Restores before the run stops with a diagnosis.'),
});

/** A policy or a model to stay near. */
export const referenceKeys = (what: string, fallback: 'none' | 'frozen', every: number) => ({
  reference: fixed(
    z.enum(['none', 'frozen', 'refreshed', 'averaged']),
    fallback,
    `A ${what} to stay near: the one at the start, refreshed every referenceEvery updates, or a running average.`,
  ),
  referenceEvery: live(count, every, 'Updates between refreshes of a refreshed reference.', {
    needs: { key: 'reference', is: 'refreshed' },
  }),
  referenceDecay: live(share, 0.99, 'Share of an averaged reference that stays at each update.', {
    needs: { key: 'reference', is: 'averaged' },
  }),
});

// ---- language models -----------------------------------------------------------------------------------------------

/** The size of a new model; of one that is loaded they say nothing. */
export const modelKeys = {
  layers: fixed(
    count.check(z.maximum(1000)),
    4,
    'Layers of a new model; with a model to start from it has its own.',
    { aliases: 'nlayer', newModel: true },
  ),
  width: fixed(count.check(z.maximum(65_536)), 256, 'Width of a new model; a multiple of heads.', {
    aliases: 'nembd',
    newModel: true,
  }),
  heads: fixed(count.check(z.maximum(10_000)), 8, 'Attention heads of a new model.', {
    aliases: 'nhead',
    newModel: true,
  }),
  context: fixed(
    z.nullable(count.check(z.maximum(1_000_000))),
    null,
    "Tokens that a new model can look at; null is what the task's longest prompt and completion take.",
    { aliases: 'npositions', newModel: true },
  ),
};

/** What is wrong with the sizes of a model together. */
export function* modelContradictions(config: {
  readonly width: number;
  readonly heads: number;
}): Generator<Contradiction> {
  const { width, heads } = config;
  if (width % heads !== 0)
    yield wrong(
      'width',
      `${width} is no multiple of heads ${heads}: try ${heads * Math.ceil(width / heads)}`,
    );
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

/** The nearest divisors of a number below and above one that is none. */
export function divisorsNear(n: number, wrong: number): readonly number[] {
  const found: number[] = [];
  for (let d = Math.min(wrong - 1, n); d >= 1 && found.length === 0; d--) if (n % d === 0) found.push(d);
  for (let d = wrong + 1; d <= n; d++) if (n % d === 0) return [...found, d];
  return found;
}
