/** TRL's PPO trainer up to 0.11. */
import type { Dialect } from './dialect.ts';
import { call, namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['learning_rate'],
  epochs: ['ppo_epochs'],
  minibatchSize: ['mini_batch_size'],
  samplesPerUpdate: ['batch_size'],
  totalSteps: ['steps'],
  clipRange: ['cliprange'],
  targetKl: ['target_kl'],
  valueCoef: ['vf_coef'],
  gamma: ['gamma'],
  maxGradNorm: ['max_grad_norm'],
  refCoef: ['init_kl_coef'],
  task: ['query_dataset', 'task_name'],
};

export const trlPpoOld: Dialect = {
  name: 'trl-ppo-old',
  title: 'TRL PPO up to 0.11',
  kind: 'language-model',
  signs: [
    { name: 'ppo/policy/approxkl', points: 4 },
    { name: 'ppo/policy/policykl', points: 3 },
    { name: 'ppo/mean_scores', points: 2 },
    { name: 'objective/kl_coef', points: 2 },
    { name: 'objective/kl', points: 1 },
    { name: 'env/reward_mean', points: 2 },
    { name: 'ppo/val/var_explained', points: 3 },
  ],
  mappings: [
    {
      theirs: 'ppo/policy/approxkl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k2', per: 'token', aggregation: 'minibatches' },
    },
    {
      theirs: 'ppo/policy/policykl',
      id: 'kl/step_k1',
      kl: { pair: 'step', estimator: 'k1', per: 'token', aggregation: 'minibatches' },
      note: 'may be negative',
    },
    {
      theirs: 'objective/kl',
      id: 'kl/ref',
      kl: { pair: 'ref', estimator: 'k1', per: 'sequence', aggregation: 'rollout' },
      note: 'summed over the tokens of a completion; brief values of -1 to 0 are noise',
    },
    { theirs: 'objective/kl_coef', id: 'kl/ref_coef' },
    { theirs: 'ppo/mean_scores', id: 'reward/mean' },
    { theirs: 'env/reward_mean', id: 'reward/mean' },
    { theirs: /ppo\/std_scores|env\/reward_std/, id: 'reward/std' },
    { theirs: 'ppo/policy/clipfrac', id: 'policy/clip_fraction' },
    { theirs: 'ppo/policy/entropy', id: 'policy/entropy', note: 'per token' },
    { theirs: 'ppo/policy/advantages_mean', id: 'adv/mean' },
    { theirs: 'ppo/loss/value', id: 'loss/value' },
    { theirs: 'ppo/loss/policy', id: 'loss/policy' },
    { theirs: 'ppo/loss/total', id: 'loss/total' },
    { theirs: 'ppo/val/var_explained', id: 'value/explained_variance' },
    { theirs: 'ppo/val/mean', id: 'value/mean' },
    { theirs: 'ppo/returns/mean', id: 'return/mean' },
    { theirs: 'ppo/learning_rate', id: 'train/lr' },
    { theirs: 'tokens/responses_len_mean', id: 'completion/length' },
    { theirs: 'tokens/queries_len_mean', id: 'completion/prompt_length' },
  ],
  ignored: [/(?:ppo|objective|tokens|time|env)\/.*/],
  steps: [
    { theirs: 'step', unit: 'updates' },
    { theirs: '_step', unit: 'updates' },
  ],
  eventStep: { unit: 'updates' },
  config,
  wording: {
    names: namesIn(config, { without: ['totalSteps', 'task'] }),
    // Alone the target has no effect.
    write: pairs =>
      call(
        'PPOConfig',
        '',
      )(
        pairs.flatMap(pair =>
          pair[0] === 'target_kl' ? [['early_stopping', 'True'] as const, pair] : [pair],
        ),
      ),
  },
  remarks: 'objective/kl is summed over a completion. target_kl has an effect only with early_stopping=True.',
};
