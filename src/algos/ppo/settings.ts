/** Every setting of PPO. */
import * as z from 'zod/mini';
import * as shared from '../../settings/shared.ts';
import {
  type ConfigOf,
  type Contradiction,
  fixed,
  live,
  type SettingsOf,
  setting,
  table,
  wrong,
} from '../../settings/spec.ts';
import {
  belowOne,
  coefficientRule,
  count,
  countFromZero,
  fromZero,
  positive,
  schedule,
  share,
} from '../../settings/values.ts';

/** What needs a policy to stay near. */
const toReference = { key: 'reference', not: 'none', add: 'a reference policy (reference frozen)' };
const whenAdapting = { key: 'klCoefRule', not: 'fixed', add: 'klCoefRule adaptive or horizon' };
const whenRateAdapts = { key: 'adaptiveRate', is: true };
const withTarget = { key: 'targetKl', not: null };

/** Every setting of PPO, those of the run included. */
export const ppoSettings = table(
  {
    stepsPerRollout: setting(count, 2048, 'Steps of each environment between two updates.', {
      aliases: 'nsteps numsteps horizon numstepsperenv rolloutfragmentlength rolloutlength rolloutsteps',
      doctor: 'stepsPerRollout',
    }),
    epochs: setting(count, 10, 'Passes over each rollout.', {
      aliases:
        'nepochs numepochs updateepochs noptepochs numsgditer numlearningepochs numppoepochs repeatpercollect',
      doctor: 'epochs',
    }),
    minibatchSize: setting(
      count,
      64,
      'Samples a gradient step; must divide environments x stepsPerRollout.',
      { aliases: 'batchsize minibatch sgdminibatchsize', doctor: 'minibatchSize' },
    ),
    gamma: { ...shared.gamma, change: 'live', offered: 'in use' },
    gaeLambda: live(share, 0.95, 'Between one-step (0) and whole-episode (1) advantages.', {
      aliases: 'gae lam lambda gaelam',
      offered: 'in use',
    }),

    learningRate: shared.learningRate(
      3e-4,
      "Adam's step size for the actor, and for the critic unless it has its own.",
    ),
    criticLearningRate: live(z.nullable(positive), null, 'A step size for the critic alone.', {
      aliases: 'criticlr',
      // Whether there are two rates is compiled in.
      liveIf: (config, value) => (config.criticLearningRate === null) === (value === null),
      offered: 'in use',
    }),
    learningRateSchedule: shared.learningRateSchedule(
      'constant',
      'How the learning rates go from their start to learningRateEnd times it.',
      { change: 'live' },
    ),
    learningRateEnd: shared.learningRateEnd(0),
    warmupShare: shared.warmupShare(0),
    adamEpsilon: shared.adamEpsilon(1e-5),
    gradientClip: shared.gradientClip(0.5),

    clipRange: live(
      positive,
      0.2,
      'How far the probability ratio may leave 1 before a sample stops pulling.',
      { aliases: 'clipcoef clipeps clipparam clipratio epsclip', offered: 'always', doctor: 'clipRange' },
    ),
    clipRangeSchedule: live(schedule, 'constant', 'How the clip range goes to clipRangeEnd times its start.'),
    clipRangeEnd: live(share, 0.1, 'The share of the clip range that its schedule ends at.', {
      needs: shared.whenScheduled('clipRangeSchedule'),
    }),
    valueCoef: shared.valueCoef,
    valueClip: setting(
      z.nullable(positive),
      null,
      'Largest change of a value prediction in an update that still pays; null does not clip.',
      { aliases: 'cliprangevf cliprangevalue vfclipparam clipvloss' },
    ),
    valueHuber: setting(
      z.boolean(),
      false,
      'Value loss = mean of the (clipped) squared error and smooth L1: robust to outliers.',
      { aliases: 'usehuber' },
    ),
    normaliseAdvantages: setting(
      z.boolean(),
      true,
      'To mean 0 and std 1 in each minibatch; only centred where their std is below .01.',
      { aliases: 'normadv normalizeadvantage advnorm' },
    ),

    entropyCoef: shared.entropyCoef('Weight of the entropy bonus.'),
    entropyWarmupCoef: setting(
      fromZero,
      0,
      'Further weight of the entropy bonus at the start, falling to 0 over entropyWarmupSteps.',
      { needs: { key: 'entropyWarmupSteps', not: 0 } },
    ),
    entropyWarmupSteps: setting(
      countFromZero,
      0,
      'Minibatch steps over which the entropy warm-up falls to 0.',
      { needs: { key: 'entropyWarmupCoef', not: 0 } },
    ),
    entropyMin: setting(
      z.nullable(z.number()),
      null,
      'A floor of the mean entropy: below it, a penalty of entropyMinCoef times the gap.',
    ),
    entropyMinCoef: setting(fromZero, 1, 'Weight of the penalty below entropyMin.', {
      needs: { key: 'entropyMin', not: null },
    }),

    targetKl: live(
      z.nullable(positive),
      null,
      'Stop an update when its KL passes targetKlFactor times this; null never stops.',
      { aliases: 'kltarget', offered: 'always', doctor: 'targetKl' },
    ),
    targetKlFactor: live(positive, 1.5, 'See targetKl.', { needs: withTarget }),
    targetKlPer: setting(
      z.enum(['minibatch', 'epoch']),
      'minibatch',
      'Look at the KL before each step, or at the mean over an epoch after it.',
      { needs: withTarget },
    ),
    klCoef: live(
      fromZero,
      0,
      'Weight of a penalty on the exact KL to the policy that collected the rollout.',
      {
        aliases: 'initklcoef klcoeff',
        // Without a weight there is no penalty in the program.
        liveIf: config => config.klCoef !== 0 || config.klCoefRule !== 'fixed',
        offered: 'in use',
      },
    ),
    klCoefRule: setting(coefficientRule, 'fixed', 'Whether that weight follows klCoefTarget.'),
    klCoefTarget: live(positive, 0.01, 'The KL that an adaptive klCoef aims at.', { needs: whenAdapting }),
    klCoefHorizon: live(positive, 10_000, 'Samples over which the horizon rule corrects.', {
      needs: { key: 'klCoefRule', is: 'horizon' },
    }),
    klCoefMax: live(positive, 100, 'An adaptive klCoef grows no further.', { needs: whenAdapting }),
    adaptiveRate: live(
      z.boolean(),
      false,
      'Learning rate follows the KL: /1.5 above twice adaptiveRateTarget, x1.5 below half of it.',
    ),
    adaptiveRateTarget: live(positive, 0.01, 'See adaptiveRate.', {
      aliases: 'desiredkl',
      needs: whenRateAdapts,
    }),
    adaptiveRateMin: live(positive, 1e-5, 'Lowest adaptive learning rate.', { needs: whenRateAdapts }),
    adaptiveRateMax: live(positive, 1e-2, 'Highest adaptive learning rate.', { needs: whenRateAdapts }),
    ...shared.guardKeys(
      { of: 'of an update over its whole rollout', state: 'state', rate: 'learning rate' },
      { aliases: 'klbound maxkl', doctor: 'guard' },
    ),

    ...shared.referenceKeys('policy', 'none', 10),
    klRefCoefInitial: setting(fromZero, 0.5, 'Weight of the KL to the reference at the start.', {
      needs: toReference,
    }),
    klRefCoefFinal: setting(fromZero, 0, 'The same after klRefDecaySteps, and from then on.', {
      needs: toReference,
    }),
    klRefDecaySteps: setting(
      countFromZero,
      3000,
      'Minibatch steps over which it goes linearly from initial to final.',
      { needs: toReference },
    ),

    ...shared.logStdKeys,
    logStdEnd: setting(
      z.nullable(z.number()),
      null,
      'An upper bound that falls from logStdInitial to this over the run, so that sampled and most likely actions come to agree; null for none.',
      { actions: 'continuous' },
    ),
    noiseCorrelation: setting(
      belowOne,
      0,
      'How much of its noise a continuous action keeps from the step before: explores in one direction for longer.',
      { actions: 'one box' },
    ),
    ...shared.networkKeys,
    normaliseRewards: fixed(
      z.boolean(),
      false,
      'Rewards divided by the running std of the discounted return, held within +-10.',
      { aliases: 'normreward rewnorm' },
    ),

    ...shared.recoveryKeys('minibatches', 'the last healthy parameters', {
      recoveries: 3,
      rates: 'learning rates',
    }),

    shards: fixed(
      count,
      1,
      'Parts that each rollout is collected in, which several workers may do; must divide envs. Bits depend on it, and not on who collects.',
    ),
    collectors: setting(
      z.union([z.literal('auto'), countFromZero.check(z.maximum(256))]),
      'auto',
      'Processes that collect shards; 0 collects them in this one. auto: as many as the machine runs at once where the environment is slow, else 0.',
      { needs: { key: 'shards', not: 1, add: 'shards of at least 2' } },
    ),

    steps: shared.steps(100_000, 'Environment steps of the run, over all environments.'),
    ...shared.environmentKeys({ ownReturns: true }),
    record: setting(
      z.boolean(),
      true,
      'Record an episode now and then, to be seen on the page; only where the environment can be drawn, or routes requests.',
    ),
    ...shared.autopilotKeys,
    ...shared.logKeys,
  },
  {
    name: 'ppo',
    title: 'Keel config',
    schemaFile: 'schema.json',
    listedBy: 'config',
    of: 'env',
    *contradictions(config) {
      yield* shared.networkContradictions(config);
      yield* shared.guardContradictions(config);
      const { adaptiveRateMin, adaptiveRateMax, logStdEnd, logStdMin, logStdInitial } = config;
      if (adaptiveRateMin > adaptiveRateMax)
        yield wrong(
          'adaptiveRateMin',
          `${adaptiveRateMin} is above adaptiveRateMax ${adaptiveRateMax}: swap them`,
        );
      if (logStdEnd !== null && (logStdEnd < logStdMin || logStdEnd > logStdInitial))
        yield wrong(
          'logStdEnd',
          `${logStdEnd} is outside of ${logStdMin} (logStdMin) to ${logStdInitial} (logStdInitial): it is where the bound falls to`,
        );
      if (config.minibatchSize === 1 && config.normaliseAdvantages)
        yield wrong(
          'minibatchSize',
          '1 leaves nothing of a normalised advantage: use at least 2, or normaliseAdvantages false',
        );
      if (config.klCoefRule !== 'fixed' && config.klCoef === 0)
        yield wrong('klCoefRule', `${config.klCoefRule} has nothing to adapt at klCoef 0: start at .1 or so`);
      yield* shardContradictions(config);
      const uneven = unevenMinibatches(config);
      if (uneven !== undefined) yield { key: 'minibatchSize', text: uneven };
    },
  },
);

