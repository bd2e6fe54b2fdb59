/** Every setting of GRPO. */
import * as z from 'zod/mini';
import * as shared from '../../settings/shared.ts';
import {
  type ConfigOf,
  live,
  type SettingsOf,
  setting,
  table,
  type Values,
  wrong,
} from '../../settings/spec.ts';
import { coefficientRule, count, countFromZero, fromZero, positive } from '../../settings/values.ts';

/** What needs a model to stay near. */
const toReference = { key: 'reference', not: 'none', add: 'a reference (reference frozen)' };
const whenAdapting = { key: 'klRefCoefRule', not: 'fixed', add: 'klRefCoefRule adaptive or horizon' };

/** Every setting of GRPO. */
export const grpoSettings = table(
  {
    steps: shared.steps(6400, 'Completions of the run.'),
    promptsPerIteration: setting(count, 8, 'Prompts between two updates.', {
      aliases: 'batchsize trainbatchsize rolloutbatchsize',
    }),
    groupSize: setting(
      count.check(z.minimum(2)),
      8,
      'Completions of each prompt, which are compared with each other.',
      { aliases: 'numgenerations rolloutn nsamplesperprompt', doctor: 'groupSize' },
    ),
    minibatchSize: setting(
      z.nullable(count),
      null,
      'Completions a gradient step; must divide prompts x group. null is all of them.',
      { aliases: 'ppominibatchsize', doctor: 'minibatchSize' },
    ),
    epochs: setting(count, 1, 'Passes over each batch.', {
      aliases: 'numiterations ppoepochs nepochs',
      doctor: 'epochs',
    }),

    temperature: live(
      positive.check(z.maximum(100)),
      1,
      'Logits are divided by it, in sampling and in scoring alike.',
      { doctor: 'temperature' },
    ),
    topK: live(countFromZero, 0, 'Draw only from so many of the most likely tokens; 0 is all.'),
    topP: live(
      positive.check(z.maximum(1)),
      1,
      'Draw only from the most likely tokens that together have this probability.',
    ),
    maxNewTokens: setting(
      z.nullable(count),
      null,
      "Tokens that a completion may have; null is the task's own limit.",
      {
        aliases: 'maxcompletionlength maxresponselength generatemaxlen maxtokens',
        doctor: 'maxCompletionLength',
      },
    ),
    klCap: setting(
      z.nullable(positive),
      null,
      'A completion whose summed KL to the reference passes this ends there; null never ends one.',
      { needs: { ...toReference, off: null } },
    ),

    learningRate: shared.learningRate(
      1e-4,
      "Adam's step size. For some million parameters; GPT-2 small wants 1e-6 to 1e-5.",
    ),
    learningRateSchedule: shared.learningRateSchedule('cosine'),
    warmupShare: shared.warmupShare(0),
    ...shared.textOptimiserKeys,

    advantage: setting(
      z.enum(['group', 'mean', 'leave-one-out']),
      'group',
      "A completion's reward less its group's mean, divided by the group's std; only less the mean; or less the mean of the others.",
      { aliases: 'scalerewards advestimator' },
    ),
    groupStdFloor: live(
      positive,
      0.01,
      'The least std that advantages are divided by: a group of nearly equal rewards stays small.',
      { needs: { key: 'advantage', is: 'group' } },
    ),
    clipLow: live(
      positive.check(z.maximum(1)),
      0.2,
      'How far below 1 a ratio may be before its token stops pulling.',
      { aliases: 'epsilon cliprange', doctor: 'clipRange' },
    ),
    clipHigh: live(positive, 0.2, 'How far above 1 a ratio may be before its token stops pulling.', {
      aliases: 'epsilonhigh',
      doctor: { writes: ['clipRangeHigh'] },
    }),
    aggregation: setting(
      z.enum(['token', 'sequence', 'constant']),
      'token',
      'The loss is a mean over all tokens, a mean over completions of their mean, or a sum divided by completions x maxNewTokens.',
      { aliases: 'losstype lossaggmode' },
    ),
    denominator: setting(
      z.enum(['all', 'counted']),
      'all',
      'The completions that sequence and constant divide by: all of the minibatch, or without those that are left out of the loss, as in runs made before.',
      { needs: { key: 'aggregation', not: 'token', add: 'aggregation sequence or constant' } },
    ),
    entropyCoef: shared.entropyCoef('Weight of the entropy bonus, per token.'),
    rewardWarmup: live(countFromZero, 0, 'Iterations over which advantages rise from 0 to their full size.'),
    lengthPenalty: live(
      fromZero,
      0,
      'Taken off the reward of a completion as long as allowed, linearly less of a shorter one.',
    ),
    lengthFree: live(countFromZero, 0, 'Tokens that no length penalty counts.', {
      needs: { key: 'lengthPenalty', not: 0, off: 0 },
    }),
    truncated: setting(
      z.enum(['keep', 'mask', 'penalise']),
      'keep',
      'A completion that was cut off counts like any other, is left out of the loss, or loses truncatedPenalty.',
      { aliases: 'masktruncatedcompletions' },
    ),
    truncatedPenalty: live(fromZero, 0.5, 'See truncated.', {
      needs: { key: 'truncated', is: 'penalise', off: 0 },
    }),

    ...shared.referenceKeys('model', 'frozen', 20),
    klRefEstimator: setting(
      z.enum(['auto', 'exact', 'exact-sequence', 'ratio-k3', 'k2', 'k1-advantage', 'k3', 'exact-or-k3']),
      'auto',
      'How the KL to the reference is in the loss. Of each token: exact over the whole vocabulary, or ratio-k3 or k2 of the token drawn. Of the sequence: exact-sequence, or k1-advantage. auto is exact where it fits in memory, else ratio-k3. For runs made before: k3, whose gradient is that of the KL of the reference to the policy, and exact-or-k3, which was auto.',
      { aliases: 'usebiascorrectionkl kllosstype klestimator', needs: toReference },
    ),
    klRefCoef: live(fromZero, 0.01, 'Weight of the KL to the reference, per token.', {
      aliases: 'beta klcoef klcoeff initklcoef',
      needs: { ...toReference, off: 0 },
      doctor: 'refCoef',
    }),
    klRefCoefWarmup: live(countFromZero, 0, 'Iterations over which that weight rises from 0.', {
      needs: { ...toReference, off: 0 },
    }),
    klRefCoefRule: setting(coefficientRule, 'fixed', 'Whether that weight follows klRefTarget.', {
      needs: toReference,
    }),
    klRefTarget: live(
      positive,
      0.05,
      'The KL to the reference, per token, that an adaptive weight aims at.',
      { aliases: 'initkltarget targetkl kltarget', needs: whenAdapting },
    ),
    klRefHorizon: live(positive, 10_000, 'Completions over which the horizon rule corrects.', {
      needs: { key: 'klRefCoefRule', is: 'horizon' },
    }),
    klRefCoefMin: live(
      positive,
      0.001,
      'An adaptive klRefCoef falls no further: at first the KL is 0, and what has vanished is long in coming back.',
      { needs: whenAdapting },
    ),
    klRefCoefMax: live(positive, 10, 'An adaptive klRefCoef grows no further.', { needs: whenAdapting }),

    // What bounds an update here is the guard: the doctor's advice on a target is written for it.
    ...shared.guardKeys(
      { of: 'per token of an update over its whole batch', state: 'token', rate: 'rate' },
      { doctor: { reads: 'guard', writes: ['guard', 'targetKl'] } },
    ),
    ...shared.recoveryKeys('gradient steps', 'the last healthy weights', {
      recoveries: 5,
      rates: 'learning rate',
    }),

    logGroups: live(
      countFromZero.check(z.maximum(64)),
      2,
      'Groups of each iteration whose completions are written to completions.jsonl.',
    ),
    ...shared.modelKeys,
    ...shared.textRunKeys({ ownReturns: true }),
    ...shared.autopilotKeys,
  },
  {
    name: 'grpo',
    title: 'Keel config of GRPO',
    schemaFile: 'schema-grpo.json',
    listedBy: 'config <task>',
    of: 'task',
    *contradictions(config) {
      const { promptsPerIteration, groupSize, minibatchSize } = config;
      const batch = promptsPerIteration * groupSize;
      if (minibatchSize !== null && batch % minibatchSize !== 0) {
        const near = shared
          .divisorsNear(batch, minibatchSize)
          .reduce((a, b) => (Math.abs(b - minibatchSize) < Math.abs(a - minibatchSize) ? b : a));
        yield wrong(
          'minibatchSize',
          `${minibatchSize} does not divide ${batch} (promptsPerIteration ${promptsPerIteration} x groupSize ${groupSize}): try ${near}`,
        );
      }
      yield* shared.modelContradictions(config);
      yield* shared.guardContradictions(config);
      const { klRefCoef, klRefCoefRule, klRefCoefMin, klRefCoefMax, maxNewTokens, lengthFree } = config;
      if (klRefCoefRule !== 'fixed' && klRefCoef === 0)
        yield wrong(
          'klRefCoefRule',
          `${klRefCoefRule} has nothing to adapt at klRefCoef 0: start at .01 or so`,
        );
      if (klRefCoefMin > klRefCoefMax)
        yield wrong('klRefCoefMin', `${klRefCoefMin} is above klRefCoefMax ${klRefCoefMax}: exchange them`);
      if (maxNewTokens !== null && lengthFree >= maxNewTokens && config.lengthPenalty > 0)
        yield wrong('lengthFree', `${lengthFree} is not below maxNewTokens ${maxNewTokens}: use less`);
    },
    upgrade: saved => (Object.hasOwn(saved, 'denominator') ? saved : fromBefore(saved)),
  },
);

/** A whole config of GRPO. */
export type GrpoConfig = ConfigOf<typeof grpoSettings>;
/** What a user may set. */
export type GrpoSettings = SettingsOf<typeof grpoSettings>;

/**
 * Runs from before `denominator` was a setting divided by the completions that count, and their `auto` was k3 where the exact
 * KL does not fit. They go on as they began.
 */
function fromBefore(saved: Values): Values {
  const { klRefEstimator = 'auto' } = saved;
  return {
    ...saved,
    denominator: 'counted',
    klRefEstimator: klRefEstimator === 'auto' ? 'exact-or-k3' : klRefEstimator,
  };
}
