/** PufferLib 1 to 4. */
import { moved } from './derive.ts';
import type { Dialect, Refine } from './dialect.ts';
import { flags, namesIn } from './wording.ts';

/**
 * PufferLib 3 logs the losses that the row before left: its first row has none. A log whose losses begin with its first
 * row is of another version, and is left alone.
 */
const puffer3Lag: Refine = (drafts, log) => {
  const speed = drafts.find(draft => draft.id === 'time/steps_per_second')?.series;
  const first = drafts.find(draft => draft.mapping.late === true)?.series;
  if (speed === undefined || first === undefined || log.series.has('loss/kl')) return {};
  if (!(first.length > 0 && speed.length > 1 && first.x[0] > speed.x[0])) return {};
  const rows = [...speed.x.subarray(0, speed.length)];
  const before = (x: number): number => {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] < x) low = middle + 1;
      else high = middle;
    }
    return rows[Math.max(0, low - 1)];
  };
  return {
    drafts: drafts.map(draft =>
      draft.mapping.late === true
        ? {
            ...draft,
            series: moved(draft.series, before),
            mapping:
              draft.mapping.kl === undefined || typeof draft.mapping.kl === 'function'
                ? draft.mapping
                : { ...draft.mapping, kl: { ...draft.mapping.kl, lag: 1 } },
          }
        : draft,
    ),
  };
};

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['train/learning_rate', 'learning_rate'],
  epochs: ['train/update_epochs', 'update_epochs'],
  minibatchSize: ['train/minibatch_size', 'minibatch_size'],
  stepsPerRollout: ['train/bptt_horizon', 'bptt_horizon', 'train/horizon'],
  totalSteps: ['train/total_timesteps', 'total_timesteps'],
  clipRange: ['train/clip_coef', 'clip_coef'],
  targetKl: ['train/target_kl', 'target_kl'],
  entropyCoef: ['train/ent_coef', 'ent_coef'],
  valueCoef: ['train/vf_coef', 'vf_coef'],
  gamma: ['train/gamma', 'gamma'],
  maxGradNorm: ['train/max_grad_norm', 'max_grad_norm'],
  task: ['env_name', 'train/env', 'env'],
};

export const pufferlib: Dialect = {
  name: 'pufferlib',
  title: 'PufferLib',
  kind: 'classic',
  prefixes: ['0verview/', 'overview/'],
  signs: [
    { name: 'agent_steps', points: 3 },
    { name: 'SPS', points: 2 },
    { name: /environment\/.*/, points: 2 },
    { name: /env\/.*/, points: 1 },
    { name: 'losses/approx_kl', points: 1 },
    { name: 'losses/old_approx_kl', points: 1 },
    { name: 'losses/importance', points: 2 },
    { name: 'loss/old_kl', points: 3 },
    { name: 'uptime', points: 1 },
    { name: /performance\/(?:eval|train|env|learn).*/, points: 2 },
    { name: /util\/gpu_percent/, points: 2 },
  ],
  configSigns: [
    { name: 'bptt_horizon', points: 3 },
    { name: 'vtrace_rho_clip', points: 3 },
  ],
  mappings: [
    {
      theirs: /losses\/approx_kl|loss\/kl/,
      id: 'kl/step',
      kl: { pair: 'step', estimator: 'k3', per: 'action', aggregation: 'minibatches' },
      late: true,
    },
    {
      theirs: /losses\/old_approx_kl|loss\/old_kl/,
      id: 'kl/step_k1',
      kl: { pair: 'step', estimator: 'k1', per: 'action', aggregation: 'minibatches' },
      late: true,
      note: 'may be negative',
    },
    { theirs: /loss(?:es)?\/clipfrac/, id: 'policy/clip_fraction', late: true },
    { theirs: /loss(?:es)?\/entropy/, id: 'policy/entropy', late: true },
    { theirs: /losses\/value_loss|loss\/value/, id: 'loss/value', late: true },
    { theirs: /losses\/policy_loss|loss\/policy/, id: 'loss/policy', late: true },
    { theirs: 'loss/total', id: 'loss/total', late: true },
    { theirs: 'losses/explained_variance', id: 'value/explained_variance', late: true },
    { theirs: 'losses/importance', id: 'policy/ratio_mean', late: true },
    { theirs: /env(?:ironment)?\/episode_return/, id: 'episode/return' },
    { theirs: /env(?:ironment)?\/score/, id: 'episode/return', note: 'where there is no episode_return' },
    { theirs: /env(?:ironment)?\/perf/, id: 'episode/success', note: 'a score from 0 to 1' },
    { theirs: /env(?:ironment)?\/episode_length/, id: 'episode/length' },
    { theirs: 'learning_rate', id: 'train/lr' },
    { theirs: 'SPS', id: 'time/steps_per_second' },
    { theirs: 'uptime', id: 'time/elapsed_s' },
    { theirs: 'agent_steps', id: 'train/step' },
  ],
  ignored: [/env(?:ironment)?\/.*/, /perf(?:ormance)?\/.*/, /util\/.*/, 'epoch'],
  steps: [{ theirs: 'agent_steps', unit: 'steps' }],
  eventStep: { unit: 'steps', better: [{ theirs: 'agent_steps', unit: 'steps' }] },
  config,
  wording: log => ({
    names: namesIn(config, {
      as: leaf => `--train.${leaf.replaceAll('_', '-')}`,
      without: ['stepsPerRollout', 'targetKl', 'task'],
    }),
    ...(log.series.has('loss/kl')
      ? { otherwise: { epochs: (value: string) => ({ code: `--train.replay-ratio ${value}` }) } }
      : {}),
    write: flags,
  }),
  refine: puffer3Lag,
  remarks:
    'Version 3 logs the losses of the row before: they are moved back. Version 4 has other names (loss/kl, env/*) and no explained variance.',
};
