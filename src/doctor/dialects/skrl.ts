/** skrl. It logs no KL; its tags have spaces around the slash. */
import { moved, scaled } from './derive.ts';
import type { Dialect, Refine } from './dialect.ts';
import { namesIn } from './wording.ts';

const scaleNames = ['entropy_loss_scale'];

/** `Entropy loss` is -scale x H: without the scale its level means nothing. */
const entropyByScale: Refine = (drafts, log, stepOf) => {
  const loss = log.series.get('Loss / Entropy loss');
  if (loss === undefined) return {};
  const scale = log.setting(scaleNames);
  if (typeof scale !== 'number' || !(scale > 0)) {
    return {
      notes: [
        'Loss / Entropy loss is the entropy times -entropy_loss_scale, and that setting is not known: left out',
      ],
    };
  }
  const id = 'policy/entropy';
  return {
    drafts: [
      ...drafts,
      {
        id,
        theirs: loss.theirs,
        series: scaled(moved(loss.series, stepOf), -1 / scale),
        mapping: { theirs: 'Loss / Entropy loss', id },
      },
    ],
  };
};

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['learning_rate'],
  learningRateSchedule: ['learning_rate_scheduler'],
  epochs: ['learning_epochs'],
  stepsPerRollout: ['rollouts'],
  totalSteps: ['timesteps'],
  clipRange: ['ratio_clip'],
  targetKl: ['learning_rate_scheduler_kwargs/kl_threshold', 'kl_threshold'],
  entropyCoef: scaleNames,
  valueCoef: ['value_loss_scale'],
  gamma: ['discount_factor'],
  maxGradNorm: ['grad_norm_clip'],
  task: ['task'],
};

export const skrl: Dialect = {
  name: 'skrl',
  title: 'skrl',
  kind: 'classic',
  signs: [
    { name: 'Loss / Policy loss', points: 3 },
    { name: 'Loss / Value loss', points: 3 },
    { name: /Reward \/ (?:Total|Instantaneous) reward \(mean\)/, points: 3 },
    { name: 'Policy / Standard deviation', points: 2 },
    { name: /Learning \/ .*/, points: 1 },
    { name: /Episode \/ Total timesteps \(.*\)/, points: 1 },
  ],
  configSigns: [{ name: 'entropy_loss_scale', points: 2 }],
  mappings: [
    { theirs: 'Loss / Value loss', id: 'loss/value', note: 'times value_loss_scale' },
    { theirs: 'Q-network / Q1 (mean)', id: 'value/mean', note: 'of DDPG, TD3 and SAC' },
    { theirs: 'Loss / Policy loss', id: 'loss/policy' },
    { theirs: 'Policy / Standard deviation', id: 'policy/std' },
    { theirs: /Learning \/ (?:Policy l|L)earning rate/, id: 'train/lr' },
    { theirs: 'Learning / Value learning rate', id: 'train/lr_critic' },
    { theirs: 'Reward / Total reward (mean)', id: 'episode/return' },
    { theirs: 'Reward / Instantaneous reward (mean)', id: 'reward/mean' },
    { theirs: 'Episode / Total timesteps (mean)', id: 'episode/length' },
  ],
  ignored: [
    /(?:Reward|Episode|Loss|Stats|Info|Policy|Learning|Coefficient|Target|Q-network|Exploration) \/ .*/,
  ],
  steps: [],
  eventStep: { unit: 'steps' },
  config,
  wording: {
    names: namesIn(config, { without: ['learningRateSchedule', 'totalSteps', 'targetKl', 'task'] }),
    otherwise: {
      // Its own kl_threshold only ends an epoch; the scheduler is what holds the KL.
      targetKl: value =>
        `cfg["learning_rate_scheduler"] = KLAdaptiveLR, cfg["learning_rate_scheduler_kwargs"] = {"kl_threshold": ${value}}`,
      learningRateSchedule: value =>
        value === 'constant'
          ? 'cfg["learning_rate_scheduler"] = None'
          : 'cfg["learning_rate_scheduler"] = KLAdaptiveLR',
      rewardScale: value => `cfg["rewards_shaper"] = lambda rewards, *args, **kwargs: rewards * ${value}`,
      minibatchSize: value =>
        `choose cfg["mini_batches"] so that rollouts x environments / mini_batches is ${value}`,
    },
    write: pairs => pairs.map(([name, value]) => `cfg["${name}"] = ${value}`).join(', '),
  },
  refine: entropyByScale,
  klProxy: {
    id: 'train/lr',
    floor: 1e-6,
    ceiling: 1e-2,
    meaning:
      'with KLAdaptiveLR the learning rate follows the KL: at its floor the KL stays above twice kl_threshold, at its ceiling below half of it',
    settings: {
      floor: ['learning_rate_scheduler_kwargs/min_lr', 'min_lr'],
      ceiling: ['learning_rate_scheduler_kwargs/max_lr', 'max_lr'],
      target: ['learning_rate_scheduler_kwargs/kl_threshold', 'kl_threshold'],
    },
  },
  remarks:
    'Logs no KL; with KLAdaptiveLR the learning rate tells it. x counts the steps of one environment. kl_threshold ends an epoch early.',
};
