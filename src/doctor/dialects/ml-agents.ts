/** Unity ML-Agents: its results folder and what it prints. It logs no KL. */
import type { Dialect } from './dialect.ts';
import { namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['hyperparameters/learning_rate', 'learning_rate'],
  learningRateSchedule: ['hyperparameters/learning_rate_schedule', 'learning_rate_schedule'],
  epochs: ['hyperparameters/num_epoch', 'num_epoch'],
  minibatchSize: ['hyperparameters/batch_size', 'batch_size'],
  samplesPerUpdate: ['hyperparameters/buffer_size', 'buffer_size'],
  totalSteps: ['max_steps'],
  clipRange: ['hyperparameters/epsilon', 'epsilon'],
  entropyCoef: ['hyperparameters/beta', 'beta'],
  gamma: ['reward_signals/extrinsic/gamma', 'gamma'],
  task: ['behavior_name'],
};

export const mlAgents: Dialect = {
  name: 'ml-agents',
  title: 'Unity ML-Agents',
  kind: 'classic',
  signs: [
    { name: 'Environment/Cumulative Reward', points: 4 },
    { name: 'Environment/Episode Length', points: 2 },
    { name: 'Policy/Extrinsic Value Estimate', points: 2 },
    { name: 'Policy/Extrinsic Reward', points: 1 },
    { name: 'Policy/Learning Rate', points: 1 },
    { name: 'Info/cumulative_reward', points: 4 },
  ],
  configSigns: [
    { name: 'trainer_type', points: 2 },
    { name: 'time_horizon', points: 1 },
  ],
  mappings: [
    { theirs: /Environment\/Cumulative Reward|Info\/cumulative_reward/, id: 'episode/return' },
    { theirs: /Environment\/Episode Length|Info\/episode_length/, id: 'episode/length' },
    {
      theirs: /Policy\/Entropy|Info\/entropy/,
      id: 'policy/entropy',
      note: 'of one dimension, the mean over all of them',
    },
    {
      theirs: /Losses\/Policy Loss|Info\/policy_loss/,
      id: 'loss/policy',
      note: 'its size: the sign is taken off',
    },
    { theirs: /Losses\/Value Loss|Info\/value_loss/, id: 'loss/value' },
    { theirs: /Policy\/Extrinsic Value Estimate|Info\/value_estimate/, id: 'value/mean' },
    { theirs: /Policy\/Learning Rate|Info\/learning_rate/, id: 'train/lr' },
    { theirs: 'Policy/Epsilon', id: 'train/clip_range' },
    { theirs: 'Policy/Beta', id: 'train/entropy_coef' },
    { theirs: /Policy\/(?:Extrinsic |[A-Z]\w+ )(?:Reward)/, id: 'reward/mean', note: 'per step' },
    { theirs: 'Time Elapsed', id: 'time/elapsed_s' },
  ],
  ignored: [/(?:Environment|Policy|Losses|Info|Self-play)\/.*/, 'Is Training', 'Std of Reward', /.*_hist/],
  steps: [{ theirs: 'step', unit: 'steps' }],
  eventStep: { unit: 'steps' },
  config,
  wording: {
    names: namesIn(config, { without: ['task'], and: { gamma: 'reward_signals.extrinsic.gamma' } }),
    absent: ['targetKl'],
    otherwise: {
      stepsPerRollout: value =>
        `time_horizon is how many steps of an agent are kept together: time_horizon: ${value}`,
      envs: value => ({ code: `--num-envs=${value}` }),
      rewardScale: value => `reward_signals.extrinsic.strength multiplies the reward: strength: ${value}`,
    },
    write: pairs =>
      `in the behaviour's configuration: ${pairs.map(([name, value]) => `${name}: ${value}`).join(', ')}`,
  },
  remarks:
    'Logs no KL, and the size of the policy loss only. Each behaviour is a run: its settings are in configuration.yaml of the folder above. A reward is the mean of the episodes that ended since the row before.',
};
