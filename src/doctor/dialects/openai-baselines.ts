/** OpenAI Baselines (ppo1, ppo2, trpo_mpi) and Stable-Baselines 2, which keeps its names. */
import { rangeOf, scaled } from './derive.ts';
import type { Dialect, Log, Refine } from './dialect.ts';
import { call } from './wording.ts';

/** What ppo2 and Stable-Baselines 2, which grew out of it, call alike. */
const ppo2Names = {
  epochs: 'noptepochs',
  clipRange: 'cliprange',
  entropyCoef: 'ent_coef',
  valueCoef: 'vf_coef',
  gamma: 'gamma',
  maxGradNorm: 'max_grad_norm',
};

const normalised = { code: 'env = VecNormalize(env, ob=False, ret=True)' };

/** Names that Stable-Baselines 2 has and OpenAI's own do not. */
function isStableBaselines2(log: Log): boolean {
  return (
    log.series.has('ep_reward_mean') ||
    [...log.series.keys()].some(
      name => name.startsWith('input_info/') || name.startsWith('loss/approximate_'),
    )
  );
}

/** PPO1 of Stable-Baselines 2 logs its clip range under the name that PPO2 has for its clip fraction. */
function isPpo1({ series }: Log): boolean {
  const factor = series.get('loss/clip_factor')?.series;
  if (factor === undefined || series.has('input_info/old_neglog_action_probability')) return false;
  const entropy = rangeOf(series.get('loss/entropy_loss')?.series ?? factor);
  const range = series.get('input_info/clip_range')?.series;
  if (range !== undefined && range.length === factor.length)
    return range.values.every((value, i) => value === factor.values[i]);
  // A range is constant or annealed; a fraction goes up and down.
  const falls = factor.values.every((value, i, all) => i === 0 || value <= all[i - 1]);
  return falls && factor.values[0] > 0 && (entropy === undefined || entropy[1] <= 0);
}

/** Its entropy is a loss: times the coefficient that it was multiplied by, where that is known. */
const asPpo1: Refine = (drafts, log) => {
  if (!isPpo1(log)) return {};
  const coef = log.setting(['entcoeff', 'ent_coef']);
  const isKnown = typeof coef === 'number' && coef > 0;
  return {
    drafts: drafts.flatMap(draft => {
      if (draft.theirs.endsWith('clip_factor')) return [{ ...draft, id: 'train/clip_range' }];
      if (draft.id !== 'policy/entropy') return [draft];
      return isKnown ? [{ ...draft, series: scaled(draft.series, -1 / coef) }] : [];
    }),
    notes: isKnown ? [] : ['entropy_loss of PPO1 is the entropy times an unknown coefficient: left out'],
  };
};

