/** sb3-contrib: TRPO by its own names, RecurrentPPO and MaskablePPO by what the settings say. */
import type { Dialect } from './dialect.ts';
import { sb3Lag } from './sb3-lag.ts';
import {
  sb3ApproxKl,
  sb3Config,
  sb3Ignored,
  sb3Mappings,
  sb3Names,
  sb3Otherwise,
  sb3Signs,
} from './stable-baselines3.ts';
import { call } from './wording.ts';

export const sb3Contrib: Dialect = {
  name: 'sb3-contrib',
  title: 'sb3-contrib (TRPO, RecurrentPPO, MaskablePPO)',
  kind: 'classic',
  signs: [
    ...sb3Signs,
    { name: 'train/kl_divergence_loss', points: 4 },
    { name: 'train/is_line_search_success', points: 4 },
    { name: 'train/policy_objective', points: 3 },
  ],
  configSigns: [
    { name: 'line_search_shrinking_factor', points: 4 },
    { name: 'cg_max_steps', points: 3 },
    { name: 'lstm_hidden_size', points: 2 },
  ],
  mappings: [
    {
      theirs: 'train/kl_divergence_loss',
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'exact', per: 'action', aggregation: 'rollout', lag: 1 },
      late: true,
      note: 'TRPO, after its line search',
    },
    sb3ApproxKl,
    {
      theirs: 'train/policy_objective',
      id: 'loss/policy',
      times: -1,
      late: true,
      note: 'an objective: maximised',
    },
    ...sb3Mappings,
  ],
  ignored: [...sb3Ignored, 'train/is_line_search_success'],
  steps: [{ theirs: 'time/total_timesteps', unit: 'steps' }],
  eventStep: { unit: 'steps' },
  config: sb3Config,
  wording: log =>
    log.series.has('train/kl_divergence_loss')
      ? {
          names: {
            minibatchSize: 'batch_size',
            stepsPerRollout: 'n_steps',
            targetKl: 'target_kl',
            gamma: 'gamma',
          },
          otherwise: {
            ...sb3Otherwise,
            learningRate: () =>
              "TRPO's learning_rate is the critic's alone: the policy's step follows target_kl",
          },
          write: call('TRPO'),
        }
      : { names: sb3Names, otherwise: sb3Otherwise, write: call('RecurrentPPO') },
  refine: sb3Lag,
  remarks:
    'RecurrentPPO and MaskablePPO log what PPO logs, so that they are read as Stable-Baselines3 unless the settings tell. Rows are late as those of Stable-Baselines3.',
};
