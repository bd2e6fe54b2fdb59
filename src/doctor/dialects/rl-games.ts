/** rl_games, as in Isaac Gym. */
import { moved } from './derive.ts';
import type { Dialect, Draft, Refine } from './dialect.ts';
import { fits } from './log.ts';
import { namesIn, yaml } from './wording.ts';

const clipFraction = /diagnostics\/clip_frac\/(\d+)/;

/** `diagnostics/*` counts epochs where all else counts frames, and has a clip fraction for each mini-epoch. */
const epochsToFrames: Refine = (drafts, log, stepOf) => {
  const epochs = log.series.get('info/epochs')?.series;
  const frameOf = (epoch: number): number => {
    if (epochs === undefined || epochs.length === 0) return epoch;
    let low = 0;
    let high = epochs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (epochs.max[middle] < epoch) low = middle + 1;
      else high = middle;
    }
    return stepOf(epochs.x[low]);
  };
  const last = [...log.series]
    .map(([name, named]) => ({ named, epoch: Number(fits(name, clipFraction)?.[1] ?? -1) }))
    .filter(({ epoch }) => epoch >= 0)
    .sort((a, b) => b.epoch - a.epoch)[0]?.named;
  return {
    drafts: drafts.map((draft): Draft => {
      if (draft.mapping.late !== true) return draft;
      const own = draft.id === 'policy/clip_fraction' && last !== undefined ? last : draft;
      return { ...draft, theirs: own.theirs, series: moved(own.series, frameOf) };
    }),
  };
};

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['config/learning_rate', 'learning_rate'],
  learningRateSchedule: ['config/lr_schedule', 'lr_schedule'],
  epochs: ['config/mini_epochs', 'mini_epochs'],
  minibatchSize: ['config/minibatch_size', 'minibatch_size'],
  stepsPerRollout: ['config/horizon_length', 'horizon_length'],
  envs: ['config/num_actors', 'num_actors'],
  clipRange: ['config/e_clip', 'e_clip'],
  targetKl: ['config/kl_threshold', 'kl_threshold'],
  entropyCoef: ['config/entropy_coef', 'entropy_coef'],
  valueCoef: ['config/critic_coef', 'critic_coef'],
  gamma: ['config/gamma', 'gamma'],
  maxGradNorm: ['config/grad_norm', 'grad_norm'],
  task: ['config/name', 'task_name'],
};

export const rlGames: Dialect = {
  name: 'rl_games',
  title: 'rl_games',
  kind: 'classic',
  signs: [
    { name: 'losses/a_loss', points: 3 },
    { name: 'losses/c_loss', points: 3 },
    { name: 'info/last_lr', points: 3 },
    { name: 'info/e_clip', points: 2 },
    { name: 'info/kl', points: 1 },
    { name: 'info/lr_mul', points: 1 },
    { name: 'rewards/step', points: 1 },
    { name: 'rewards/iter', points: 1 },
    { name: 'performance/step_inference_rl_update_fps', points: 2 },
    { name: 'rewards/best', points: 1 },
    { name: 'info/epochs', points: 1 },
  ],
  mappings: [
    {
      theirs: 'info/kl',
      id: 'kl/step',
      kl: log => ({
        pair: 'step',
        estimator: isContinuous(log.series) ? 'exact' : 'k2',
        per: 'action',
        aggregation: 'minibatches',
      }),
      note: 'exact for continuous actions, k2 for discrete ones',
    },
    { theirs: 'losses/entropy', id: 'policy/entropy' },
    { theirs: 'losses/c_loss', id: 'loss/value' },
    { theirs: 'losses/a_loss', id: 'loss/policy' },
    { theirs: 'diagnostics/exp_var', id: 'value/explained_variance', late: true, note: 'counts epochs' },
    { theirs: clipFraction, id: 'policy/clip_fraction', late: true, note: 'of the last mini-epoch' },
    { theirs: 'rewards/step', id: 'episode/return' },
    { theirs: /(?:rewards0?|shaped_rewards)\/(?:step|frame)/, id: 'episode/return' },
    {
      theirs: 'rewards/best',
      id: 'episode/return',
      note: 'as printed: only when it is the best so far, so that it never falls',
    },
    { theirs: 'episode_lengths/step', id: 'episode/length' },
    { theirs: 'info/last_lr', id: 'train/lr' },
    { theirs: 'info/e_clip', id: 'train/clip_range' },
    { theirs: 'performance/step_inference_rl_update_fps', id: 'time/steps_per_second' },
  ],
  ignored: [
    /.*\/(?:iter|time)/,
    /losses\/.*/,
    /info\/.*/,
    /performance\/.*/,
    /diagnostics\/.*/,
    /(?:shaped_)?rewards\d*\/.*/,
    /scores\/.*/,
    /Episode\/.*/,
  ],
  steps: [
    { theirs: 'frames', unit: 'steps' },
    { theirs: 'info/epochs', unit: 'epochs' },
  ],
  eventStep: { unit: 'steps' },
  config,
  wording: {
    names: namesIn(config, {
      as: leaf => `params.config.${leaf}`,
      without: ['task'],
      and: { rewardScale: 'params.config.reward_shaper.scale_value' },
    }),
    write: yaml,
  },
  refine: epochsToFrames,
  actions: log => (isContinuous(log.series) ? 'continuous' : undefined),
  remarks:
    'Rewards are logged three times, by step, iter and time: the one by step is used. kl_threshold steers the learning rate (adaptive schedule); it is no limit.',
};

/** Only continuous actions have bounds to keep. */
function isContinuous(series: ReadonlyMap<string, unknown>): boolean {
  return series.has('losses/bounds_loss');
}
