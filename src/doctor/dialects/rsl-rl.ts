/** RSL-RL, as in Isaac Lab and legged_gym. It logs no KL. */
import type { Dialect } from './dialect.ts';
import { namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['algorithm/learning_rate', 'learning_rate'],
  learningRateSchedule: ['algorithm/schedule'],
  epochs: ['algorithm/num_learning_epochs', 'num_learning_epochs'],
  stepsPerRollout: ['num_steps_per_env'],
  envs: ['num_envs'],
  clipRange: ['algorithm/clip_param', 'clip_param'],
  targetKl: ['algorithm/desired_kl', 'desired_kl'],
  entropyCoef: ['algorithm/entropy_coef', 'entropy_coef'],
  valueCoef: ['algorithm/value_loss_coef', 'value_loss_coef'],
  gamma: ['algorithm/gamma', 'gamma'],
  maxGradNorm: ['algorithm/max_grad_norm', 'max_grad_norm'],
  task: ['experiment_name', 'task'],
};

export const rslRl: Dialect = {
  name: 'rsl_rl',
  title: 'RSL-RL (Isaac Lab, legged_gym)',
  kind: 'classic',
  signs: [
    { name: 'Loss/surrogate', points: 3 },
    { name: /Loss\/value(?:_function)?/, points: 2 },
    { name: 'Loss/learning_rate', points: 2 },
    { name: /Policy\/mean_(?:noise_)?std/, points: 2 },
    { name: 'Train/mean_reward', points: 2 },
    { name: 'Perf/total_fps', points: 1 },
    { name: /(?:Mean )?[Ss]urrogate loss/, points: 3 },
    { name: /Mean action (?:noise )?std/, points: 2 },
  ],
  configSigns: [{ name: 'desired_kl', points: 2 }],
  mappings: [
    { theirs: /Loss\/(?:mean_)?entropy/, id: 'policy/entropy' },
    { theirs: /Loss\/value(?:_function)?/, id: 'loss/value' },
    { theirs: 'Loss/surrogate', id: 'loss/policy' },
    { theirs: 'Loss/learning_rate', id: 'train/lr' },
    {
      theirs: /Loss\/(?:mean_)?kl/,
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'minibatches' },
      note: 'in forks only',
    },
    { theirs: /Policy\/mean_(?:noise_)?std/, id: 'policy/std' },
    { theirs: 'Train/mean_reward', id: 'episode/return' },
    { theirs: 'Train/mean_episode_length', id: 'episode/length' },
    { theirs: /Episode_Reward\/(.+)/, id: 'reward/part/$1' },
    { theirs: /Episode\/rew_(.+)/, id: 'reward/part/$1' },
    // As it prints them.
    { theirs: /(?:Mean )?[Vv]alue(?:[_ ]function)? loss/, id: 'loss/value' },
    { theirs: /(?:Mean )?[Ss]urrogate loss/, id: 'loss/policy' },
    { theirs: 'Mean entropy loss', id: 'policy/entropy', note: '+H, whatever its name says' },
    { theirs: /Mean action (?:noise )?std/, id: 'policy/std' },
    { theirs: /Mean (?:total )?reward/, id: 'episode/return' },
    { theirs: 'Mean episode length', id: 'episode/length' },
    { theirs: /Mean episode rew_(.+)/, id: 'reward/part/$1' },
    { theirs: /Computation|Steps per second/, id: 'time/steps_per_second' },
    { theirs: 'Perf/total_fps', id: 'time/steps_per_second' },
    { theirs: /Perf\/collection[ _]time/, id: 'time/collect_s' },
    { theirs: 'Perf/learning_time', id: 'time/update_s' },
  ],
  ignored: [
    /Train\/.*\/time/,
    /Mean .*|Total (?:timesteps|steps|time)|(?:Iteration|Collection|Learning|Total) time|Time elapsed|ETA/,
    /Loss\/.*/,
    /(?:Episode_Termination|Metrics|Curriculum|Rnd|Perf|Policy|Train|Episode)\/.*/,
  ],
  steps: [{ theirs: 'iteration', unit: 'iterations' }],
  eventStep: { unit: 'iterations' },
  config,
  wording: {
    names: namesIn(config, { without: ['stepsPerRollout', 'envs', 'task'] }),
    otherwise: {
      rewardScale: value =>
        `multiply every weight of the reward terms by ${value}: env_cfg.rewards.scales in legged_gym, RewTerm(weight=…) in Isaac Lab`,
      minibatchSize: value =>
        `choose num_mini_batches so that num_envs x num_steps_per_env / num_mini_batches is ${value}`,
      stepsPerRollout: value => `runner cfg: num_steps_per_env=${value}`,
      envs: value => ({ code: `--num_envs ${value}` }),
    },
    write: pairs => `PPO algorithm cfg: ${pairs.map(([name, value]) => `${name}=${value}`).join(', ')}`,
  },
  klProxy: {
    id: 'train/lr',
    floor: 1e-5,
    ceiling: 1e-2,
    meaning:
      'the learning rate follows the KL: at its floor the KL stays above twice desired_kl, at its ceiling below half of it',
    settings: { target: ['algorithm/desired_kl', 'desired_kl'] },
  },
  remarks: 'Logs no KL; with schedule "adaptive" the learning rate tells it. x counts iterations.',
};
