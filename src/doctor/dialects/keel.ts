/** Keel's own log: its names are the registry's. */
import { metrics } from '../../metrics/registry.ts';
import type { Dialect, Mapping } from './dialect.ts';

const family = '<name>';

const mappings: readonly Mapping[] = metrics.map(({ id, kl }) => ({
  theirs: id.endsWith(family)
    ? new RegExp(`${id.slice(0, -family.length).replaceAll('/', '\\/')}([^/]+)`)
    : id,
  id: id.replace(family, '$1'),
  ...(kl === undefined
    ? {}
    : { kl: { pair: kl.pair, estimator: kl.estimator, per: kl.per, aggregation: kl.aggregation } }),
}));

export const keel: Dialect = {
  name: 'keel',
  title: 'Keel',
  kind: 'classic',
  kindOf: log => (log.series.has('completion/length') ? 'language-model' : 'classic'),
  signs: [
    { name: 'kl/step', points: 4 },
    { name: 'kl/step_k3', points: 3 },
    { name: 'train/iteration', points: 3 },
    { name: 'guard/scale', points: 4 },
    { name: 'train/epochs_run', points: 3 },
    { name: 'policy/entropy_relative', points: 2 },
    { name: 'value/explained_variance', points: 1 },
    { name: 'episode/return', points: 2 },
  ],
  mappings,
  ignored: [],
  steps: [
    { theirs: 'train/step', unit: 'steps' },
    { theirs: 'train/iteration', unit: 'iterations' },
  ],
  eventStep: { unit: 'steps' },
  config: {
    learningRate: ['learningRate'],
    learningRateSchedule: ['learningRateSchedule'],
    epochs: ['epochs'],
    minibatchSize: ['minibatchSize'],
    stepsPerRollout: ['stepsPerRollout'],
    envs: ['config/envs', 'envs'],
    totalSteps: ['config/steps', 'steps'],
    clipRange: ['clipRange'],
    targetKl: ['targetKl'],
    entropyCoef: ['entropyCoef'],
    valueCoef: ['valueCoef'],
    gamma: ['gamma'],
    maxGradNorm: ['gradientClip'],
    task: ['environment/id', 'environment'],
  },
  wording: log => ({
    names: {
      learningRate: 'learningRate',
      learningRateSchedule: 'learningRateSchedule',
      epochs: 'epochs',
      minibatchSize: 'minibatchSize',
      stepsPerRollout: 'stepsPerRollout',
      envs: 'envs',
      totalSteps: 'steps',
      clipRange: 'clipRange',
      targetKl: 'targetKl',
      entropyCoef: 'entropyCoef',
      valueCoef: 'valueCoef',
      gamma: 'gamma',
      maxGradNorm: 'gradientClip',
    },
    otherwise: {
      rewardScale: () => `keel train ${taskOf(log.setting(['environment/id']))} --set normaliseRewards=true`,
      refCoef: value =>
        `--set reference=frozen --set klRefCoefInitial=${value} --set klRefCoefFinal=${value}`,
    },
    write: pairs =>
      `keel train ${taskOf(log.setting(['environment/id']))} ${pairs.map(([name, value]) => `--set ${name}=${value}`).join(' ')}`,
  }),
  remarks: 'One row an iteration, written after its update; every value is as the registry says.',
};

/** A task's name if it can stand in a command as it is. */
const taskOf = (id: unknown): string =>
  typeof id === 'string' && /^[A-Za-z0-9_./-]{1,80}$/.test(id) ? id : '…';
