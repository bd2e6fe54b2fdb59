/** CleanRL: single-file PPO. */
import type { Dialect } from './dialect.ts';
import { flags, namesIn } from './wording.ts';

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['learning_rate'],
  epochs: ['update_epochs'],
  minibatchSize: ['minibatch_size'],
  stepsPerRollout: ['num_steps'],
  envs: ['num_envs'],
  totalSteps: ['total_timesteps'],
  clipRange: ['clip_coef'],
  targetKl: ['target_kl'],
  entropyCoef: ['ent_coef'],
  valueCoef: ['vf_coef'],
  gamma: ['gamma'],
  maxGradNorm: ['max_grad_norm'],
  task: ['env_id', 'gym_id'],
  samplesPerUpdate: ['batch_size'],
};

export const cleanrl: Dialect = {
  name: 'cleanrl',
  title: 'CleanRL',
  kind: 'classic',
  signs: [
    { name: 'charts/episodic_return', points: 3 },
    { name: 'charts/SPS', points: 3 },
    { name: 'charts/learning_rate', points: 2 },
    { name: 'charts/episodic_length', points: 1 },
    { name: 'charts/avg_episodic_return', points: 3 },
    { name: 'losses/old_approx_kl', points: 1 },
    { name: 'losses/approx_kl', points: 1 },
    { name: 'losses/clipfrac', points: 1 },
    { name: 'losses/policy_loss', points: 1 },
  ],
  configSigns: [
    { name: 'torch_deterministic', points: 1 },
    { name: 'wandb_project_name', points: 1 },
    { name: 'exp_name', points: 1 },
  ],
  mappings: [
    {
      theirs: 'losses/approx_kl',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k3', per: 'action', aggregation: 'last-minibatch' },
    },
    {
      theirs: 'losses/old_approx_kl',
      id: 'kl/step_k1',
      kl: { pair: 'step', estimator: 'k1', per: 'action', aggregation: 'last-minibatch' },
      note: 'may be negative',
    },
    { theirs: 'losses/clipfrac', id: 'policy/clip_fraction', note: 'mean of all minibatches' },
    { theirs: 'losses/entropy', id: 'policy/entropy', note: 'last minibatch' },
    { theirs: 'losses/value_loss', id: 'loss/value', note: 'last minibatch' },
    { theirs: 'losses/policy_loss', id: 'loss/policy', note: 'last minibatch' },
    { theirs: /losses\/(?:qf1_values|q_values)/, id: 'value/mean', note: 'of DQN, DDPG, TD3 and SAC' },
    { theirs: 'losses/loss', id: 'loss/total' },
    { theirs: 'losses/explained_variance', id: 'value/explained_variance' },
    { theirs: 'charts/avg_episodic_return', id: 'episode/return' },
    { theirs: 'charts/episodic_return', id: 'episode/return', note: 'one point for each episode' },
    { theirs: /charts\/episodic_return\/.*/, id: 'episode/return' },
    { theirs: 'charts/avg_episodic_length', id: 'episode/length' },
    { theirs: 'charts/episodic_length', id: 'episode/length' },
    { theirs: 'eval/episodic_return', id: 'eval/return' },
    { theirs: 'charts/learning_rate', id: 'train/lr' },
    { theirs: 'charts/SPS', id: 'time/steps_per_second' },
  ],
  ignored: [/charts\/SPS_update/, 'charts/update', /stats\/.*/, /time\/.*/, 'Charts/learning_rate'],
  steps: [{ theirs: 'global_step', unit: 'steps' }],
  eventStep: { unit: 'steps' },
  config,
  wording: {
    names: namesIn(config, {
      as: leaf => `--${leaf.replaceAll('_', '-')}`,
      without: ['minibatchSize', 'task', 'samplesPerUpdate'],
    }),
    otherwise: {
      rewardScale: () =>
        'in make_env: env = gym.wrappers.NormalizeReward(env, gamma=gamma), then env = gym.wrappers.TransformReward(env, lambda r: np.clip(r, -10, 10))',
      minibatchSize: value =>
        `choose --num-minibatches so that num_envs x num_steps / num_minibatches is ${value}`,
      logStdInitial: (text, value) => ({
        code: `self.actor_logstd = nn.Parameter(torch.full((1, np.prod(envs.single_action_space.shape)), ${text}.0))`,
        sets: [['actor_logstd', value]],
      }),
      learningRateSchedule: value => ({ code: value === 'constant' ? '--no-anneal-lr' : '--anneal-lr' }),
    },
    write: flags,
  },
  remarks:
    'KL, losses and entropy are of the last minibatch of the last epoch; clipfrac is the mean of all. Settings are a text tag.',
};
