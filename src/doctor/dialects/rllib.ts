/** Ray RLlib: PPO and its kin, on the old and the new API stack, with any policy or module. */
import type { Dialect, Renamed } from './dialect.ts';
import { call } from './wording.ts';

/** `info/learner/<policy>/learner_stats/kl`, `info/learner/<policy>/kl`, `learners/<module>/mean_kl_loss`. */
const learner = /^(?:info\/)?learners?\/([^/]+)\/(?:learner_stats\/)?([^/]+)$/;

/** What makes a learner one of a policy that is trained. */
const telling = ['kl', 'mean_kl_loss', 'entropy', 'policy_loss', 'total_loss', 'vf_loss'];

/** One policy's names without its id. Of several the default one, else the one that tells most, is the run's. */
function onePolicy(names: readonly string[]): Renamed {
  const found = new Map<string, number>();
  for (const name of names) {
    const [, policy, metric] = learner.exec(name) ?? [];
    if (policy === undefined || policy === '__all_modules__') continue;
    found.set(policy, (found.get(policy) ?? 0) + (telling.includes(metric) ? 1 : 0));
  }
  const trained = [...found].filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  const main = trained.some(([policy]) => policy === 'default_policy') ? 'default_policy' : trained[0]?.[0];
  const renamed = new Map<string, string>();
  for (const name of names) {
    const [, policy, metric] = learner.exec(name) ?? [];
    if (policy !== undefined && policy === main) renamed.set(name, `learner/${metric}`);
  }
  const others = trained.map(([policy]) => policy).filter(policy => policy !== main);
  return {
    names: renamed,
    notes:
      others.length === 0
        ? []
        : [
            `the log has ${trained.length} policies: this is about ${main}, not ${others.slice(0, 5).join(', ')}${others.length > 5 ? ' …' : ''}`,
          ],
  };
}

