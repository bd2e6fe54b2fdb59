/** For each trainer: names as it really logs them, and where each must land. */
import { describe, expect, it } from 'vitest';
import type { KlMeaning } from '../../../src/doctor/canonical.ts';
import { dialects, toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findMetric } from '../../../src/metrics/registry.ts';
import { named } from './support/raw.ts';

type Kl = readonly [
  KlMeaning['pair'],
  KlMeaning['estimator'],
  KlMeaning['per'],
  KlMeaning['aggregation'],
  number?,
];

interface Case {
  readonly title: string;
  readonly trainer: string;
  readonly names: readonly string[];
  readonly lands: Readonly<Record<string, string>>;
  readonly kls?: Readonly<Record<string, Kl>>;
  readonly kind?: 'language-model';
}

const cases: readonly Case[] = [
  {
    title: 'SB3 PPO, continuous',
    trainer: 'stable-baselines3',
    names:
      `time/iterations time/total_timesteps time/fps time/time_elapsed rollout/ep_rew_mean rollout/ep_len_mean
      train/approx_kl train/clip_fraction train/clip_range train/entropy_loss train/explained_variance train/learning_rate
      train/loss train/n_updates train/policy_gradient_loss train/std train/value_loss eval/mean_reward eval/mean_ep_length`.split(
        /\s+/,
      ),
    lands: {
      'kl/step': 'train/approx_kl',
      'policy/entropy': 'train/entropy_loss',
      'policy/std': 'train/std',
      'loss/value': 'train/value_loss',
      'loss/policy': 'train/policy_gradient_loss',
      'loss/total': 'train/loss',
      'value/explained_variance': 'train/explained_variance',
      'episode/return': 'rollout/ep_rew_mean',
      'episode/length': 'rollout/ep_len_mean',
      'eval/return': 'eval/mean_reward',
      'train/lr': 'train/learning_rate',
      'train/clip_range': 'train/clip_range',
      'policy/clip_fraction': 'train/clip_fraction',
      'time/steps_per_second': 'time/fps',
    },
    kls: { 'kl/step': ['step', 'k3', 'action', 'last-epoch', 1] },
  },
  {
    title: 'sb3-contrib TRPO',
    trainer: 'sb3-contrib',
    names: `time/iterations time/total_timesteps time/fps rollout/ep_rew_mean train/explained_variance
      train/is_line_search_success train/kl_divergence_loss train/learning_rate train/n_updates train/policy_objective
      train/std train/value_loss`.split(/\s+/),
    lands: { 'kl/step': 'train/kl_divergence_loss', 'loss/policy': 'train/policy_objective' },
    kls: { 'kl/step': ['step', 'exact', 'action', 'rollout', 1] },
  },
  {
    title: 'CleanRL',
    trainer: 'cleanrl',
    names: `charts/learning_rate charts/SPS charts/episodic_return charts/episodic_length losses/value_loss
      losses/policy_loss losses/entropy losses/old_approx_kl losses/approx_kl losses/clipfrac losses/explained_variance`.split(
      /\s+/,
    ),
    lands: {
      'kl/step': 'losses/approx_kl',
      'kl/step_k1': 'losses/old_approx_kl',
      'policy/entropy': 'losses/entropy',
      'episode/return': 'charts/episodic_return',
      'episode/length': 'charts/episodic_length',
      'train/lr': 'charts/learning_rate',
      'time/steps_per_second': 'charts/SPS',
      'value/explained_variance': 'losses/explained_variance',
    },
    kls: {
      'kl/step': ['step', 'k3', 'action', 'last-minibatch'],
      'kl/step_k1': ['step', 'k1', 'action', 'last-minibatch'],
    },
  },
  {
    title: 'PufferLib 3',
    trainer: 'pufferlib',
    names: `SPS agent_steps uptime epoch learning_rate environment/episode_return environment/episode_length
      environment/score losses/policy_loss losses/value_loss losses/entropy losses/old_approx_kl losses/approx_kl
      losses/clipfrac losses/importance losses/explained_variance performance/eval performance/train`.split(
      /\s+/,
    ),
    lands: {
      'kl/step': 'losses/approx_kl',
      'kl/step_k1': 'losses/old_approx_kl',
      'episode/return': 'environment/episode_return',
      'policy/ratio_mean': 'losses/importance',
      'train/lr': 'learning_rate',
    },
    kls: { 'kl/step': ['step', 'k3', 'action', 'minibatches'] },
  },
  {
    title: 'PufferLib 1',
    trainer: 'pufferlib',
    names: `0verview/SPS 0verview/agent_steps 0verview/epoch 0verview/learning_rate environment/episode_return
      losses/approx_kl losses/old_approx_kl losses/entropy losses/value_loss performance/env_time`.split(
      /\s+/,
    ),
    lands: { 'train/lr': '0verview/learning_rate', 'time/steps_per_second': '0verview/SPS' },
  },
  {
    title: 'PufferLib 4',
    trainer: 'pufferlib',
    names:
      `SPS agent_steps uptime epoch env/score env/perf env/episode_return env/episode_length loss/policy loss/value
      loss/entropy loss/total loss/old_kl loss/kl loss/clipfrac perf/train util/gpu_percent`.split(/\s+/),
    lands: {
      'kl/step': 'loss/kl',
      'kl/step_k1': 'loss/old_kl',
      'loss/value': 'loss/value',
      'episode/return': 'env/episode_return',
      'policy/clip_fraction': 'loss/clipfrac',
    },
    kls: { 'kl/step': ['step', 'k3', 'action', 'minibatches'] },
  },
  {
    title: 'RLlib, old stack',
    trainer: 'rllib',
    names:
      `episode_reward_mean episode_reward_min episode_len_mean timesteps_total training_iteration time_total_s
      info/learner/default_policy/learner_stats/kl info/learner/default_policy/learner_stats/cur_kl_coeff
      info/learner/default_policy/learner_stats/cur_lr info/learner/default_policy/learner_stats/entropy
      info/learner/default_policy/learner_stats/vf_loss info/learner/default_policy/learner_stats/vf_explained_var
      info/learner/default_policy/learner_stats/policy_loss info/learner/default_policy/learner_stats/entropy_coeff
      perf/cpu_util_percent timers/learn_time_ms`.split(/\s+/),
    lands: {
      'kl/step': 'info/learner/default_policy/learner_stats/kl',
      'kl/coef': 'info/learner/default_policy/learner_stats/cur_kl_coeff',
      'train/lr': 'info/learner/default_policy/learner_stats/cur_lr',
      'policy/entropy': 'info/learner/default_policy/learner_stats/entropy',
      'value/explained_variance': 'info/learner/default_policy/learner_stats/vf_explained_var',
      'episode/return': 'episode_reward_mean',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'minibatches'] },
  },
  {
    title: 'RLlib of 2021, another policy, TensorBoard of Tune',
    trainer: 'rllib',
    names: `ray/tune/episode_reward_mean ray/tune/timesteps_total ray/tune/info/learner/agent_0/kl
      ray/tune/info/learner/agent_0/cur_kl_coeff ray/tune/info/learner/agent_0/entropy`.split(/\s+/),
    lands: {
      'kl/step': 'ray/tune/info/learner/agent_0/kl',
      'episode/return': 'ray/tune/episode_reward_mean',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'minibatches'] },
  },
  {
    title: 'RLlib, new stack',
    trainer: 'rllib',
    names: `num_env_steps_sampled_lifetime env_runners/episode_return_mean env_runners/episode_len_mean
      learners/p0/mean_kl_loss learners/p0/curr_kl_coeff learners/p0/entropy learners/p0/vf_loss
      learners/p0/vf_loss_unclipped learners/p0/vf_explained_var learners/p0/policy_loss
      learners/p0/default_optimizer_learning_rate learners/p0/gradients_default_optimizer_global_norm
      learners/__all_modules__/num_env_steps_trained`.split(/\s+/),
    lands: {
      'kl/step': 'learners/p0/mean_kl_loss',
      'kl/coef': 'learners/p0/curr_kl_coeff',
      'loss/value': 'learners/p0/vf_loss_unclipped',
      'train/lr': 'learners/p0/default_optimizer_learning_rate',
      'grad/norm': 'learners/p0/gradients_default_optimizer_global_norm',
      'episode/return': 'env_runners/episode_return_mean',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'last-minibatch'] },
  },
  {
    title: 'rl_games, continuous',
    trainer: 'rl_games',
    names:
      `rewards/step rewards/iter rewards/time episode_lengths/step episode_lengths/iter losses/a_loss losses/c_loss
      losses/bounds_loss losses/entropy info/last_lr info/lr_mul info/e_clip info/kl info/epochs
      performance/step_inference_rl_update_fps`.split(/\s+/),
    lands: {
      'kl/step': 'info/kl',
      'episode/return': 'rewards/step',
      'episode/length': 'episode_lengths/step',
      'loss/value': 'losses/c_loss',
      'train/lr': 'info/last_lr',
      'train/clip_range': 'info/e_clip',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'minibatches'] },
  },
  {
    title: 'rl_games, discrete',
    trainer: 'rl_games',
    names: 'rewards/step losses/a_loss losses/c_loss losses/entropy info/last_lr info/e_clip info/kl'.split(
      ' ',
    ),
    lands: { 'kl/step': 'info/kl' },
    kls: { 'kl/step': ['step', 'k2', 'action', 'minibatches'] },
  },
  {
    title: 'RSL-RL',
    trainer: 'rsl_rl',
    names: [
      ...`Loss/value Loss/surrogate Loss/entropy Loss/learning_rate Policy/mean_std Perf/total_fps Perf/collection_time
      Train/mean_reward Train/mean_reward/time Train/mean_episode_length Episode_Reward/track Episode_Termination/fall`.split(
        /\s+/,
      ),
    ],
    lands: {
      'loss/value': 'Loss/value',
      'policy/std': 'Policy/mean_std',
      'episode/return': 'Train/mean_reward',
      'train/lr': 'Loss/learning_rate',
      'reward/part/track': 'Episode_Reward/track',
    },
  },
  {
    title: 'legged_gym',
    trainer: 'rsl_rl',
    names: [
      ...`Loss/value_function Loss/surrogate Loss/learning_rate Policy/mean_noise_std Perf/total_fps Train/mean_reward
      Episode/rew_torques Episode/max_command_x`.split(/\s+/),
      'Perf/collection time',
    ],
    lands: {
      'loss/value': 'Loss/value_function',
      'policy/std': 'Policy/mean_noise_std',
      'time/collect_s': 'Perf/collection time',
      'reward/part/torques': 'Episode/rew_torques',
    },
  },
  {
    title: 'skrl',
    trainer: 'skrl',
    names: [
      'Loss / Policy loss',
      'Loss / Value loss',
      'Policy / Standard deviation',
      'Learning / Learning rate',
      'Reward / Total reward (mean)',
      'Reward / Total reward (max)',
      'Reward / Instantaneous reward (mean)',
      'Episode / Total timesteps (mean)',
    ],
    lands: {
      'loss/policy': 'Loss / Policy loss',
      'episode/return': 'Reward / Total reward (mean)',
      'reward/mean': 'Reward / Instantaneous reward (mean)',
      'episode/length': 'Episode / Total timesteps (mean)',
      'train/lr': 'Learning / Learning rate',
    },
  },
  {
    title: 'Tianshou 0.5',
    trainer: 'tianshou',
    names: `train/episode train/reward train/length test/env_step test/reward test/reward_std update/loss
      update/loss/clip update/loss/vf update/loss/ent save/epoch save/env_step save/gradient_step`.split(
      /\s+/,
    ),
    lands: {
      'episode/return': 'train/reward',
      'eval/return': 'test/reward',
      'policy/entropy': 'update/loss/ent',
      'loss/value': 'update/loss/vf',
      'loss/policy': 'update/loss/clip',
      'loss/total': 'update/loss',
    },
  },
  {
    title: 'Tianshou 2',
    trainer: 'tianshou',
    names:
      `training/returns_stat/mean training/returns_stat/max training/lens_stat/mean test/returns_stat/mean
      update/loss/mean update/actor_loss/mean update/vf_loss/mean update/ent_loss/mean update/update_step`.split(
        /\s+/,
      ),
    lands: {
      'episode/return': 'training/returns_stat/mean',
      'eval/return': 'test/returns_stat/mean',
      'policy/entropy': 'update/ent_loss/mean',
      'loss/policy': 'update/actor_loss/mean',
      'loss/total': 'update/loss/mean',
    },
  },
  {
    title: 'Baselines ppo1',
    trainer: 'openai-baselines',
    names:
      `loss_pol_surr loss_pol_entpen loss_vf_loss loss_kl loss_ent ev_tdlam_before EpLenMean EpRewMean EpThisIter
      EpisodesSoFar TimestepsSoFar TimeElapsed`.split(/\s+/),
    lands: {
      'kl/step': 'loss_kl',
      'policy/entropy': 'loss_ent',
      'value/explained_variance': 'ev_tdlam_before',
      'episode/return': 'EpRewMean',
      'loss/value': 'loss_vf_loss',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'rollout'] },
  },
  {
    title: 'modular_rl TRPO',
    trainer: 'openai-baselines',
    names: 'EpLenMean EpRewMean EVBefore EVAfter KL TimeElapsed'.split(' '),
    lands: {
      'kl/step': 'KL',
      'value/explained_variance': 'EVBefore',
      'episode/return': 'EpRewMean',
    },
    kls: { 'kl/step': ['step', 'exact', 'action', 'rollout'] },
  },
  {
    title: 'Baselines ppo2',
    trainer: 'openai-baselines',
    names:
      `eplenmean eprewmean fps loss/approxkl loss/clipfrac loss/policy_entropy loss/policy_loss loss/value_loss
      misc/explained_variance misc/nupdates misc/serial_timesteps misc/time_elapsed misc/total_timesteps`.split(
        /\s+/,
      ),
    lands: {
      'kl/step': 'loss/approxkl',
      'policy/clip_fraction': 'loss/clipfrac',
      'value/explained_variance': 'misc/explained_variance',
      'episode/return': 'eprewmean',
    },
    kls: { 'kl/step': ['step', 'k2', 'action', 'minibatches'] },
  },
  {
    title: 'TRL GRPO 1.x',
    trainer: 'trl-grpo',
    kind: 'language-model',
    names:
      `step epoch loss grad_norm learning_rate num_tokens reward reward_std frac_reward_zero_std kl entropy
      rewards/accuracy/mean rewards/accuracy/std completions/mean_length completions/min_length completions/max_length
      completions/clipped_ratio completions/mean_terminated_length clip_ratio/low_mean clip_ratio/low_min
      clip_ratio/high_mean clip_ratio/high_max clip_ratio/region_mean sampling/sampling_logp_difference/mean
      sampling/sampling_logp_difference/max sampling/importance_sampling_ratio/min
      sampling/importance_sampling_ratio/mean sampling/importance_sampling_ratio/max`.split(/\s+/),
    lands: {
      'kl/ref': 'kl',
      'reward/mean': 'reward',
      'reward/std': 'reward_std',
      'reward/zero_std_groups': 'frac_reward_zero_std',
      'reward/part/accuracy': 'rewards/accuracy/mean',
      'completion/length': 'completions/mean_length',
      'completion/truncated': 'completions/clipped_ratio',
      'policy/clip_fraction': 'clip_ratio/region_mean',
      'policy/clip_fraction_low': 'clip_ratio/low_mean',
      'policy/clip_fraction_high': 'clip_ratio/high_mean',
      'sampler/logp_diff': 'sampling/sampling_logp_difference/mean',
      'sampler/ratio_max': 'sampling/importance_sampling_ratio/max',
      'policy/entropy': 'entropy',
    },
    kls: { 'kl/ref': ['ref', 'k3', 'token', 'minibatches'] },
  },
  {
    title: 'TRL GRPO of early 2025, Unsloth',
    trainer: 'trl-grpo',
    kind: 'language-model',
    names: `step completion_length epoch grad_norm kl learning_rate loss reward reward_std
      rewards/correctness_reward_func rewards/int_reward_func`.split(/\s+/),
    lands: {
      'kl/ref': 'kl',
      'reward/group_std': 'reward_std',
      'completion/length': 'completion_length',
      'reward/part/int_reward_func': 'rewards/int_reward_func',
    },
  },
  {
    title: 'TRL GRPO in W&B',
    trainer: 'trl-grpo',
    kind: 'language-model',
    names: `train/global_step train/epoch train/kl train/reward train/reward_std train/loss train/grad_norm
      train/completions/mean_length train/rewards/format/mean train/learning_rate`.split(/\s+/),
    lands: {
      'kl/ref': 'train/kl',
      'train/lr': 'train/learning_rate',
      'reward/part/format': 'train/rewards/format/mean',
    },
  },
  {
    title: 'TRL PPO',
    trainer: 'trl-ppo',
    kind: 'language-model',
    names:
      `eps objective/kl objective/entropy objective/non_score_reward objective/rlhf_reward objective/scores
      policy/approxkl_avg policy/clipfrac_avg loss/policy_avg loss/value_avg val/clipfrac_avg policy/entropy_avg val/ratio
      val/ratio_var val/num_eos_tokens lr episode epoch step`.split(/\s+/),
    lands: {
      'kl/step': 'policy/approxkl_avg',
      'kl/ref': 'objective/kl',
      'reward/mean': 'objective/scores',
      'reward/penalised': 'objective/rlhf_reward',
      'policy/entropy': 'policy/entropy_avg',
      'train/lr': 'lr',
    },
    kls: {
      'kl/step': ['step', 'k2', 'token', 'minibatches'],
      'kl/ref': ['ref', 'k1', 'sequence', 'rollout'],
    },
  },
  {
    title: 'TRL PPO up to 0.11',
    trainer: 'trl-ppo-old',
    kind: 'language-model',
    names:
      `objective/kl objective/kl_coef objective/entropy ppo/mean_scores ppo/mean_non_score_reward ppo/policy/approxkl
      ppo/policy/policykl ppo/policy/clipfrac ppo/policy/entropy ppo/loss/value ppo/loss/policy ppo/loss/total
      ppo/val/var_explained ppo/learning_rate tokens/responses_len_mean env/reward_mean env/reward_std time/ppo/total`.split(
        /\s+/,
      ),
    lands: {
      'kl/step': 'ppo/policy/approxkl',
      'kl/step_k1': 'ppo/policy/policykl',
      'kl/ref': 'objective/kl',
      'kl/ref_coef': 'objective/kl_coef',
      'value/explained_variance': 'ppo/val/var_explained',
      'completion/length': 'tokens/responses_len_mean',
    },
    kls: {
      'kl/ref': ['ref', 'k1', 'sequence', 'rollout'],
      'kl/step_k1': ['step', 'k1', 'token', 'minibatches'],
    },
  },
  {
    title: 'verl',
    trainer: 'verl',
    kind: 'language-model',
    names:
      `step actor/ppo_kl actor/pg_clipfrac actor/pg_clipfrac_lower actor/pg_loss actor/entropy actor/kl_loss
      actor/kl_coef actor/grad_norm actor/lr critic/score/mean critic/score/max critic/rewards/mean critic/advantages/mean
      critic/advantages/max critic/advantages/min critic/returns/mean response_length/mean response_length/clip_ratio
      prompt_length/mean timing_s/gen perf/throughput training/global_step training/rollout_probs_diff_mean
      rollout_corr/kl rollout_corr/k3_kl`.split(/\s+/),
    lands: {
      'kl/step': 'actor/ppo_kl',
      'kl/ref': 'actor/kl_loss',
      'kl/ref_coef': 'actor/kl_coef',
      'kl/sampler': 'rollout_corr/k3_kl',
      'sampler/prob_diff': 'training/rollout_probs_diff_mean',
      'reward/mean': 'critic/score/mean',
      'reward/penalised': 'critic/rewards/mean',
      'adv/max': 'critic/advantages/max',
      'completion/truncated': 'response_length/clip_ratio',
      'policy/entropy': 'actor/entropy',
      'grad/norm': 'actor/grad_norm',
    },
    kls: {
      'kl/step': ['step', 'k1', 'token', 'minibatches'],
      'kl/ref': ['ref', 'k3', 'token', 'minibatches'],
      'kl/sampler': ['sampler', 'k3', 'token', 'rollout'],
    },
  },
  {
    title: 'OpenRLHF',
    trainer: 'openrlhf',
    kind: 'language-model',
    names:
      `train/global_step train/policy_loss train/ppo_kl train/ppo_clip_ratio train/kl train/vllm_kl train/entropy_loss
      train/critic_loss train/reward train/return train/response_length train/total_length train/actor_grad_norm
      train/actor_lr train/critic_lr train/group_reward_std`.split(/\s+/),
    lands: {
      'kl/step': 'train/ppo_kl',
      'kl/ref': 'train/kl',
      'kl/sampler': 'train/vllm_kl',
      'policy/entropy': 'train/entropy_loss',
      'policy/clip_fraction': 'train/ppo_clip_ratio',
      'reward/mean': 'train/reward',
      'reward/penalised': 'train/return',
      'reward/group_std': 'train/group_reward_std',
      'train/lr': 'train/actor_lr',
      'loss/value': 'train/critic_loss',
    },
    kls: {
      'kl/step': ['step', 'k1', 'token', 'minibatches'],
      'kl/ref': ['ref', 'k1', 'token', 'rollout'],
      'kl/sampler': ['sampler', 'k1', 'token', 'minibatches'],
    },
  },
  {
    title: 'Unity ML-Agents, its events',
    trainer: 'ml-agents',
    names: [
      ...'Environment/Cumulative Reward|Environment/Episode Length|Losses/Policy Loss|Losses/Value Loss|Policy/Entropy|Policy/Beta'.split(
        '|',
      ),
      ...'Policy/Epsilon|Policy/Extrinsic Reward|Policy/Extrinsic Value Estimate|Policy/Learning Rate|Is Training|Self-play/ELO'.split(
        '|',
      ),
      ...'Policy/Curiosity Value Estimate|Losses/Curiosity Forward Loss|Environment/Lesson Number/wall|Environment/Cumulative Reward_hist'.split(
        '|',
      ),
    ],
    lands: {
      'episode/return': 'Environment/Cumulative Reward',
      'episode/length': 'Environment/Episode Length',
      'policy/entropy': 'Policy/Entropy',
      'loss/policy': 'Losses/Policy Loss',
      'loss/value': 'Losses/Value Loss',
      'value/mean': 'Policy/Extrinsic Value Estimate',
      'train/lr': 'Policy/Learning Rate',
      'train/clip_range': 'Policy/Epsilon',
      'train/entropy_coef': 'Policy/Beta',
    },
  },
  {
    title: 'Unity ML-Agents, as it prints',
    trainer: 'ml-agents',
    names: ['step', 'Time Elapsed', 'Environment/Cumulative Reward', 'Std of Reward', 'Self-play/ELO'],
    lands: { 'episode/return': 'Environment/Cumulative Reward', 'time/elapsed_s': 'Time Elapsed' },
  },
  {
    title: 'DeepSpeed-Chat, as it prints',
    trainer: 'deepspeed-chat',
    kind: 'language-model',
    names: ['epoch', 'Step', 'Actor Loss', 'Critic Loss', 'Unsupervised Loss', 'Average reward score'],
    lands: {
      'reward/mean': 'Average reward score',
      'loss/policy': 'Actor Loss',
      'loss/value': 'Critic Loss',
    },
  },
  {
    title: 'TRL GRPO, in a notebook',
    trainer: 'trl-grpo',
    kind: 'language-model',
    names: [
      ...'Step|Training Loss|reward|reward_std|completions / mean_length|completions / clipped_ratio|kl'.split(
        '|',
      ),
      ...'rewards / format_reward / mean|rewards / format_reward / std'.split('|'),
    ],
    lands: {
      'reward/mean': 'reward',
      'kl/ref': 'kl',
      'loss/total': 'Training Loss',
      'completion/length': 'completions / mean_length',
      'completion/truncated': 'completions / clipped_ratio',
      'reward/part/format_reward': 'rewards / format_reward / mean',
    },
  },
  {
    title: 'Keel',
    trainer: 'keel',
    names: `train/iteration train/step kl/step kl/step_k1 kl/step_k3 guard/scale loss/value policy/entropy
      policy/entropy_relative episode/return train/epochs_run reward/part/fall time/steps_per_second`.split(
      /\s+/,
    ),
    lands: { 'kl/step': 'kl/step', 'kl/step_k3': 'kl/step_k3', 'reward/part/fall': 'reward/part/fall' },
    kls: {
      'kl/step': ['step', 'exact', 'action', 'rollout'],
      'kl/step_k1': ['step', 'k1', 'action', 'rollout'],
    },
  },
  {
    title: 'Keel by the callback of another trainer, which has estimates alone',
    trainer: 'keel',
    names:
      `train/iteration train/step kl/step_k1 kl/step_k3 kl/ref_k3 completion/length reward/mean loss/total`.split(
        /\s+/,
      ),
    lands: { 'kl/step': 'kl/step_k3', 'kl/step_k1': 'kl/step_k1', 'kl/ref': 'kl/ref_k3' },
    kls: {
      'kl/step': ['step', 'k3', 'action', 'rollout'],
      'kl/ref': ['ref', 'k3', 'token', 'minibatches'],
    },
    kind: 'language-model',
  },
];

