/** verl: PPO, GRPO and their kin, from its file, its console or W&B. */
import { rangeOf } from './derive.ts';
import type { Dialect, KlOf, Log, Refine } from './dialect.ts';
import { assignments } from './wording.ts';

const estimators: Readonly<Record<string, KlOf['estimator']>> = {
  kl: 'k1',
  k1: 'k1',
  mse: 'k2',
  k2: 'k2',
  low_var_kl: 'k3',
  k3: 'k3',
  full: 'exact',
};

/** The estimator that a setting names; verl's default where it is silent. */
const estimatorOf = (log: Log, names: readonly string[], otherwise: string): KlOf['estimator'] => {
  const set = log.setting(names) ?? otherwise;
  // `k3+` is k3 in the value and another in the gradient.
  return estimators[String(set).replace(/\+$/, '')] ?? 'unknown';
};

const actor = 'actor_rollout_ref.actor';

/** The console of older versions has three decimals: a learning rate of 1e-6 reads 0.000. */
const withoutRoundedRate: Refine = (drafts, log) => {
  if (log.raw.format !== 'verl-console' && log.raw.format !== 'console') return {};
  const isRounded = (id: string, range: readonly [number, number] | undefined): boolean =>
    (id === 'train/lr' || id === 'train/lr_critic') && range?.[0] === 0 && range[1] === 0;
  const kept = drafts.filter(({ id, series }) => !isRounded(id, rangeOf(series)));
  if (kept.length === drafts.length) return {};
  return { drafts: kept, notes: ['the console shows a learning rate of 0.000: too few digits, left out'] };
};

