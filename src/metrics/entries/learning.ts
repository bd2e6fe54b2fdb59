/** What the update saw and did: value function, losses, policy, advantages, gradients. */
import type { Metric } from '../metric.ts';

export const valueMetrics: readonly Metric[] = [
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
];

export const lossMetrics: readonly Metric[] = [
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
];

export const policyMetrics: readonly Metric[] = [
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
    id: 'policy/saturated_actions',
    group: 'policy',
    title: 'Actions at their bounds',
    unit: '1',
    better: 'none',
    doc: 'Share of the continuous actions that lie at or beyond the bounds of the environment, where a log has it. Keel does not log it.',
    healthy:
      'Small, or falling. Above .5 while the return gets nowhere: what the policy changes there changes nothing.',
  },
  {
    id: 'policy/dead_units',
    group: 'policy',
    title: 'Dead units',
    unit: '1',
    better: 'lower',
    doc: 'Share of the units of the network that give the same for every input, where a log has it. Keel does not log it.',
    healthy:
      'Near 0. Rising to .5 and more while the return stands still: the network has no room left to learn.',
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
];

export const advantageMetrics: readonly Metric[] = [
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
];

export const gradientMetrics: readonly Metric[] = [
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
];
