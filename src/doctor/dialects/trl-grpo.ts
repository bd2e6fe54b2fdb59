/** TRL's GRPO trainer, 0.14 to 1.x, also as Unsloth patches it. Names drifted: every spelling is here. */
import type { Dialect, KlOf, Refine } from './dialect.ts';
import { call } from './wording.ts';

const tokenKl: KlOf = { pair: 'ref', estimator: 'k3', per: 'token', aggregation: 'minibatches' };

/**
 * `reward_std` was the mean over groups and became that of the whole batch, under the same name. Where the log counts
 * groups without spread itself, the weaker of the two meanings is enough.
 */
const whichStd: Refine = (drafts, log) => ({
  drafts: drafts.map(draft =>
    draft.id === 'reward/group_std' && log.series.has('frac_reward_zero_std')
      ? { ...draft, id: 'reward/std' }
      : draft,
  ),
});

export const trlGrpo: Dialect = {
  name: 'trl-grpo',
  title: 'TRL GRPO (also Unsloth)',
  kind: 'language-model',
  prefixes: ['train/'],
  signs: [
    { name: 'reward_std', points: 1 },
    { name: 'frac_reward_zero_std', points: 3 },
    { name: /rewards\/[^/]+(?:\/(?:mean|std))?/, points: 1 },
    { name: 'reward', points: 0.5 },
    { name: 'completions/mean_length', points: 3 },
    { name: 'completions/clipped_ratio', points: 2 },
    { name: 'completion_length', points: 2 },
    { name: /clip_ratio\/(?:region_mean|low_mean|high_mean)/, points: 3 },
    { name: /sampling\/.*/, points: 2 },
  ],
  configSigns: [
    { name: 'num_generations', points: 2 },
    { name: 'max_completion_length', points: 2 },
  ],
  mappings: [
    { theirs: 'kl', id: 'kl/ref', kl: tokenKl, note: 'only with beta above 0' },
    { theirs: 'reward', id: 'reward/mean' },
    {
      theirs: 'reward_std',
      id: 'reward/group_std',
      note: 'within groups in older versions; reward/std where frac_reward_zero_std is logged too',
    },
    { theirs: 'frac_reward_zero_std', id: 'reward/zero_std_groups' },
    { theirs: /rewards\/([^/]+)(?:\/mean)?/, id: 'reward/part/$1' },
    { theirs: /completions\/mean_length|completion_length|completions\/mean_len/, id: 'completion/length' },
    { theirs: 'completions/min_length', id: 'completion/length_min' },
    { theirs: 'completions/max_length', id: 'completion/length_max' },
    { theirs: /completions\/clipped_ratio|clipped_ratio/, id: 'completion/truncated' },
    { theirs: 'clip_ratio/region_mean', id: 'policy/clip_fraction' },
    { theirs: 'clip_ratio', id: 'policy/clip_fraction' },
    { theirs: 'clip_ratio/low_mean', id: 'policy/clip_fraction_low' },
    { theirs: 'clip_ratio/high_mean', id: 'policy/clip_fraction_high' },
    { theirs: 'entropy', id: 'policy/entropy', note: 'per token' },
    { theirs: 'policy_loss', id: 'loss/policy' },
    { theirs: 'loss', id: 'loss/total', note: '0.0 with a gradient above 0 is normal' },
    { theirs: 'grad_norm', id: 'grad/norm' },
    { theirs: 'learning_rate', id: 'train/lr' },
    { theirs: 'entropy_coef', id: 'train/entropy_coef' },
    { theirs: 'sampling/sampling_logp_difference/mean', id: 'sampler/logp_diff' },
    { theirs: 'sampling/sampling_logp_difference/max', id: 'sampler/logp_diff_max' },
    { theirs: 'sampling/importance_sampling_ratio/mean', id: 'sampler/ratio_mean' },
    { theirs: 'sampling/importance_sampling_ratio/min', id: 'sampler/ratio_min' },
    { theirs: 'sampling/importance_sampling_ratio/max', id: 'sampler/ratio_max' },
    { theirs: /eval[_/]reward/, id: 'eval/return' },
  ],
  ignored: [
    /rewards\/.*\/std/,
    /completions\/.*/,
    /clip_ratio\/.*/,
    /(?:eval|profiling|tools|vespo|sampling)[_/].*/,
    /epoch|num_tokens|step_time|aux_loss|cispo_clip_ratio|num_input_tokens_seen|total_flos/,
    /train_(?:loss|runtime|samples_per_second|steps_per_second)/,
  ],
  steps: [
    { theirs: 'step', unit: 'updates' },
    { theirs: 'global_step', unit: 'updates' },
  ],
  eventStep: { unit: 'updates', better: [{ theirs: 'global_step', unit: 'updates' }] },
  config: {
    learningRate: ['learning_rate'],
    learningRateSchedule: ['lr_scheduler_type'],
    epochs: ['num_iterations'],
    totalSteps: ['max_steps'],
    clipRange: ['epsilon'],
    clipRangeHigh: ['epsilon_high'],
    entropyCoef: ['entropy_coef'],
    maxGradNorm: ['max_grad_norm'],
    refCoef: ['beta'],
    groupSize: ['num_generations'],
    temperature: ['temperature'],
    maxCompletionLength: ['max_completion_length'],
    task: ['dataset_name', 'dataset'],
  },
  wording: {
    names: {
      learningRate: 'learning_rate',
      learningRateSchedule: 'lr_scheduler_type',
      epochs: 'num_iterations',
      totalSteps: 'max_steps',
      clipRange: 'epsilon',
      clipRangeHigh: 'epsilon_high',
      entropyCoef: 'entropy_coef',
      maxGradNorm: 'max_grad_norm',
      refCoef: 'beta',
      groupSize: 'num_generations',
      temperature: 'temperature',
      maxCompletionLength: 'max_completion_length',
    },
    write: call('GRPOConfig', ''),
  },
  refine: whichStd,
  remarks:
    'kl is to the reference, and 0 in every row means that there is no KL term (beta is 0 by default from 0.19, .04 before). clip_ratio is 0 with one iteration a batch. No KL of the update is logged.',
};
