/** OpenRLHF: PPO, REINFORCE++ and GRPO. */
import type { Dialect, KlOf, WordingSpec } from './dialect.ts';
import { flags } from './wording.ts';

const older: WordingSpec['names'] = {
  learningRate: '--actor_learning_rate',
  epochs: '--max_epochs',
  minibatchSize: '--train_batch_size',
  samplesPerUpdate: '--rollout_batch_size',
  clipRange: '--eps_clip',
  entropyCoef: '--entropy_loss_coef',
  gamma: '--gamma',
  maxGradNorm: '--max_norm',
  refCoef: '--init_kl_coef',
  groupSize: '--n_samples_per_prompt',
  temperature: '--temperature',
  maxCompletionLength: '--generate_max_len',
};

const newer: WordingSpec['names'] = {
  learningRate: '--actor.adam.lr',
  learningRateSchedule: '--actor.lr_scheduler',
  epochs: '--train.max_epochs',
  minibatchSize: '--train.batch_size',
  samplesPerUpdate: '--rollout.batch_size',
  clipRange: '--actor.eps_clip',
  entropyCoef: '--actor.entropy_coef',
  gamma: '--algo.advantage.gamma',
  maxGradNorm: '--actor.max_norm',
  refCoef: '--algo.kl.init_coef',
  groupSize: '--rollout.n_samples_per_prompt',
  temperature: '--rollout.temperature',
  maxCompletionLength: '--rollout.max_new_tokens',
};

export const openrlhf: Dialect = {
  name: 'openrlhf',
  title: 'OpenRLHF',
  kind: 'language-model',
  prefixes: ['train/'],
  signs: [
    { name: 'ppo_kl', points: 3 },
    { name: 'ppo_clip_ratio', points: 3 },
    { name: 'vllm_kl', points: 3 },
    { name: 'actor_lr', points: 2 },
    { name: 'actor_grad_norm', points: 2 },
    { name: 'response_length', points: 1 },
    { name: 'total_length', points: 1 },
    { name: 'policy_loss', points: 1 },
    { name: 'return', points: 1 },
    { name: 'timing/make_experience', points: 2 },
    { name: 'rollout/truncated_rate', points: 2 },
  ],
  configSigns: [
    { name: 'init_kl_coef', points: 1 },
    { name: 'rollout_batch_size', points: 1 },
    { name: 'algo/kl/init_coef', points: 3 },
  ],
  mappings: [
    {
      theirs: 'ppo_kl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k1', per: 'token', aggregation: 'minibatches' },
      note: 'may be negative; 0 where training is strictly on-policy',
    },
    {
      theirs: 'kl',
      id: 'kl/ref',
      kl: (log): KlOf => {
        const set = String(log.setting(['algo/kl/estimator', 'kl_estimator']) ?? 'k1');
        const estimator = set === 'k1' || set === 'k2' || set === 'k3' ? set : 'unknown';
        return { pair: 'ref', estimator, per: 'token', aggregation: 'rollout' };
      },
      note: 'k1 unless kl_estimator says otherwise',
    },
    { theirs: 'kl_coef', id: 'kl/ref_coef' },
    {
      theirs: 'vllm_kl',
      id: 'kl/sampler',
      kl: { pair: 'sampler', estimator: 'k1', per: 'token', aggregation: 'minibatches' },
    },
    { theirs: 'ppo_clip_ratio', id: 'policy/clip_fraction' },
    { theirs: 'entropy_loss', id: 'policy/entropy', note: '+H per token, whatever its name says' },
    { theirs: /policy_loss|act_loss/, id: 'loss/policy' },
    { theirs: 'critic_loss', id: 'loss/value' },
    { theirs: 'values', id: 'value/mean' },
    { theirs: /rollout\/reward_mean|reward/, id: 'reward/mean' },
    { theirs: 'rollout/reward_std', id: 'reward/std' },
    { theirs: 'group_reward_std', id: 'reward/group_std' },
    { theirs: 'return', id: 'reward/penalised', note: 'the KL penalty is in it' },
    { theirs: /actor_grad_norm|grad_norm/, id: 'grad/norm' },
    { theirs: 'critic_grad_norm', id: 'grad/norm_critic' },
    { theirs: 'actor_lr', id: 'train/lr' },
    { theirs: 'critic_lr', id: 'train/lr_critic' },
    { theirs: /rollout\/response_length_mean|response_length/, id: 'completion/length' },
    { theirs: /rollout\/truncated_rate|truncated/, id: 'completion/truncated' },
    { theirs: /eval\/.*pass1/, id: 'eval/return' },
  ],
  ignored: [
    /(?:timing|eval|rollout)\/.*/,
    /total_length|logprobs_diff|score|dynamic_filtering_pass_rate|ptx_loss|aux_loss|kl_loss|num_actions|reward_std|epoch/,
  ],
  steps: [
    { theirs: 'global_step', unit: 'updates' },
    { theirs: 'step', unit: 'updates' },
  ],
  eventStep: { unit: 'updates', better: [{ theirs: 'global_step', unit: 'updates' }] },
  config: {
    learningRate: ['actor/adam/lr', 'actor_learning_rate'],
    epochs: ['train/max_epochs', 'max_epochs'],
    minibatchSize: ['train/batch_size', 'train_batch_size'],
    samplesPerUpdate: ['rollout/batch_size', 'rollout_batch_size'],
    clipRange: ['actor/eps_clip', 'eps_clip'],
    entropyCoef: ['actor/entropy_coef', 'entropy_loss_coef'],
    gamma: ['algo/advantage/gamma', 'gamma'],
    maxGradNorm: ['actor/max_norm', 'max_norm'],
    refCoef: ['algo/kl/init_coef', 'init_kl_coef'],
    groupSize: ['rollout/n_samples_per_prompt', 'n_samples_per_prompt'],
    temperature: ['rollout/temperature', 'temperature'],
    maxCompletionLength: ['rollout/max_new_tokens', 'generate_max_len'],
    task: ['data/prompt_dataset', 'prompt_data'],
  },
  wording: log => ({ names: isOlder(log.raw.config.keys()) ? older : newer, write: flags }),
  remarks:
    'ppo_kl is k1: negative values are the estimator. vllm_kl must be near 0. Flags got dots in version 0.10.',
};

/** Settings without dots are of the older command line. */
function isOlder(names: Iterable<string>): boolean {
  for (const name of names) if (/(?:^|\/)(?:init_kl_coef|actor_learning_rate)$/.test(name)) return true;
  return false;
}
