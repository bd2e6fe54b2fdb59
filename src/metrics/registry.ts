/**
 * The one list of what is logged. The log, the page, the documentation and the doctor all take names, units and
 * meanings from here. Runs in a browser: nothing here may import a Node module.
 *
 * One row is written per iteration, after its update. Unless an entry says otherwise a value is the mean over all
 * minibatches of that update, weighted by their samples. A metric that does not apply (no episode ended, no reference
 * policy) is absent from the row: absent is not NaN.
 */

import { fail, show } from '../base/errors.ts';
import { nearest } from '../base/nearest.ts';
import type { KlContract } from './kl-bands.ts';

export * from './kl-bands.ts';
export type { Tone } from './tones.ts';

/** What distinguishes two numbers that are both called "KL"; those that differ in any of it share no threshold. */
export interface KlSpec {
  /** Which policies: before and after an update, policy and reference, or the sampling and the scoring program. */
  readonly pair: 'step' | 'ref' | 'sampler';
  /** The order in the divergence. */
  readonly direction: 'old‖new' | 'new‖ref' | 'sampler‖scorer';
  readonly estimator: 'exact' | 'k1' | 'k2' | 'k3';
  /** What one sample is. */
  readonly per: 'action' | 'token' | 'sequence';
  /** `rollout`: one measurement over all its samples after the update; `minibatches`: mean over those of the update. */
  readonly aggregation: 'rollout' | 'minibatches' | 'p99' | 'max';
}

/** A family of entries on the page and in the documentation. */
export interface MetricGroup {
  readonly id: string;
  readonly title: string;
}

/** One thing that is logged. */
export interface Metric {
  /** As in the log: `loss/value`. In a family the last part is a placeholder: `reward/part/<name>`. */
  readonly id: string;
  /** The id of a {@link MetricGroup}. */
  readonly group: string;
  readonly title: string;
  /** `1` for a pure number, else `nats`, `s`, `steps`, `steps/s`, `reward` … */
  readonly unit: string;
  readonly better: 'lower' | 'higher' | 'none';
  /** What it is, in plain words. */
  readonly doc: string;
  /** What it looks like when all is well, and what it says when not. */
  readonly healthy?: string;
  /** Only for what is a KL. */
  readonly kl?: KlSpec;
  /** What of the run's contract its KL bands follow; only for what has bands. */
  readonly heldTo?: readonly (keyof KlContract)[];
}

/** In the order of the page. Times come last in every row: see `encodeRow`. */
export const metricGroups: readonly MetricGroup[] = [
  { id: 'kl', title: 'KL divergence' },
  { id: 'episode', title: 'Episodes' },
  { id: 'eval', title: 'Evaluation' },
  { id: 'value', title: 'Value function' },
  { id: 'loss', title: 'Losses' },
  { id: 'policy', title: 'Policy' },
  { id: 'adv', title: 'Advantages' },
  { id: 'reward', title: 'Rewards and returns' },
  { id: 'grad', title: 'Gradients' },
  { id: 'train', title: 'Training' },
  { id: 'guard', title: 'KL guard' },
  { id: 'completion', title: 'Completions' },
  { id: 'sampler', title: 'Sampler and scorer' },
  { id: 'env', title: 'Environment' },
  { id: 'time', title: 'Time' },
];

const klStep = { pair: 'step', direction: 'old‖new', per: 'action' } as const;