describe('names of trainers', () => {
  it.each(cases)('$title', ({ trainer, names, lands, kls = {}, kind = 'classic' }) => {
    const run = toCanonical(named(names));
    expect(run.trainer).toBe(trainer);
    expect(run.kind).toBe(kind);
    for (const [id, theirs] of Object.entries(lands)) expect(run.series.get(id)?.theirs, id).toBe(theirs);
    for (const [id, [pair, estimator, per, aggregation, lag = 0]] of Object.entries(kls)) {
      expect(run.series.get(id)?.kl, id).toEqual({ pair, estimator, per, aggregation, lag });
    }
    // What is a KL says what it is, and nothing else does.
    for (const { id, kl } of run.series.values()) {
      expect(findMetric(id), id).toBeDefined();
      expect(kl !== undefined, id).toBe(findMetric(id)!.kl !== undefined);
    }
    expect(run.unknown).toEqual([]);
  });

  it('covers every dialect', () => {
    expect(new Set(cases.map(({ trainer }) => trainer))).toEqual(new Set(dialects.map(({ name }) => name)));
  });

  it('leads only to names of the registry', () => {
    for (const { mappings } of dialects) {
      for (const { id } of mappings) expect(findMetric(id.replace('$1', 'x')), id).toBeDefined();
    }
  });
});
