/** Every key of GRPO's config, with its default and what it does. One schema for files, flags and docs. */
import { z } from 'zod';
import { MIN_GUARD } from '../ppo-config.ts';
import {
  count,
  countFrom0,
  modelKeys,
  optimiserKeys,
  positive,
  runKeys,
  schedule,
  share,
} from './text-config.ts';

export const grpoSchema = z.strictObject({
  steps: count.default(6400).describe('Completions of the run.'),
  promptsPerIteration: count.default(8).describe('Prompts between two updates.'),
  groupSize: count
    .min(2)
    .default(8)
    .describe('Completions of each prompt, which are compared with each other.'),
  minibatchSize: count
    .nullable()
    .default(null)
    .describe('Completions a gradient step; must divide prompts x group. null is all of them.'),
  epochs: count.default(1).describe('Passes over each batch.'),

  temperature: positive
    .max(100)
    .default(1)
    .describe('Logits are divided by it, in sampling and in scoring alike.'),
  topK: countFrom0.default(0).describe('Draw only from so many of the most likely tokens; 0 is all.'),
  topP: positive
    .max(1)
    .default(1)
    .describe('Draw only from the most likely tokens that together have this probability.'),
  maxNewTokens: count
    .nullable()
    .default(null)
    .describe("Tokens that a completion may have; null is the task's own limit."),
  klCap: positive
    .nullable()
    .default(null)
    .describe('A completion whose summed KL to the reference passes this ends there; null never ends one.'),

  learningRate: positive
    .default(1e-4)
    .describe("Adam's step size. For some million parameters; GPT-2 small wants 1e-6 to 1e-5."),
  learningRateSchedule: schedule
    .default('cosine')
    .describe('How the learning rate goes to learningRateEnd times its start.'),
  warmupShare: share.default(0).describe('The share of the run over which the learning rate rises from 0.'),
  ...optimiserKeys,

  advantage: z
    .enum(['group', 'mean', 'leave-one-out'])
    .default('group')
    .describe(
      "A completion's reward less its group's mean, divided by the group's std; only less the mean; or less the mean of the others.",
    ),
  groupStdFloor: positive
    .default(0.01)
    .describe('The least std that advantages are divided by: a group of nearly equal rewards stays small.'),
  clipLow: positive
    .max(1)
    .default(0.2)
    .describe('How far below 1 a ratio may be before its token stops pulling.'),
  clipHigh: positive.default(0.2).describe('How far above 1 a ratio may be before its token stops pulling.'),
  aggregation: z
    .enum(['token', 'sequence', 'constant'])
    .default('token')
    .describe(
      'The loss is a mean over all tokens, a mean over completions of their mean, or a sum divided by completions x maxNewTokens.',
    ),
  entropyCoef: z.number().min(0).default(0).describe('Weight of the entropy bonus, per token.'),
  rewardWarmup: countFrom0
    .default(0)
    .describe('Iterations over which advantages rise from 0 to their full size.'),
  lengthPenalty: z
    .number()
    .min(0)
    .default(0)
    .describe('Taken off the reward of a completion as long as allowed, linearly less of a shorter one.'),
  lengthFree: countFrom0.default(0).describe('Tokens that no length penalty counts.'),
  truncated: z
    .enum(['keep', 'mask', 'penalise'])
    .default('keep')
    .describe(
      'A completion that was cut off counts like any other, is left out of the loss, or loses truncatedPenalty.',
    ),
  truncatedPenalty: z.number().min(0).default(0.5).describe('See truncated.'),

  reference: z
    .enum(['none', 'frozen', 'refreshed', 'averaged'])
    .default('frozen')
    .describe(
      'A model to stay near: the one at the start, refreshed every referenceEvery updates, or a running average.',
    ),
  referenceEvery: count.default(20).describe('Updates between refreshes of a refreshed reference.'),
  referenceDecay: share.default(0.99).describe('Share of an averaged reference that stays at each update.'),
  klRefEstimator: z
    .enum(['auto', 'exact', 'k3'])
    .default('auto')
    .describe(
      'The KL to the reference: exact over the whole vocabulary, or k3 of the tokens drawn; auto is exact where it fits in memory.',
    ),
  klRefCoef: z.number().min(0).default(0.01).describe('Weight of the KL to the reference, per token.'),
  klRefCoefWarmup: countFrom0.default(0).describe('Iterations over which that weight rises from 0.'),
  klRefCoefRule: z
    .enum(['fixed', 'adaptive', 'horizon'])
    .default('fixed')
    .describe('Whether that weight follows klRefTarget.'),
  klRefTarget: positive
    .default(0.05)
    .describe('The KL to the reference, per token, that an adaptive weight aims at.'),
  klRefHorizon: positive.default(10_000).describe('Completions over which the horizon rule corrects.'),
  klRefCoefMin: positive
    .default(0.001)
    .describe(
      'An adaptive klRefCoef falls no further: at first the KL is 0, and what has vanished is long in coming back.',
    ),
  klRefCoefMax: positive.default(10).describe('An adaptive klRefCoef grows no further.'),

  guard: z
    .number()
    .min(MIN_GUARD)
    .nullable()
    .default(0.05)
    .describe(
      'Hard bound on the mean exact KL per token of an update over its whole batch, at least 1e-6; null switches the guard off.',
    ),
  guardRetries: countFrom0
    .default(3)
    .describe(
      'Times that an update beyond the bound is done again at a lower rate before the guard steps back.',
    ),
  skipLimit: count
    .default(5)
    .describe('Non-finite gradient steps in a row that restore the last healthy weights.'),
  recoveryFactor: positive.max(1).default(0.1).describe('What a restore multiplies the learning rate by.'),
  recoveries: countFrom0.default(5).describe('Restores before the run stops with a diagnosis.'),

  logGroups: countFrom0
    .max(64)
    .default(2)
    .describe('Groups of each iteration whose completions are written to completions.jsonl.'),
  ...modelKeys,
  ...runKeys,
});

export type GrpoConfig = z.infer<typeof grpoSchema>;
/** What a user may set. */
export type GrpoSettings = Readonly<Partial<z.input<typeof grpoSchema>>>;