/** Every metric and family. The order is that of the columns in a row. */
export const metrics: readonly Metric[] = [
  // ------------------------------------------------------------------------------------------------ progress
  {
    id: 'train/iteration',
    group: 'train',
    title: 'Iteration',
    unit: 'iterations',
    better: 'none',
    doc: 'How many times the run has collected a rollout and updated on it. The first row is iteration 1.',
  },
  {
    id: 'train/step',
    group: 'train',
    title: 'Environment steps',
    unit: 'steps',
    better: 'none',
    doc: 'Steps taken so far in all environments together, this iteration included. The x axis of most plots.',
  },
  // ------------------------------------------------------------------------------------------------ KL
  {
    id: 'kl/step',
    group: 'kl',
    title: 'KL of the update',
    unit: 'nats',
    better: 'none',
    doc: 'How far the whole update moved the policy: exact KL between the policy that collected the rollout and the one after the update (and after the guard), mean over the whole rollout.',
    healthy:
      'Mostly in the bands healthy and ok (without a target KL .001 to .02), small and steady, and falling over the run. Small early spikes are normal. Five updates in a row above .03 are larger steps than usual. Spikes that grow, come late or come with falling returns mean a learning rate that is too high or a reward whose scale changed. Below 1e-6 for long: the policy is frozen.',
    kl: { ...klStep, estimator: 'exact', aggregation: 'rollout' },
    heldTo: ['target', 'guard'],
  },
  {
    id: 'kl/step_raw',
    group: 'kl',
    title: 'KL of the update before the guard',
    unit: 'nats',
    better: 'none',
    doc: 'The same exact KL as the first attempt at this update left it, before the guard did anything. Equal to kl/step where the guard did not act.',
    healthy: 'Equal to kl/step. Far above it: the guard is doing the work of a lower learning rate.',
    kl: { ...klStep, estimator: 'exact', aggregation: 'rollout' },
    // Of what the guard is still to look at, it cuts nothing off.
    heldTo: ['target'],
  },
  {
    id: 'kl/step_p99',
    group: 'kl',
    title: 'KL of the update, 99th percentile',
    unit: 'nats',
    better: 'none',
    doc: 'The exact KL of the update that at most one state (or token) in a hundred passes, after the guard. What guardP99 bounds.',
    healthy:
      'Some times kl/step. Far above it: the update moved a few states much and the rest hardly; guardP99 bounds that.',
    kl: { ...klStep, estimator: 'exact', aggregation: 'p99' },
  },
  {
    id: 'kl/step_max',
    group: 'kl',
    title: 'KL of the update, worst state',
    unit: 'nats',
    better: 'none',
    doc: 'The largest exact KL of the update in any single state (or token) of the rollout, after the guard. What guardMax bounds.',
    healthy:
      'Larger the more states there are. Above 1: in that state the policy is another one; guardMax bounds that.',
    kl: { ...klStep, estimator: 'exact', aggregation: 'max' },
  },
  {
    id: 'kl/step_k1',
    group: 'kl',
    title: 'KL of the update, k1 estimate',
    unit: 'nats',
    better: 'none',
    doc: 'Sampled estimate of the step KL: mean of log old - log new over the actions taken. Unbiased but noisy.',
    healthy:
      'Scatters around kl/step and may be negative; that is the estimator, not a fault. Other trainers log it.',
    kl: { ...klStep, estimator: 'k1', aggregation: 'rollout' },
  },
  {
    id: 'kl/step_k3',
    group: 'kl',
    title: 'KL of the update, k3 estimate',
    unit: 'nats',
    better: 'none',
    doc: 'Sampled estimate of the step KL: mean of ratio - 1 - log ratio. Unbiased and never negative. What Stable-Baselines3 and CleanRL call approx_kl.',
    healthy: 'Near kl/step: the same rollout, estimated from the actions that were taken.',
    kl: { ...klStep, estimator: 'k3', aggregation: 'rollout' },
  },
  {
    id: 'kl/ref',
    group: 'kl',
    title: 'KL to the reference',
    unit: 'nats',
    better: 'none',
    doc: 'How far the policy is from the reference policy: exact KL(policy‖reference). Only with a reference.',
    healthy:
      'Grows slowly and flattens. Racing away means the reference pulls too weakly; stuck at 0 means it pulls too hard.',
    kl: {
      pair: 'ref',
      direction: 'new‖ref',
      estimator: 'exact',
      per: 'action',
      aggregation: 'minibatches',
    },
  },
  {
    id: 'kl/ref_k3',
    group: 'kl',
    title: 'KL to the reference, k3 estimate',
    unit: 'nats',
    better: 'none',
    doc: 'Sampled estimate of the KL(policy‖reference): k3 of the tokens drawn, mean over tokens. Where klRefEstimator goes by the tokens drawn (ratio-k3, k2, k1-advantage, k3), whichever of them the loss has.',
    healthy: 'As kl/ref.',
    kl: { pair: 'ref', direction: 'new‖ref', estimator: 'k3', per: 'token', aggregation: 'minibatches' },
  },
  {
    id: 'kl/sampler',
    group: 'kl',
    title: 'KL between sampler and scorer',
    unit: 'nats',
    better: 'lower',
    doc: 'Difference between the program that drew the actions and the one that scores them, at the same weights.',
    healthy:
      'Zero to float precision. Anything else is a bug: temperature, dropout, precision or re-tokenised text.',
    kl: {
      pair: 'sampler',
      direction: 'sampler‖scorer',
      estimator: 'k3',
      per: 'action',
      aggregation: 'rollout',
    },
  },
  {
    id: 'kl/coef',
    group: 'kl',
    title: 'KL penalty coefficient',
    unit: '1',
    better: 'none',
    doc: 'Weight of the penalty on the step KL in the loss. Not a KL: it is the state of the controller.',
    healthy:
      'Finds a level and stays. At its cap for long: the target is out of reach, so lower the learning rate.',
  },
  {
    id: 'kl/ref_coef',
    group: 'kl',
    title: 'Reference KL coefficient',
    unit: '1',
    better: 'none',
    doc: 'Weight of the pull towards the reference policy. Goes from its initial to its final value and stays there.',
  },
  // ------------------------------------------------------------------------------------------------ episodes
  {
    id: 'episode/return',
    group: 'episode',
    title: 'Episode return',
    unit: 'reward',
    better: 'higher',
    doc: 'Sum of the rewards of an episode, as the environment gave them: mean over the episodes that ended in this iteration. Absent if none did.',
    healthy:
      'Rises with noise, then levels off. A collapse right after a KL spike is unlearning. Flat at its floor from the start: the reward never reaches the policy.',
  },
  {
    id: 'episode/return_best',
    group: 'episode',
    title: 'Best episode return',
    unit: 'reward',
    better: 'higher',
    doc: 'The highest return of a single episode since the run began.',
  },
  {
    id: 'episode/length',
    group: 'episode',
    title: 'Episode length',
    unit: 'steps',
    better: 'none',
    doc: 'Steps of an episode: mean over the episodes that ended in this iteration.',
    healthy: 'Longer is better where staying alive is the task, shorter where reaching a goal is.',
  },
  {
    id: 'episode/count',
    group: 'episode',
    title: 'Episodes ended',
    unit: 'episodes',
    better: 'none',
    doc: 'Episodes that ended in this iteration. With few of them the mean return is noisy.',
  },
  {
    id: 'episode/blow_ups',
    group: 'episode',
    title: 'Physics blow-ups',
    unit: 'episodes',
    better: 'lower',
    doc: 'Episodes of this iteration that ended because the simulation broke down: a state that is not finite. Nothing of it reaches the network.',
    healthy:
      '0. Some, early: actions too strong for the time step. Growing: the policy exploits the simulator.',
  },
  {
    id: 'episode/success',
    group: 'episode',
    title: 'Success rate',
    unit: '1',
    better: 'higher',
    doc: 'Share of the episodes that reached their goal, where the environment says which did.',
  },
  // ------------------------------------------------------------------------------------------------ evaluation
  {
    id: 'eval/return',
    group: 'eval',
    title: 'Evaluation return',
    unit: 'reward',
    better: 'higher',
    doc: 'Mean return of episodes that are for evaluation alone, with the most likely actions (of language models: mean reward of prompts that are). Present only in iterations that evaluated.',
    healthy:
      'Rises with episode/return. Far above it: the noise of training costs that much. Far below: the policy leans on its noise.',
  },
  {
    id: 'eval/return_se',
    group: 'eval',
    title: 'Standard error of the evaluation',
    unit: 'reward',
    better: 'lower',
    doc: 'How far eval/return would scatter if other episodes were played: std of the returns, of a sample, over the root of their number. Two evaluations that differ by less do not differ.',
  },
  {
    id: 'eval/return_std',
    group: 'eval',
    title: 'Spread of evaluation returns',
    unit: 'reward',
    better: 'none',
    doc: 'Standard deviation of the returns over the evaluation episodes.',
  },
  {
    id: 'eval/length',
    group: 'eval',
    title: 'Evaluation episode length',
    unit: 'steps',
    better: 'none',
    doc: 'Mean length of the evaluation episodes; of language models, in tokens.',
  },
  {
    id: 'eval/episodes',
    group: 'eval',
    title: 'Evaluation episodes',
    unit: 'episodes',
    better: 'none',
    doc: 'How many episodes the evaluation played, or how many completions it could grade.',
  },
  {
    id: 'eval/success',
    group: 'eval',
    title: 'Evaluation success rate',
    unit: '1',
    better: 'higher',
    doc: 'Share of the evaluation episodes that reached their goal.',
  },
  // ------------------------------------------------------------------------------------------------ value
  {
    id: 'value/explained_variance',
    group: 'value',
    title: 'Explained variance',
    unit: '1',
    better: 'higher',
    doc: 'How much of the variation of the returns the value function predicted: 1 is perfect, 0 is no better than their mean, below 0 is worse than it. NaN when the returns do not vary.',
    healthy:
      'Starts near 0, climbs to .3 - .9 and does not fall back. Stuck at 0: the critic does not learn. Negative for long: the critic is worse than useless, and so are the advantages.',
  },
  {
    id: 'value/mean',
    group: 'value',
    title: 'Mean predicted value',
    unit: '1',
    better: 'none',
    doc: 'Mean of the value function over the rollout, in the scale of the (normalised) rewards.',
    healthy: 'Follows return/mean. With normalised rewards within ±10, better ±3.',
  },
  // ------------------------------------------------------------------------------------------------ losses
  {
    id: 'loss/policy',
    group: 'loss',
    title: 'Policy loss',
    unit: '1',
    better: 'none',
    doc: 'The clipped surrogate loss, without penalties.',
    healthy:
      'Small and usually negative, .001 to .1 in size. Its level says little; 1e-7 with a KL of 1e-7 is a frozen policy.',
  },
  {
    id: 'loss/value',
    group: 'loss',
    title: 'Value loss',
    unit: '1',
    better: 'lower',
    doc: 'How wrong the value function is about the returns of this rollout (squared, or mixed with Huber).',
    healthy:
      'Falls, with bumps when the policy finds something new. With normalised rewards around 1 or below; thousands or millions mean rewards that are not scaled, or a critic from a run with another scale.',
  },
  {
    id: 'loss/total',
    group: 'loss',
    title: 'Total loss',
    unit: '1',
    better: 'none',
    doc: 'What is minimised: policy and value loss, entropy bonus and penalties with their coefficients.',
    healthy: 'Finite. Its level means nothing by itself.',
  },
  {
    id: 'loss/clone',
    group: 'loss',
    title: 'Cloning loss',
    unit: 'nats',
    better: 'lower',
    doc: 'Cross-entropy of what is cloned under the model: of a token or an action of the demonstrations, or of the odds that a demonstrator gives to each action, mean over those of the iteration.',
    healthy:
      'Falls from the log of the number of choices, fast at first, and flattens. What demonstrations leave open stays.',
  },
  // ------------------------------------------------------------------------------------------------ policy
  {
    id: 'policy/clone_accuracy',
    group: 'policy',
    title: 'Actions as demonstrated',
    unit: '1',
    better: 'higher',
    doc: "Share of the demonstrations' actions that are the policy's most likely ones.",
    healthy: 'Near 1 with one demonstrator; lower with several, where they disagree.',
  },
  {
    id: 'policy/entropy',
    group: 'policy',
    title: 'Entropy',
    unit: 'nats',
    better: 'none',
    doc: 'How undecided the policy is: mean entropy of its action distribution.',
    healthy:
      'Falls slowly and flattens. Falling to its floor early is a collapse; stuck at its maximum is no learning; rising without end is an entropy bonus that is too large. For continuous actions it may be negative: no fault.',
  },
  {
    id: 'policy/entropy_relative',
    group: 'policy',
    title: 'Relative entropy H/Hmax',
    unit: '1',
    better: 'none',
    doc: 'Entropy as a share of its maximum, 0 to 1. Discrete actions only.',
    healthy:
      'Starts near 1, falls, flattens. Near 1 for long is not learning, near 0 is collapse, swinging is a high learning rate.',
  },
  {
    id: 'policy/std',
    group: 'policy',
    title: 'Action standard deviation',
    unit: '1',
    better: 'none',
    doc: 'Mean standard deviation of the continuous actions, over dimensions and the rollout.',
    healthy:
      'Starts as configured and shrinks. Growing far beyond the action range means that the entropy bonus is too large or the environment ignores the scale.',
  },
  {
    id: 'policy/std/<name>',
    group: 'policy',
    title: 'Action standard deviation, one dimension',
    unit: '1',
    better: 'none',
    doc: 'The standard deviation of one dimension of the action.',
  },
  {
    id: 'policy/ratio_mean',
    group: 'policy',
    title: 'Mean probability ratio',
    unit: '1',
    better: 'none',
    doc: 'Mean of new probability / old probability of the actions taken.',
    healthy:
      '1 to two or three decimals. Exactly 1 in every row: nothing moves. Different from 1 before the first step: sampler and scorer disagree.',
  },
  {
    id: 'policy/clip_fraction',
    group: 'policy',
    title: 'Clip fraction',
    unit: '1',
    better: 'none',
    doc: 'Share of samples whose ratio left the clip range.',
    healthy:
      '.02 to .2. Above .3 is too aggressive: lower the learning rate or run fewer epochs. 0 with a KL near 0 is a frozen policy.',
  },
  {
    id: 'policy/clip_fraction_low',
    group: 'policy',
    title: 'Clip fraction, low side',
    unit: '1',
    better: 'none',
    doc: 'Share of samples whose ratio fell below the clip range: actions made less likely, as far as allowed.',
    healthy: 'Below .2. 0 in every row with one update per batch is expected: the ratio is 1 then.',
  },
  {
    id: 'policy/clip_fraction_high',
    group: 'policy',
    title: 'Clip fraction, high side',
    unit: '1',
    better: 'none',
    doc: 'Share of samples whose ratio rose above the clip range: actions made more likely, as far as allowed.',
    healthy: 'Below .2. 0 in every row with one update per batch is expected: the ratio is 1 then.',
  },
  // ------------------------------------------------------------------------------------------------ advantages
  {
    id: 'adv/mean',
    group: 'adv',
    title: 'Mean advantage',
    unit: '1',
    better: 'none',
    doc: 'Mean of the advantages of the rollout, before they are normalised.',
    healthy: 'Around 0, within ±10, better ±3.',
  },
  {
    id: 'adv/std',
    group: 'adv',
    title: 'Spread of the advantages',
    unit: '1',
    better: 'none',
    doc: 'Standard deviation of the advantages of the rollout, before they are normalised.',
    healthy:
      'Of the order of 1 with normalised rewards. Near 0: there is no signal. Hundreds: rewards out of scale.',
  },
  {
    id: 'adv/max',
    group: 'adv',
    title: 'Largest advantage',
    unit: '1',
    better: 'none',
    doc: 'The largest advantage of the rollout.',
    healthy: 'Within 10. Thousands: a group or a batch without spread was divided by it.',
  },
  {
    id: 'adv/min',
    group: 'adv',
    title: 'Smallest advantage',
    unit: '1',
    better: 'none',
    doc: 'The smallest advantage of the rollout.',
    healthy: 'Within -10. Below minus thousands: a group or a batch without spread was divided by it.',
  },
  // ------------------------------------------------------------------------------------------------ rewards
  {
    id: 'reward/mean',
    group: 'reward',
    title: 'Mean reward',
    unit: 'reward',
    better: 'higher',
    doc: 'Mean reward of a step over the rollout, as the environment gave it.',
    healthy:
      'Rises. At one constant value: the task gives no signal. A jump by a factor: its scale was changed.',
  },
  {
    id: 'reward/std',
    group: 'reward',
    title: 'Spread of the rewards',
    unit: 'reward',
    better: 'none',
    doc: 'Standard deviation of the rewards of the rollout, as the environment gave them.',
    healthy: 'Not 0, unless every step truly earns the same.',
  },
  {
    id: 'reward/group_std',
    group: 'reward',
    title: 'Spread within groups',
    unit: 'reward',
    better: 'none',
    doc: 'Standard deviation of the rewards of the completions of one prompt, mean over the prompts.',
    healthy: 'Not 0: what is learnt comes from the differences within a group.',
  },
  {
    id: 'reward/zero_std_groups',
    group: 'reward',
    title: 'Groups without spread',
    unit: '1',
    better: 'lower',
    doc: 'Share of the prompts whose completions all got the same reward, so that nothing is learnt from them.',
    healthy: 'Below .5. Near 1: the task is too hard, too easy, or its reward is broken.',
  },
  {
    id: 'reward/penalised',
    group: 'reward',
    title: 'Reward with penalties',
    unit: 'reward',
    better: 'none',
    doc: 'Mean reward of a completion after penalties (KL, length, truncation) were taken off: what is maximised, not what the task gave.',
    healthy: 'Follows reward/mean. Rising while reward/mean falls: the penalty is what is being optimised.',
  },
  {
    id: 'reward/ungraded',
    group: 'reward',
    title: 'Ungraded completions',
    unit: 'completions',
    better: 'lower',
    doc: 'Completions whose grading failed or gave no finite number; they took no part in the update.',
    healthy: '0. Anything else is a fault of the task: the events say which.',
  },
  {
    id: 'reward/part/<name>',
    group: 'reward',
    title: 'One term of the reward',
    unit: 'reward',
    better: 'none',
    doc: 'One term of a reward that the environment reports in parts: mean per step over the episodes that ended in this iteration.',
    healthy: 'No term should drown the others, and each should have the sign that was meant.',
  },
  {
    id: 'return/mean',
    group: 'reward',
    title: 'Mean return target',
    unit: '1',
    better: 'none',
    doc: 'Mean of the discounted returns that the value function is fitted to, in the scale of the (normalised) rewards.',
    healthy: 'With normalised rewards within ±10, better ±3.',
  },
  // ------------------------------------------------------------------------------------------------ gradients
  {
    id: 'grad/norm',
    group: 'grad',
    title: 'Gradient norm',
    unit: '1',
    better: 'none',
    doc: 'Length of the gradient of all parameters, before it is clipped.',
    healthy:
      'Steady, around the clipping limit or below. Exploding announces NaN; 0 means nothing is learnt.',
  },
  {
    id: 'grad/norm_critic',
    group: 'grad',
    title: 'Gradient norm of the critic',
    unit: '1',
    better: 'none',
    doc: 'Length of the gradient of the value function alone, where it has its own optimiser, before it is clipped.',
  },
  // ------------------------------------------------------------------------------------------------ training
  {
    id: 'train/lr',
    group: 'train',
    title: 'Learning rate',
    unit: '1',
    better: 'none',
    doc: 'Learning rate of the policy at the end of the update.',
    healthy: 'As scheduled. A KL-adaptive rate pinned at its floor says that KL stays above its target.',
  },
  {
    id: 'train/lr_critic',
    group: 'train',
    title: 'Critic learning rate',
    unit: '1',
    better: 'none',
    doc: 'Learning rate of the value function, where it has its own.',
  },
  {
    id: 'train/clip_range',
    group: 'train',
    title: 'Clip range',
    unit: '1',
    better: 'none',
    doc: 'How far from 1 a ratio may be before its gradient is cut.',
  },
  {
    id: 'train/entropy_coef',
    group: 'train',
    title: 'Entropy coefficient',
    unit: '1',
    better: 'none',
    doc: 'Weight of the entropy bonus in the loss.',
  },
  {
    id: 'train/reward_factor',
    group: 'train',
    title: 'Reward warm-up',
    unit: '1',
    better: 'none',
    doc: 'The factor on advantages while rewards warm up: from 0 to 1.',
  },
  {
    id: 'train/epochs_run',
    group: 'train',
    title: 'Epochs run',
    unit: 'epochs',
    better: 'none',
    doc: 'Passes over the rollout that the update took steps along before it ended or stopped early; a part of one counts as that part.',
    healthy:
      'As configured, or a little less. 1 in every row: the target KL is too tight for this learning rate.',
  },
  {
    id: 'train/minibatches_run',
    group: 'train',
    title: 'Minibatches run',
    unit: 'minibatches',
    better: 'none',
    doc: 'Gradient steps of this update that took effect.',
  },
  {
    id: 'train/early_stop',
    group: 'train',
    title: 'Stopped early',
    unit: '1',
    better: 'none',
    doc: '1 if the update was ended by the target KL, else 0.',
    healthy:
      'Now and then. In every iteration: reduce the learning rate or the epochs, or allow a larger target KL.',
  },
  {
    id: 'train/skipped',
    group: 'train',
    title: 'Skipped minibatches',
    unit: 'minibatches',
    better: 'lower',
    doc: 'Minibatches whose loss or gradient was not finite, and which were left out.',
    healthy: '0.',
  },
  // ------------------------------------------------------------------------------------------------ guard
  {
    id: 'guard/retries',
    group: 'guard',
    title: 'Attempts again',
    unit: '1',
    better: 'lower',
    doc: 'How often the update left the bound and was done again from where it began, at a lower learning rate.',
    healthy: '0. Now and then is no harm; in most rows: the learning rate is too high.',
  },
  {
    id: 'guard/backtracks',
    group: 'guard',
    title: 'Guard backtracks',
    unit: '1',
    better: 'lower',
    doc: 'How often the guard stepped back towards the old parameters until the KL was within its bound.',
    healthy: '0. Above 0 in most rows: the learning rate is too high and the guard hides it.',
  },
  {
    id: 'guard/scale',
    group: 'guard',
    title: 'Guard scale',
    unit: '1',
    better: 'none',
    doc: 'The share of the update that the guard let stand: 1 is all of it.',
    healthy: '1.',
  },
  {
    id: 'guard/rate',
    group: 'guard',
    title: 'Rate left by the guard',
    unit: '1',
    better: 'none',
    doc: 'The share of the learning rate that the guard has left for the next update: updates beyond the bound cut it, calm ones win it back.',
    healthy: '1, or on its way back there. Below .1 for long: the learning rate is too high for the bound.',
  },
  // ------------------------------------------------------------------------------------------------ completions
  {
    id: 'completion/length',
    group: 'completion',
    title: 'Completion length',
    unit: 'tokens',
    better: 'none',
    doc: 'Tokens of a completion: mean over the batch.',
    healthy: 'Changes slowly. A jump to the limit or to almost nothing comes with a collapse of the reward.',
  },
  {
    id: 'completion/length_min',
    group: 'completion',
    title: 'Shortest completion',
    unit: 'tokens',
    better: 'none',
    doc: 'Tokens of the shortest completion of the batch.',
  },
  {
    id: 'completion/length_max',
    group: 'completion',
    title: 'Longest completion',
    unit: 'tokens',
    better: 'none',
    doc: 'Tokens of the longest completion of the batch.',
  },
  {
    id: 'completion/truncated',
    group: 'completion',
    title: 'Truncated completions',
    unit: '1',
    better: 'lower',
    doc: 'Share of the completions that were cut at the maximal length before they ended.',
    healthy: 'Near 0. Rising: the policy rambles, or the limit is too short for the task.',
  },
  {
    id: 'completion/kl_capped',
    group: 'completion',
    title: 'Completions ended by the KL cap',
    unit: '1',
    better: 'lower',
    doc: 'Share of the completions that ended because their summed KL to the reference passed its cap.',
    healthy: 'Near 0. Rising: the policy leaves the reference in some prompts.',
  },
  {
    id: 'completion/parse_rate',
    group: 'completion',
    title: 'Well-formed completions',
    unit: '1',
    better: 'higher',
    doc: 'Share of the completions whose answer could be read.',
    healthy: 'Rises to 1 early and stays. Falling: the policy leaves the format, often after a KL spike.',
  },
  {
    id: 'completion/prompt_length',
    group: 'completion',
    title: 'Prompt length',
    unit: 'tokens',
    better: 'none',
    doc: 'Tokens of a prompt: mean over the batch.',
  },
  {
    id: 'completion/prompts_skipped',
    group: 'completion',
    title: 'Prompts too long',
    unit: 'prompts',
    better: 'lower',
    doc: "Prompts that did not fit the model's context beside a completion, and were left out.",
    healthy: '0.',
  },
  // ------------------------------------------------------------------------------------------------ sampler
  {
    id: 'sampler/logp_diff',
    group: 'sampler',
    title: 'Log-probability difference',
    unit: 'nats',
    better: 'lower',
    doc: 'Mean absolute difference of the log-probability of a token between the program that sampled it and the one that scores it, at the same weights.',
    healthy:
      'Below .01 with equal precision, some hundredths with a quantised sampler. Growing: the two programs drift apart.',
  },
  {
    id: 'sampler/logp_diff_max',
    group: 'sampler',
    title: 'Largest log-probability difference',
    unit: 'nats',
    better: 'lower',
    doc: 'The largest absolute difference of the log-probability of a token between sampler and scorer.',
  },
  {
    id: 'sampler/prob_diff',
    group: 'sampler',
    title: 'Probability difference',
    unit: '1',
    better: 'lower',
    doc: 'Mean absolute difference of the probability of a token between the program that sampled it and the one that scores it.',
    healthy: 'Below .01. Growing, most of all with long completions, announces a collapse.',
  },
  {
    id: 'sampler/prob_diff_max',
    group: 'sampler',
    title: 'Largest probability difference',
    unit: '1',
    better: 'lower',
    doc: 'The largest absolute difference of the probability of a token between sampler and scorer.',
  },
  {
    id: 'sampler/ratio_mean',
    group: 'sampler',
    title: 'Mean sampler ratio',
    unit: '1',
    better: 'none',
    doc: 'Mean of the probability of a token in the scorer / in the sampler, at the same weights.',
    healthy: '1 to two decimals.',
  },
  {
    id: 'sampler/ratio_min',
    group: 'sampler',
    title: 'Smallest sampler ratio',
    unit: '1',
    better: 'none',
    doc: 'The smallest such ratio in the batch.',
  },
  {
    id: 'sampler/ratio_max',
    group: 'sampler',
    title: 'Largest sampler ratio',
    unit: '1',
    better: 'none',
    doc: 'The largest such ratio in the batch.',
  },
  // ------------------------------------------------------------------------------------------------ environment
  {
    id: 'env/<name>',
    group: 'env',
    title: "The environment's own measurement",
    unit: '1',
    better: 'none',
    doc: 'A number that the environment reports about itself, such as a speed: mean per step over the episodes that ended in this iteration.',
  },
  // ------------------------------------------------------------------------------------------------ time
  {
    id: 'time/unix_s',
    group: 'time',
    title: 'Written at',
    unit: 's',
    better: 'none',
    doc: 'Seconds since 1970 when the row was written.',
  },
  {
    id: 'time/elapsed_s',
    group: 'time',
    title: 'Time in training',
    unit: 's',
    better: 'none',
    doc: 'Seconds of training so far, without the pauses between a stop and its resumption.',
  },
  {
    id: 'time/steps_per_second',
    group: 'time',
    title: 'Speed',
    unit: 'steps/s',
    better: 'higher',
    doc: 'Environment steps per second in this iteration, everything included.',
  },
  {
    id: 'time/collect_s',
    group: 'time',
    title: 'Time collecting',
    unit: 's',
    better: 'lower',
    doc: 'Seconds of this iteration spent stepping environments and choosing actions.',
  },
  {
    id: 'time/env_s',
    group: 'time',
    title: 'Time in environments',
    unit: 's',
    better: 'lower',
    doc: 'Seconds of this iteration in which the environments stepped, and the bookkeeping that was done meanwhile; part of time/collect_s.',
  },
  {
    id: 'time/update_s',
    group: 'time',
    title: 'Time updating',
    unit: 's',
    better: 'lower',
    doc: 'Seconds of this iteration spent in the update; the guard is apart, in time/guard_s.',
  },
  {
    id: 'time/guard_s',
    group: 'time',
    title: 'Time in the guard',
    unit: 's',
    better: 'lower',
    doc: 'Seconds of this iteration spent measuring the KL of the update and stepping back.',
  },
  {
    id: 'time/eval_s',
    group: 'time',
    title: 'Time evaluating',
    unit: 's',
    better: 'lower',
    doc: 'Seconds of this iteration spent in its evaluation. Present only in iterations that evaluated.',
  },
  {
    id: 'time/log_s',
    group: 'time',
    title: 'Time logging',
    unit: 's',
    better: 'lower',
    doc: 'Seconds spent writing the previous row, its events and its checkpoint.',
  },
];

