/** Every key of PPO's config, with its default and what it does. One schema for files, flags, docs and editors. */
import { z } from 'zod';

const positive = z.number().positive();
const share = z.number().min(0).max(1);
const count = z.number().int().min(1);

/**
 * The smallest bound that an update can use. KLs are measured in single precision and held with a margin of 5e-8 for its
 * rounding (src/kl/guard.ts): of 1e-6 that is a twentieth, of 1e-7 half, and of 5e-8 nothing is left to move in.
 */
export const MIN_GUARD = 1e-6;

const schedule = z.enum(['constant', 'linear', 'cosine']);

/** The schema of the `ppo` part of a config. */
export const ppoSchema = z.strictObject({
  stepsPerRollout: count.default(2048).describe('Steps of each environment between two updates.'),
  epochs: count.default(10).describe('Passes over each rollout.'),
  minibatchSize: count
    .default(64)
    .describe('Samples a gradient step; must divide environments x stepsPerRollout.'),
  gamma: share.default(0.99).describe('Discount of a reward one step later.'),
  gaeLambda: share.default(0.95).describe('Between one-step (0) and whole-episode (1) advantages.'),

  learningRate: positive
    .default(3e-4)
    .describe("Adam's step size for the actor, and for the critic unless it has its own."),
  criticLearningRate: positive.nullable().default(null).describe('A step size for the critic alone.'),
  learningRateSchedule: schedule
    .default('constant')
    .describe('How the learning rates go from their start to learningRateEnd times it.'),
  learningRateEnd: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe('The share of the learning rate that a schedule ends at.'),
  warmupShare: share.default(0).describe('The share of the run over which the learning rate rises from 0.'),
  adamEpsilon: positive.default(1e-5).describe("Adam's epsilon."),
  gradientClip: positive
    .nullable()
    .default(0.5)
    .describe('Largest global norm of a gradient; null does not clip.'),

  clipRange: positive
    .default(0.2)
    .describe('How far the probability ratio may leave 1 before a sample stops pulling.'),
  clipRangeSchedule: schedule
    .default('constant')
    .describe('How the clip range goes to clipRangeEnd times its start.'),
  clipRangeEnd: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('The share of the clip range that its schedule ends at.'),
  valueCoef: z.number().min(0).default(0.5).describe('Weight of the value loss.'),
  valueClip: positive
    .nullable()
    .default(null)
    .describe('Largest change of a value prediction in an update that still pays; null does not clip.'),
  valueHuber: z
    .boolean()
    .default(false)
    .describe('Value loss = mean of the (clipped) squared error and smooth L1: robust to outliers.'),
  normaliseAdvantages: z
    .boolean()
    .default(true)
    .describe('To mean 0 and std 1 in each minibatch; only centred where their std is below .01.'),

  entropyCoef: z.number().min(0).default(0).describe('Weight of the entropy bonus.'),
  entropyWarmupCoef: z
    .number()
    .min(0)
    .default(0)
    .describe('Further weight of the entropy bonus at the start, falling to 0 over entropyWarmupSteps.'),
  entropyWarmupSteps: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Minibatch steps over which the entropy warm-up falls to 0.'),
  entropyMin: z
    .number()
    .nullable()
    .default(null)
    .describe('A floor of the mean entropy: below it, a penalty of entropyMinCoef times the gap.'),
  entropyMinCoef: z.number().min(0).default(1).describe('Weight of the penalty below entropyMin.'),

  targetKl: positive
    .nullable()
    .default(null)
    .describe('Stop an update when its KL passes targetKlFactor times this; null never stops.'),
  targetKlFactor: positive.default(1.5).describe('See targetKl.'),
  targetKlPer: z
    .enum(['minibatch', 'epoch'])
    .default('minibatch')
    .describe('Look at the KL before each step, or at the mean over an epoch after it.'),
  klCoef: z
    .number()
    .min(0)
    .default(0)
    .describe('Weight of a penalty on the exact KL to the policy that collected the rollout.'),
  klCoefRule: z
    .enum(['fixed', 'adaptive', 'horizon'])
    .default('fixed')
    .describe('Whether that weight follows klCoefTarget.'),
  klCoefTarget: positive.default(0.01).describe('The KL that an adaptive klCoef aims at.'),
  klCoefHorizon: positive.default(10_000).describe('Samples over which the horizon rule corrects.'),
  klCoefMax: positive.default(100).describe('An adaptive klCoef grows no further.'),
  adaptiveRate: z
    .boolean()
    .default(false)
    .describe('Learning rate follows the KL: /1.5 above twice adaptiveRateTarget, x1.5 below half of it.'),
  adaptiveRateTarget: positive.default(0.01).describe('See adaptiveRate.'),
  adaptiveRateMin: positive.default(1e-5).describe('Lowest adaptive learning rate.'),
  adaptiveRateMax: positive.default(1e-2).describe('Highest adaptive learning rate.'),
  guard: z
    .number()
    .min(MIN_GUARD)
    .nullable()
    .default(0.05)
    .describe(
      'Hard bound on the mean exact KL of an update over its whole rollout, at least 1e-6; null switches the guard off.',
    ),
  guardRetries: z
    .number()
    .int()
    .min(0)
    .default(3)
    .describe(
      'Times that an update beyond the bound is done again at a lower learning rate before the guard steps back.',
    ),

  reference: z
    .enum(['none', 'frozen', 'refreshed', 'averaged'])
    .default('none')
    .describe(
      'A policy to stay near: the one at the start, refreshed every referenceEvery updates, or a running average.',
    ),
  referenceEvery: count.default(10).describe('Updates between refreshes of a refreshed reference.'),
  referenceDecay: share.default(0.99).describe('Share of an averaged reference that stays at each update.'),
  klRefCoefInitial: z
    .number()
    .min(0)
    .default(0.5)
    .describe('Weight of the KL to the reference at the start.'),
  klRefCoefFinal: z.number().min(0).default(0).describe('The same after klRefDecaySteps, and from then on.'),
  klRefDecaySteps: z
    .number()
    .int()
    .min(0)
    .default(3000)
    .describe('Minibatch steps over which it goes linearly from initial to final.'),

  logStdInitial: z.number().default(0).describe('Starting log of the std of continuous actions.'),
  logStdMin: z.number().min(-20).default(-5).describe('Its lower bound.'),
  logStdMax: z.number().max(20).default(2).describe('Its upper bound.'),
  logStdEnd: z
    .number()
    .nullable()
    .default(null)
    .describe(
      'An upper bound that falls from logStdInitial to this over the run, so that sampled and most likely actions come to agree; null for none.',
    ),
  noiseCorrelation: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      'How much of its noise a continuous action keeps from the step before: explores in one direction for longer.',
    ),
  hidden: z
    .array(count)
    .min(1)
    .default([64, 64])
    .describe('Widths of the hidden layers of actor and critic.'),
  activation: z.enum(['tanh', 'relu', 'gelu']).default('tanh').describe('Between layers.'),
  network: z
    .enum(['mlp', 'set'])
    .default('mlp')
    .describe(
      'Layers over the whole observation (mlp), or the same weights for each of its items, one action each, whatever their number (set).',
    ),

  normaliseObservations: z
    .boolean()
    .default(false)
    .describe('Running mean and std of observations, held within +-10.'),
  normaliseRewards: z
    .boolean()
    .default(false)
    .describe('Rewards divided by the running std of the discounted return, held within +-10.'),

  skipLimit: count
    .default(5)
    .describe('Non-finite minibatches in a row that restore the last healthy parameters.'),
  recoveryFactor: z
    .number()
    .positive()
    .max(1)
    .default(0.1)
    .describe('What a restore multiplies the learning rates by.'),
  recoveries: z.number().int().min(0).default(3).describe('Restores before the run stops with a diagnosis.'),
});

export type PpoConfig = z.infer<typeof ppoSchema>;
