/** Tianshou 0.4 to 2. */
import { moved } from './derive.ts';
import type { Dialect, Log, Refine } from './dialect.ts';
import { assignments, namesIn } from './wording.ts';

/**
 * In an event file `update/*` counts gradient steps and all else environment steps. What the trainer saves at the end of
 * an epoch has both, and so leads from one to the other; without it the last of each are taken for the same moment.
 */
const gradientToEnvSteps: Refine = (drafts, log) => {
  if (log.raw.axis !== 'step') return {};
  const pairs = knownPairs(log);
  const late = drafts.filter(draft => draft.mapping.late === true);
  if (pairs.length === 0) {
    const last = (lists: typeof drafts): number =>
      lists.reduce(
        (most, { series }) => Math.max(most, series.length > 0 ? series.x[series.length - 1] : 0),
        0,
      );
    const [grad, env] = [last(late), last(drafts.filter(draft => draft.mapping.late !== true))];
    if (grad > 0 && env > 0) pairs.push([grad, env]);
  }
  if (pairs.length === 0) return {};
  pairs.sort((a, b) => a[0] - b[0]);
  const toEnv = (grad: number): number => {
    let [g0, e0] = [0, 0];
    for (const [g1, e1] of pairs) {
      if (grad <= g1) return g1 === g0 ? e1 : e0 + ((e1 - e0) * (grad - g0)) / (g1 - g0);
      [g0, e0] = [g1, e1];
    }
    return g0 === 0 ? grad : (e0 * grad) / g0;
  };
  return {
    drafts: drafts.map(draft =>
      draft.mapping.late === true ? { ...draft, series: moved(draft.series, toEnv) } : draft,
    ),
  };
};

function knownPairs(log: Log): [grad: number, env: number][] {
  for (const [grad, env] of [
    ['save/gradient_step', 'save/env_step'],
    ['save/update_step', 'save/env_step'],
    ['info/update_step', 'info/train_step'],
    ['info/gradient_step', 'info/train_step'],
  ] as const) {
    const [g, e] = [log.series.get(grad)?.series, log.series.get(env)?.series];
    if (g === undefined || e === undefined) continue;
    const count = Math.min(g.length, e.length);
    const pairs = Array.from({ length: count }, (_, i): [number, number] => [g.max[i], e.max[i]]);
    return pairs.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b) && a > 0);
  }
  return [];
}

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['lr', 'learning_rate'],
  epochs: ['repeat_per_collect', 'update_step_num_repetitions'],
  minibatchSize: ['batch_size'],
  samplesPerUpdate: ['step_per_collect', 'collection_step_num_env_steps'],
  envs: ['training_num', 'num_train_envs', 'num_training_envs'],
  clipRange: ['eps_clip'],
  entropyCoef: ['ent_coef'],
  valueCoef: ['vf_coef'],
  gamma: ['gamma'],
  maxGradNorm: ['max_grad_norm'],
  task: ['task'],
};

export const tianshou: Dialect = {
  name: 'tianshou',
  title: 'Tianshou',
  kind: 'classic',
  signs: [
    { name: /update\/(?:loss\/)?(?:clip|vf|ent|actor|vf_loss|ent_loss|clip_loss|actor_loss).*/, points: 3 },
    { name: /(?:train|training|test)\/returns_stat\/mean/, points: 4 },
    { name: /(?:update)\/(?:gradient_step|update_step)/, points: 2 },
    { name: 'save/gradient_step', points: 2 },
    { name: 'test/reward_std', points: 1 },
    { name: 'test/env_step', points: 1 },
    { name: 'train/episode', points: 1 },
    { name: 'info/best_reward', points: 2 },
  ],
  mappings: [
    {
      theirs: /update\/(?:kl|kl\/mean)/,
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'minibatches' },
      late: true,
      note: 'NPG and TRPO; PPO logs none',
    },
    { theirs: /update\/(?:loss\/ent|ent_loss\/mean)/, id: 'policy/entropy', late: true, note: '+H' },
    { theirs: /update\/(?:loss\/vf|vf_loss\/mean)/, id: 'loss/value', late: true },
    { theirs: /update\/(?:loss\/(?:clip|actor)|(?:clip|actor)_loss\/mean)/, id: 'loss/policy', late: true },
    { theirs: /update\/(?:loss|loss\/mean)/, id: 'loss/total', late: true },
    { theirs: /(?:train|training)\/(?:reward|returns_stat\/mean)/, id: 'episode/return' },
    { theirs: /(?:train|training)\/(?:length|lens_stat\/mean)/, id: 'episode/length' },
    { theirs: /(?:train|training)\/(?:episode|n_collected_episodes)/, id: 'episode/count' },
    { theirs: /test\/(?:reward|returns_stat\/mean)/, id: 'eval/return' },
    { theirs: /test\/(?:reward_std|returns_stat\/std)/, id: 'eval/return_std' },
    { theirs: /(?:train|training)\/collect_speed/, id: 'time/steps_per_second' },
    { theirs: /update\/lr|lr/, id: 'train/lr', late: true },
  ],
  ignored: [/(?:train|training|test|update|save|info)\/.*/],
  steps: [
    { theirs: 'train/env_step', unit: 'steps' },
    { theirs: 'training/env_step', unit: 'steps' },
    { theirs: 'global_step', unit: 'steps' },
  ],
  eventStep: { unit: 'steps' },
  config,
  wording: {
    names: namesIn(config, { without: ['epochs', 'samplesPerUpdate', 'envs', 'task'] }),
    otherwise: {
      rewardScale: () => ({
        code: 'return_scaling=True',
        aside: 'reward_normalization=True before version 2',
      }),
      epochs: value =>
        `update_step_num_repetitions=${value} in OnPolicyTrainerParams (repeat_per_collect before version 2)`,
      samplesPerUpdate: value =>
        `collection_step_num_env_steps=${value} in OnPolicyTrainerParams (step_per_collect before version 2)`,
    },
    write: assignments,
  },
  refine: gradientToEnvSteps,
  remarks:
    'PPO logs neither KL nor clip fraction nor explained variance, and has no target KL. update/* counts gradient steps: moved onto environment steps.',
};