/** The four plots to show first: is the policy moving sanely, does it help, and does the critic keep up. */
export const headlineMetrics: readonly string[] = [
  'kl/step',
  'episode/return',
  'value/explained_variance',
  'loss/value',
];

const placeholder = '/<name>';
const exact = new Map(metrics.filter(m => !m.id.endsWith(placeholder)).map(m => [m.id, m]));
const families = metrics
  .filter(m => m.id.endsWith(placeholder))
  .map(m => ({ prefix: m.id.slice(0, -'<name>'.length), metric: m }));
const rank = new Map(metrics.map((m, i) => [m, i]));

/** What a name may look like, so that it is safe in a column header, a tag, a path and a link. */
const idPattern = /^[a-z][a-z0-9_]*(\/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$/;
const maxIdLength = 120;

/** Whether a name is well formed; whether it is known is another question. */
export function isMetricId(id: string): boolean {
  return id.length <= maxIdLength && idPattern.test(id);
}

/** The entry of a name, also of a member of a family (`reward/part/fall`); undefined if there is none. */
export function findMetric(id: string): Metric | undefined {
  const metric = exact.get(id);
  if (metric !== undefined || !isMetricId(id)) return metric;
  return families.find(f => id.startsWith(f.prefix) && !id.includes('/', f.prefix.length))?.metric;
}

/** What a metric's bands are held to in a run with this contract; undefined where it has no bands. */
export function heldTo(id: string, { target, guard }: KlContract): KlContract | undefined {
  const held = findMetric(id)?.heldTo;
  if (held === undefined) return undefined;
  return {
    ...(held.includes('target') ? { target: target ?? null } : {}),
    ...(held.includes('guard') && guard !== undefined ? { guard } : {}),
  };
}

/** The entry of a name; an unknown one is an error that names the nearest. */
export function requireMetric(id: string): Metric {
  return findMetric(id) ?? fail(unknownMetric(id), 'unknown-metric');
}

function unknownMetric(id: string): string {
  const head = `unknown metric ${show(id)}`;
  const family = families.find(f => id.startsWith(f.prefix));
  if (family !== undefined) {
    return `${head}: a name after ${family.prefix} has letters, digits, _ . - and at most ${maxIdLength} characters in all`;
  }
  const near = nearest(
    id,
    metrics.map(m => m.id),
  );
  return near === undefined
    ? `${head}: use one of src/metrics/registry.ts, or env/<name> for a measurement of your own`
    : `${head}: did you mean ${near}?`;
}

/** Orders names as the registry does, members of a family among themselves by name, unknown names before the times. */
export function compareMetricIds(a: string, b: string): number {
  return rankOf(a) - rankOf(b) || (a < b ? -1 : a > b ? 1 : 0);
}

const firstTime = metrics.findIndex(m => m.group === 'time');

function rankOf(id: string): number {
  const metric = findMetric(id);
  if (metric !== undefined) return rank.get(metric)!;
  return isTimeKey(id) ? metrics.length : firstTime - 0.5;
}

/** Whether a key holds the clock's reading, which differs between two otherwise equal runs: all that begin `time/`. */
export function isTimeKey(key: string): boolean {
  return key.startsWith('time/');
}