export const openaiBaselines: Dialect = {
  name: 'openai-baselines',
  title: 'OpenAI Baselines, Stable-Baselines 2',
  kind: 'classic',
  signs: [
    { name: 'loss_kl', points: 3 },
    { name: 'loss_ent', points: 2 },
    { name: 'loss_pol_surr', points: 3 },
    { name: 'ev_tdlam_before', points: 3 },
    { name: 'EpRewMean', points: 3 },
    { name: 'TimestepsSoFar', points: 2 },
    { name: 'eprewmean', points: 3 },
    { name: 'serial_timesteps', points: 3 },
    { name: 'misc/serial_timesteps', points: 4 },
    { name: 'approxkl', points: 2 },
    { name: 'loss/approxkl', points: 3 },
    { name: 'policy_entropy', points: 1 },
    { name: 'loss/policy_entropy', points: 2 },
    { name: 'meankl', points: 2 },
    { name: 'surrgain', points: 2 },
    { name: 'ep_reward_mean', points: 1 },
    { name: 'loss/approximate_kullback-leibler', points: 4 },
    { name: 'loss/clip_factor', points: 3 },
  ],
  mappings: [
    {
      theirs: 'loss_kl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'rollout' },
      note: 'ppo1: measured after the update',
    },
    {
      theirs: 'meankl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'rollout' },
      note: 'trpo_mpi, after its line search',
    },
    {
      theirs: /(?:loss\/)?approxkl/,
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k2', per: 'action', aggregation: 'minibatches' },
      note: 'ppo2: half the squared log-ratio',
    },
    {
      theirs: 'loss/approximate_kullback-leibler',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k2', per: 'action', aggregation: 'minibatches' },
    },
    { theirs: /loss_ent|(?:loss\/)?policy_entropy|entropy/, id: 'policy/entropy' },
    {
      theirs: 'loss/entropy_loss',
      id: 'policy/entropy',
      note: 'Stable-Baselines 2 names +H so; in its PPO1 it is -entcoeff H',
    },
    { theirs: /loss_vf_loss|(?:loss\/)?value_loss|loss\/value_function_loss/, id: 'loss/value' },
    { theirs: /loss_pol_surr|(?:loss\/)?policy_loss|loss\/policy_gradient_loss/, id: 'loss/policy' },
    { theirs: 'surrgain', id: 'loss/policy', times: -1, note: 'a gain: maximised' },
    { theirs: /(?:loss\/)?loss/, id: 'loss/total' },
    {
      theirs: 'KL',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'rollout' },
      note: 'modular_rl, which baselines grew out of: after the line search',
    },
    { theirs: /ev_tdlam_before|EVBefore|(?:misc\/)?explained_variance/, id: 'value/explained_variance' },
    {
      theirs: /(?:loss\/)?clipfrac|loss\/clip_factor/,
      id: 'policy/clip_fraction',
      note: 'clip_factor is the clip range in PPO1 of Stable-Baselines 2',
    },
    { theirs: /EpRewMean|eprewmean|ep_reward_mean|episode_reward/, id: 'episode/return' },
    { theirs: /EpLenMean|eplenmean|ep_len_mean/, id: 'episode/length' },
    { theirs: 'EpThisIter', id: 'episode/count' },
    { theirs: /eval_?eprewmean/, id: 'eval/return' },
    { theirs: /fps|misc\/fps/, id: 'time/steps_per_second' },
    { theirs: /TimeElapsed|(?:misc\/)?time_elapsed/, id: 'time/elapsed_s' },
    { theirs: 'input_info/learning_rate', id: 'train/lr' },
    { theirs: 'input_info/clip_range', id: 'train/clip_range' },
    { theirs: /TimestepsSoFar|(?:misc\/)?total_timesteps/, id: 'train/step' },
  ],
  ignored: [
    'loss_pol_entpen',
    'EpisodesSoFar',
    'entloss',
    'optimgain',
    'EVAfter',
    /(?:misc\/)?(?:nupdates|n_updates|serial_timesteps)/,
    /input_info\/.*/,
    /eval_?eplenmean/,
  ],
  steps: [
    { theirs: 'TimestepsSoFar', unit: 'steps' },
    { theirs: 'misc/total_timesteps', unit: 'steps' },
    { theirs: 'total_timesteps', unit: 'steps' },
    { theirs: 'misc/nupdates', unit: 'updates' },
    { theirs: 'nupdates', unit: 'updates' },
  ],
  eventStep: { unit: 'steps' },
  config: {
    learningRate: ['lr', 'learning_rate', 'optim_stepsize'],
    epochs: ['noptepochs', 'optim_epochs'],
    minibatchSize: ['optim_batchsize'],
    stepsPerRollout: ['nsteps', 'n_steps', 'timesteps_per_actorbatch'],
    envs: ['num_env', 'n_envs'],
    totalSteps: ['num_timesteps', 'total_timesteps'],
    clipRange: ['cliprange', 'clip_param'],
    entropyCoef: ['ent_coef', 'entcoeff'],
    valueCoef: ['vf_coef'],
    gamma: ['gamma'],
    maxGradNorm: ['max_grad_norm'],
    task: ['env', 'env_id'],
  },
  wording: log =>
    log.series.has('loss_kl')
      ? {
          names: {
            learningRate: 'optim_stepsize',
            epochs: 'optim_epochs',
            minibatchSize: 'optim_batchsize',
            stepsPerRollout: 'timesteps_per_actorbatch',
            clipRange: 'clip_param',
            entropyCoef: 'entcoeff',
            gamma: 'gamma',
            learningRateSchedule: 'schedule',
          },
          otherwise: { rewardScale: () => normalised },
          write: pairs => ({
            code: `pposgd_simple.learn(..., ${pairs.map(([n, v]) => `${n}=${v}`).join(', ')})`,
          }),
        }
      : isStableBaselines2(log)
        ? {
            names: { ...ppo2Names, learningRate: 'learning_rate', stepsPerRollout: 'n_steps' },
            otherwise: {
              rewardScale: () => ({ code: 'env = VecNormalize(env, norm_obs=False, norm_reward=True)' }),
              minibatchSize: value =>
                `choose nminibatches so that n_steps x environments / nminibatches is ${value}`,
            },
            write: call('PPO2'),
          }
        : {
            names: { ...ppo2Names, learningRate: 'lr', stepsPerRollout: 'nsteps' },
            otherwise: {
              rewardScale: () => normalised,
              minibatchSize: value =>
                `choose nminibatches so that nsteps x environments / nminibatches is ${value}`,
            },
            write: pairs => ({ code: pairs.map(([name, value]) => `--${name}=${value}`).join(' ') }),
          },
  refine: asPpo1,
  remarks: 'ppo1 anneals its step size to 0 by default: a KL that dies at the end is the schedule.',
};