export const verl: Dialect = {
  name: 'verl',
  title: 'verl',
  kind: 'language-model',
  prefixes: ['data/'],
  signs: [
    { name: 'actor/ppo_kl', points: 4 },
    { name: 'actor/pg_clipfrac', points: 3 },
    { name: 'actor/pg_loss', points: 2 },
    { name: 'critic/score/mean', points: 3 },
    { name: 'critic/rewards/mean', points: 2 },
    { name: 'response_length/mean', points: 1 },
    { name: /timing_s\/.*/, points: 1 },
    { name: /rollout_corr\/.*/, points: 1 },
    { name: 'training/global_step', points: 1 },
  ],
  configSigns: [{ name: /(?:.*\/)?actor_rollout_ref\/.*/, points: 3 }],
  mappings: [
    {
      theirs: 'actor/ppo_kl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k1', per: 'token', aggregation: 'minibatches' },
      note: 'may be negative; 0 where training is strictly on-policy',
    },
    {
      theirs: 'actor/kl_loss',
      id: 'kl/ref',
      kl: log => ({
        pair: 'ref',
        estimator: estimatorOf(log, ['actor/kl_loss_type', 'kl_loss_type'], 'low_var_kl'),
        per: 'token',
        aggregation: 'minibatches',
      }),
      note: 'k3 unless kl_loss_type says otherwise',
    },
    {
      theirs: /actor\/reward_kl_penalty|critic\/kl/,
      id: 'kl/ref',
      kl: log => ({
        pair: 'ref',
        estimator: estimatorOf(log, ['algorithm/kl_penalty', 'kl_penalty'], 'kl'),
        per: 'token',
        aggregation: 'rollout',
      }),
      note: 'the KL in the reward; k1 unless kl_penalty says otherwise',
    },
    { theirs: /actor\/kl_coef|actor\/reward_kl_penalty_coeff|critic\/kl_coeff/, id: 'kl/ref_coef' },
    {
      theirs: /(?:rollout_corr|mismatch)\/(?:mismatch_)?k3_kl/,
      id: 'kl/sampler',
      kl: { pair: 'sampler', estimator: 'k3', per: 'token', aggregation: 'rollout' },
    },
    {
      theirs: /(?:rollout_corr|mismatch)\/(?:mismatch_)?kl/,
      id: 'kl/sampler',
      kl: { pair: 'sampler', estimator: 'k1', per: 'token', aggregation: 'rollout' },
    },
    { theirs: 'training/rollout_probs_diff_mean', id: 'sampler/prob_diff' },
    { theirs: 'training/rollout_probs_diff_max', id: 'sampler/prob_diff_max' },
    { theirs: /(?:rollout_corr|mismatch)\/rollout_is_mean/, id: 'sampler/ratio_mean' },
    { theirs: /(?:rollout_corr|mismatch)\/rollout_is_min/, id: 'sampler/ratio_min' },
    { theirs: /(?:rollout_corr|mismatch)\/rollout_is_max/, id: 'sampler/ratio_max' },
    { theirs: 'actor/pg_clipfrac', id: 'policy/clip_fraction' },
    {
      theirs: /actor\/entropy(?:_loss)?/,
      id: 'policy/entropy',
      note: '+H per token, whatever its name says',
    },
    { theirs: 'actor/pg_loss', id: 'loss/policy' },
    { theirs: 'critic/vf_loss', id: 'loss/value' },
    { theirs: 'critic/vf_explained_var', id: 'value/explained_variance' },
    { theirs: 'critic/values/mean', id: 'value/mean' },
    { theirs: 'critic/score/mean', id: 'reward/mean' },
    { theirs: 'critic/rewards/mean', id: 'reward/penalised' },
    { theirs: 'critic/advantages/mean', id: 'adv/mean' },
    { theirs: 'critic/advantages/max', id: 'adv/max' },
    { theirs: 'critic/advantages/min', id: 'adv/min' },
    { theirs: 'critic/returns/mean', id: 'return/mean' },
    { theirs: 'actor/grad_norm', id: 'grad/norm' },
    { theirs: 'critic/grad_norm', id: 'grad/norm_critic' },
    { theirs: 'actor/lr', id: 'train/lr' },
    { theirs: 'critic/lr', id: 'train/lr_critic' },
    { theirs: 'response_length/mean', id: 'completion/length' },
    { theirs: 'response_length/min', id: 'completion/length_min' },
    { theirs: 'response_length/max', id: 'completion/length_max' },
    { theirs: 'response_length/clip_ratio', id: 'completion/truncated' },
    { theirs: 'prompt_length/mean', id: 'completion/prompt_length' },
    { theirs: /val(?:-core)?\/.*(?:mean@\d+|test_score.*)/, id: 'eval/return' },
  ],
  ignored: [
    /(?:actor|critic|training|rollout_corr|mismatch|response_length|response_length_non_aborted|response|prompt_length|perf|timing_s|timing_per_token_ms|global_seqlen|num_turns|tool_call_counts|val-core|val-aux|val|mfu)\/.*/,
  ],
  steps: [
    { theirs: 'step', unit: 'updates' },
    { theirs: 'training/global_step', unit: 'updates' },
  ],
  eventStep: { unit: 'updates' },
  config: {
    learningRate: ['actor_rollout_ref/actor/optim/lr', 'actor/optim/lr'],
    epochs: ['actor/ppo_epochs', 'ppo_epochs'],
    minibatchSize: ['actor/ppo_mini_batch_size', 'ppo_mini_batch_size'],
    samplesPerUpdate: ['data/train_batch_size'],
    clipRange: ['actor/clip_ratio', 'clip_ratio'],
    clipRangeHigh: ['actor/clip_ratio_high', 'clip_ratio_high'],
    entropyCoef: ['actor/entropy_coeff', 'entropy_coeff'],
    gamma: ['algorithm/gamma'],
    maxGradNorm: ['actor/grad_clip'],
    refCoef: ['actor/kl_loss_coef', 'algorithm/kl_ctrl/kl_coef'],
    groupSize: ['rollout/n'],
    temperature: ['rollout/temperature'],
    maxCompletionLength: ['data/max_response_length'],
    task: ['data/train_files', 'trainer/experiment_name'],
  },
  wording: log => ({
    names: {
      learningRate: `${actor}.optim.lr`,
      epochs: `${actor}.ppo_epochs`,
      minibatchSize: `${actor}.ppo_mini_batch_size`,
      samplesPerUpdate: 'data.train_batch_size',
      clipRange: `${actor}.clip_ratio`,
      clipRangeHigh: `${actor}.clip_ratio_high`,
      entropyCoef: `${actor}.entropy_coeff`,
      gamma: 'algorithm.gamma',
      maxGradNorm: `${actor}.grad_clip`,
      refCoef: inReward(log) ? 'algorithm.kl_ctrl.kl_coef' : `${actor}.kl_loss_coef`,
      groupSize: 'actor_rollout_ref.rollout.n',
      temperature: 'actor_rollout_ref.rollout.temperature',
      maxCompletionLength: 'data.max_response_length',
    },
    write: pairs =>
      assignments(
        pairs.flatMap(pair =>
          pair[0] === `${actor}.kl_loss_coef` && !log.series.has('actor/kl_loss')
            ? [[`${actor}.use_kl_loss`, 'True'] as const, pair]
            : [pair],
        ),
      ),
  }),
  refine: withoutRoundedRate,
  remarks:
    'ppo_kl is k1: negative values are the estimator. critic/score is what the task gave, critic/rewards has the KL penalty in it. Older versions print three decimals, so that a learning rate reads 0.000.',
};

const inReward = (log: Log): boolean =>
  !log.series.has('actor/kl_loss') &&
  (log.series.has('actor/reward_kl_penalty') || log.series.has('critic/kl'));
