/** TRL's PPO trainer, 0.12 and later (RLOO logged the same names). */
import type { Dialect } from './dialect.ts';
import { call, namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['learning_rate'],
  learningRateSchedule: ['lr_scheduler_type'],
  epochs: ['num_ppo_epochs'],
  minibatchSize: ['mini_batch_size'],
  clipRange: ['cliprange'],
  valueCoef: ['vf_coef'],
  gamma: ['gamma'],
  refCoef: ['kl_coef'],
  temperature: ['temperature'],
  maxCompletionLength: ['response_length'],
  task: ['dataset_name'],
};

export const trlPpo: Dialect = {
  name: 'trl-ppo',
  title: 'TRL PPO',
  kind: 'language-model',
  prefixes: ['train/'],
  signs: [
    { name: 'objective/rlhf_reward', points: 4 },
    { name: 'objective/scores', points: 2 },
    { name: 'objective/kl', points: 1 },
    { name: 'policy/approxkl_avg', points: 4 },
    { name: 'policy/clipfrac_avg', points: 2 },
    { name: 'loss/value_avg', points: 2 },
  ],
  mappings: [
    {
      theirs: 'policy/approxkl_avg',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k2', per: 'token', aggregation: 'minibatches' },
    },
    {
      theirs: 'objective/kl',
      id: 'kl/ref',
      kl: log => ({
        pair: 'ref',
        estimator: log.setting(['kl_estimator']) === 'k3' ? 'k3' : 'k1',
        per: 'sequence',
        aggregation: 'rollout',
      }),
      note: 'summed over the tokens of a completion; k3 with kl_estimator="k3"',
    },
    { theirs: 'objective/scores', id: 'reward/mean' },
    { theirs: 'objective/rlhf_reward', id: 'reward/penalised' },
    { theirs: 'policy/clipfrac_avg', id: 'policy/clip_fraction' },
    { theirs: 'policy/entropy_avg', id: 'policy/entropy', note: 'per token' },
    { theirs: 'loss/value_avg', id: 'loss/value' },
    { theirs: 'loss/policy_avg', id: 'loss/policy' },
    { theirs: 'val/ratio', id: 'policy/ratio_mean' },
    { theirs: /lr|learning_rate/, id: 'train/lr' },
    { theirs: 'grad_norm', id: 'grad/norm' },
  ],
  ignored: [
    /objective\/(?:entropy|non_score_reward)/,
    /val\/.*/,
    /eps|episode|epoch|loss|num_input_tokens_seen|total_flos/,
    /train_.*/,
  ],
  steps: [
    { theirs: 'step', unit: 'updates' },
    { theirs: 'global_step', unit: 'updates' },
    { theirs: 'episode', unit: 'episodes' },
  ],
  eventStep: { unit: 'updates' },
  config,
  wording: {
    names: namesIn(config, { without: ['minibatchSize', 'task'] }),
    otherwise: {
      minibatchSize: value => `choose num_mini_batches so that a minibatch has ${value} completions`,
    },
    write: call('PPOConfig', ''),
  },
  remarks:
    'objective/kl is summed over a completion, so that it grows with its length. objective/rlhf_reward has the KL penalty in it; objective/scores is what the task gave.',
};
