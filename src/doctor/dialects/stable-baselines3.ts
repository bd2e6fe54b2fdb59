/** Stable-Baselines3: PPO, A2C and what shares their logger. */
import type { Dialect, Log, Mapping, WordingSpec } from './dialect.ts';
import { sb3Lag } from './sb3-lag.ts';
import { call, namesIn } from './wording.ts';

/** What every on-policy algorithm of SB3 and sb3-contrib logs. `train/*` belongs to the rollout before: see sb3-lag. */
export const sb3Mappings: readonly Mapping[] = [
  { theirs: 'rollout/ep_rew_mean', id: 'episode/return' },
  { theirs: 'rollout/ep_len_mean', id: 'episode/length' },
  { theirs: 'rollout/success_rate', id: 'episode/success' },
  { theirs: 'eval/mean_reward', id: 'eval/return' },
  { theirs: 'eval/success_rate', id: 'eval/success' },
  {
    theirs: 'train/entropy_loss',
    id: 'policy/entropy',
    times: -1,
    late: true,
    note: 'logged as -H; the sign is mended',
  },
  { theirs: 'train/std', id: 'policy/std', late: true },
  { theirs: 'train/value_loss', id: 'loss/value', late: true },
  { theirs: 'train/explained_variance', id: 'value/explained_variance', late: true },
  { theirs: 'train/policy_gradient_loss', id: 'loss/policy', late: true },
  { theirs: 'train/policy_loss', id: 'loss/policy', late: true },
  { theirs: 'train/loss', id: 'loss/total', late: true, note: 'of the last minibatch only' },
  { theirs: 'train/clip_fraction', id: 'policy/clip_fraction', late: true },
  { theirs: 'train/clip_range', id: 'train/clip_range', late: true },
  { theirs: 'train/learning_rate', id: 'train/lr', late: true },
  { theirs: 'train/grad_norm', id: 'grad/norm', late: true },
  { theirs: 'time/fps', id: 'time/steps_per_second', note: 'mean since the start' },
  { theirs: 'time/time_elapsed', id: 'time/elapsed_s' },
  { theirs: 'time/iterations', id: 'train/iteration' },
  { theirs: 'time/total_timesteps', id: 'train/step' },
];

export const sb3Ignored: readonly (string | RegExp)[] = [
  'train/n_updates',
  'train/clip_range_vf',
  'time/episodes',
  'eval/mean_ep_length',
  /hparam\/.*/,
];

export const sb3Config: Dialect['config'] = {
  learningRate: ['learning_rate', 'lr'],
  epochs: ['n_epochs'],
  minibatchSize: ['batch_size'],
  stepsPerRollout: ['n_steps'],
  envs: ['n_envs', 'num_envs'],
  totalSteps: ['n_timesteps', 'total_timesteps'],
  clipRange: ['clip_range'],
  targetKl: ['target_kl'],
  entropyCoef: ['ent_coef'],
  valueCoef: ['vf_coef'],
  gamma: ['gamma'],
  maxGradNorm: ['max_grad_norm'],
  task: ['env_id', 'env_name', 'env'],
};

export const sb3Names: WordingSpec['names'] = namesIn(sb3Config, { without: ['envs', 'totalSteps', 'task'] });

export const sb3Otherwise: NonNullable<WordingSpec['otherwise']> = {
  envs: value => ({ code: `make_vec_env(..., n_envs=${value})` }),
  rewardScale: () => ({ code: 'env = VecNormalize(env, norm_obs=False, norm_reward=True)' }),
  logStdInitial: (text, value) => ({
    code: `PPO(..., policy_kwargs=dict(log_std_init=${text}))`,
    sets: [['log_std_init', value]],
  }),
  totalSteps: value => ({ code: `model.learn(total_timesteps=${value})` }),
  learningRateSchedule: value =>
    `learning_rate takes a function of the remaining progress (1 to 0) for a ${value} schedule`,
};

/** The signs of SB3's logger, which sb3-contrib shares. */
export const sb3Signs: Dialect['signs'] = [
  { name: 'time/total_timesteps', points: 3 },
  { name: 'rollout/ep_rew_mean', points: 3 },
  { name: 'time/iterations', points: 1 },
  { name: 'time/fps', points: 1 },
  { name: 'train/approx_kl', points: 2 },
  { name: 'train/entropy_loss', points: 1 },
  { name: 'train/policy_gradient_loss', points: 3 },
  { name: 'train/n_updates', points: 2 },
  { name: 'train/explained_variance', points: 1 },
  { name: 'train/clip_fraction', points: 1 },
  { name: 'eval/mean_ep_length', points: 2 },
  { name: 'eval/mean_reward', points: 1 },
];

export const sb3ApproxKl: Mapping = {
  theirs: 'train/approx_kl',
  id: 'kl/step',
  kl: { pair: 'step', estimator: 'k3', per: 'action', aggregation: 'last-epoch', lag: 1 },
  late: true,
};

/** A2C makes one update of a whole rollout and clips nothing. */
const notOfA2c = ['epochs', 'minibatchSize', 'clipRange', 'targetKl'] as const;
const a2cNames: WordingSpec['names'] = Object.fromEntries(
  Object.entries(sb3Names).filter(([setting]) => !(notOfA2c as readonly string[]).includes(setting)),
);

/** A2C calls its loss by another name than PPO, and has no ratio to measure. */
const isA2c = ({ series }: Log): boolean =>
  series.has('train/policy_loss') && !series.has('train/clip_range') && !series.has('train/approx_kl');

export const stableBaselines3: Dialect = {
  name: 'stable-baselines3',
  title: 'Stable-Baselines3',
  kind: 'classic',
  signs: [
    ...sb3Signs,
    // The three columns of monitor.csv: only together are they enough.
    { name: 'r', points: 1 },
    { name: 'l', points: 1 },
    { name: 't', points: 1 },
  ],
  configSigns: [{ name: 'n_epochs', points: 1 }],
  mappings: [
    sb3ApproxKl,
    ...sb3Mappings,
    { theirs: 'r', id: 'episode/return', note: 'monitor.csv, one row an episode' },
    { theirs: 'l', id: 'episode/length', note: 'monitor.csv' },
    { theirs: 't', id: 'time/elapsed_s', note: 'monitor.csv' },
  ],
  lengths: 'l',
  ignored: sb3Ignored,
  steps: [{ theirs: 'time/total_timesteps', unit: 'steps' }],
  eventStep: { unit: 'steps' },
  config: sb3Config,
  wording: log =>
    isA2c(log)
      ? { names: a2cNames, absent: notOfA2c, otherwise: sb3Otherwise, write: call('A2C') }
      : { names: sb3Names, otherwise: sb3Otherwise, write: call('PPO') },
  refine: sb3Lag,
  remarks:
    'A row is written before its update: train/* is moved to the step of the rollout that it was trained on. approx_kl is the mean of the last epoch, loss the last minibatch.',
};