export const rllib: Dialect = {
  name: 'rllib',
  title: 'Ray RLlib',
  kind: 'classic',
  prefixes: ['ray/tune/'],
  rename: onePolicy,
  signs: [
    { name: /learner\/.*/, points: 3 },
    { name: /learner\/(?:cur|curr)_kl_coeff/, points: 2 },
    { name: /learner\/mean_kl_loss/, points: 2 },
    { name: 'episode_reward_mean', points: 1 },
    { name: /env_runners\/episode_(?:return|reward)_mean/, points: 3 },
    { name: 'num_env_steps_sampled_lifetime', points: 2 },
    { name: 'timesteps_total', points: 1 },
    { name: 'iterations_since_restore', points: 1 },
    { name: 'num_healthy_workers', points: 1 },
  ],
  configSigns: [
    { name: 'rollout_fragment_length', points: 2 },
    { name: 'num_sgd_iter', points: 2 },
  ],
  mappings: [
    {
      theirs: 'learner/kl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'minibatches' },
    },
    {
      theirs: 'learner/mean_kl_loss',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'last-minibatch' },
      note: 'new stack',
    },
    { theirs: /learner\/curr?_kl_coeff/, id: 'kl/coef' },
    { theirs: 'learner/entropy', id: 'policy/entropy' },
    { theirs: 'learner/vf_loss_unclipped', id: 'loss/value', note: 'vf_loss is cut at vf_clip_param' },
    { theirs: 'learner/vf_loss', id: 'loss/value' },
    { theirs: 'learner/vf_explained_var', id: 'value/explained_variance' },
    { theirs: 'learner/policy_loss', id: 'loss/policy' },
    { theirs: 'learner/total_loss', id: 'loss/total' },
    { theirs: /learner\/(?:default_optimizer_(?:learning_rate|lr)|curr?_lr|learning_rate)/, id: 'train/lr' },
    { theirs: /learner\/(?:curr?_)?entropy_coeff/, id: 'train/entropy_coef' },
    { theirs: /learner\/(?:grad_gnorm|gradients_default_optimizer_global_norm)/, id: 'grad/norm' },
    {
      theirs: /(?:env_runners\/)?episode_(?:return|reward)_mean/,
      id: 'episode/return',
      note: 'nan until an episode has ended',
    },
    { theirs: /sampler_results\/episode_reward_mean/, id: 'episode/return' },
    { theirs: /(?:env_runners\/|sampler_results\/)?episode_len_mean/, id: 'episode/length' },
    { theirs: /(?:env_runners\/)?(?:episodes_this_iter|num_episodes)/, id: 'episode/count' },
    {
      theirs: /evaluation\/(?:env_runners\/|sampler_results\/)?episode_(?:return|reward)_mean/,
      id: 'eval/return',
    },
    { theirs: 'time_total_s', id: 'time/elapsed_s' },
    { theirs: /num_env_steps_sampled_lifetime|timesteps_total/, id: 'train/step' },
    { theirs: 'training_iteration', id: 'train/iteration' },
    {
      theirs: /learner_info\/throughput|num_env_steps_sampled_throughput_per_sec/,
      id: 'time/steps_per_second',
    },
  ],
  ignored: [
    /learner\/.*/,
    /(?:info\/)?learners?\/.*/,
    /info\/.*/,
    /(?:env_runners|sampler_results|sampler_perf|perf|timers|hist_stats|connector_metrics|counters|custom_metrics|evaluation|fault_tolerance|policy_reward_.*|episode_media)\/.*/,
    /.*episode_(?:reward|return)_(?:min|max)/,
    /episode_(?:media|duration).*|episodes_(?:total|timesteps_total)/,
    /(?:num_|agent_|timesteps_|time_|iterations_).*/,
    /(?:timestamp|pid|done|date|node_ip|hostname|trial_id|experiment_id|warmup_time|env_runner_group.*)/,
  ],
  steps: [
    { theirs: 'num_env_steps_sampled_lifetime', unit: 'steps' },
    { theirs: 'env_runners/num_env_steps_sampled_lifetime', unit: 'steps' },
    { theirs: 'timesteps_total', unit: 'steps' },
    { theirs: 'num_env_steps_sampled', unit: 'steps' },
    { theirs: 'info/num_steps_sampled', unit: 'steps' },
    { theirs: 'info/num_env_steps_sampled', unit: 'steps' },
    { theirs: 'training_iteration', unit: 'iterations' },
  ],
  eventStep: {
    unit: 'iterations',
    better: [
      { theirs: 'num_env_steps_sampled_lifetime', unit: 'steps' },
      { theirs: 'env_runners/num_env_steps_sampled_lifetime', unit: 'steps' },
      { theirs: 'timesteps_total', unit: 'steps' },
      { theirs: 'info/num_steps_sampled', unit: 'steps' },
    ],
  },
  config: {
    learningRate: ['lr'],
    learningRateSchedule: ['lr_schedule'],
    epochs: ['num_epochs', 'num_sgd_iter'],
    minibatchSize: ['minibatch_size', 'sgd_minibatch_size'],
    stepsPerRollout: ['rollout_fragment_length'],
    samplesPerUpdate: ['train_batch_size_per_learner', 'train_batch_size'],
    clipRange: ['clip_param'],
    targetKl: ['kl_target'],
    entropyCoef: ['entropy_coeff'],
    valueCoef: ['vf_loss_coeff'],
    gamma: ['gamma'],
    maxGradNorm: ['grad_clip'],
    task: ['env'],
  },
  wording: log => {
    const isNew = log.series.has('learner/mean_kl_loss') || log.series.has('learner/vf_loss_unclipped');
    return {
      names: {
        learningRate: 'lr',
        epochs: isNew ? 'num_epochs' : 'num_sgd_iter',
        minibatchSize: isNew ? 'minibatch_size' : 'sgd_minibatch_size',
        samplesPerUpdate: isNew ? 'train_batch_size_per_learner' : 'train_batch_size',
        clipRange: 'clip_param',
        targetKl: 'kl_target',
        entropyCoef: 'entropy_coeff',
        valueCoef: 'vf_loss_coeff',
        gamma: 'gamma',
        maxGradNorm: 'grad_clip',
      },
      otherwise: {
        rewardScale: value =>
          `register_env("scaled", lambda cfg: gym.wrappers.TransformReward(gym.make("…"), lambda r: ${value} * r)), then config.environment("scaled")`,
        stepsPerRollout: value => ({ code: `config.env_runners(rollout_fragment_length=${value})` }),
        learningRateSchedule: value =>
          isNew
            ? `lr takes a list of [step, rate] for a ${value} schedule`
            : `lr_schedule takes a list of [step, rate] for a ${value} schedule`,
      },
      write: call('config.training', ''),
    };
  },
  remarks:
    'learner/… stands for info/learner/<policy>/learner_stats/…, info/learner/<policy>/… or learners/<module>/…, with any policy. kl_target steers a penalty (x1.5 above twice the target, x0.5 below half of it); it is no limit. With kl_coeff 0 the KL is logged as 0.',
};