/** A whole config of PPO. */
export type PpoConfig = ConfigOf<typeof ppoSettings>;
/** What a user may set. */
export type PpoSettings = SettingsOf<typeof ppoSettings>;

function* shardContradictions({
  shards,
  envs,
  collectors,
  workers,
}: {
  readonly shards: number;
  readonly envs: number;
  readonly collectors: number | 'auto';
  readonly workers: number | 'auto';
}): Generator<Contradiction> {
  if (shards === 1) return;
  if (envs % shards !== 0)
    yield wrong(
      'shards',
      `${shards} does not divide envs ${envs}: try ${shared.divisorsNear(envs, shards).join(' or ')}`,
    );
  if (collectors !== 'auto' && collectors > shards)
    yield wrong(
      'collectors',
      `${collectors} are more than the ${shards} shards that there are to collect: use ${shards} or fewer, or more shards`,
    );
  if (workers !== 'auto' && workers > 0)
    yield wrong(
      'workers',
      `${workers} has no effect with shards ${shards}, whose environments step where they are collected: remove workers, or use collectors`,
    );
}

/**
 * What is wrong with a minibatch size, with sizes near it that would do; undefined if nothing is. Minibatches divide a
 * rollout without a rest: a last, smaller one would weigh its samples more.
 */
export function unevenMinibatches(config: {
  readonly envs: number;
  readonly stepsPerRollout: number;
  readonly minibatchSize: number;
}): string | undefined {
  const { envs, stepsPerRollout, minibatchSize: size } = config;
  const samples = envs * stepsPerRollout;
  if (samples % size === 0) return undefined;
  return `minibatchSize ${size} does not divide ${samples} (envs ${envs} x stepsPerRollout ${stepsPerRollout}): try ${shared.divisorsNear(samples, size).join(' or ')}`;
}
