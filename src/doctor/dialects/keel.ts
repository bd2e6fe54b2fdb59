/** Keel's own log: its names are the registry's. */
import { metrics } from '../../metrics/registry.ts';
import type { Dialect, Log, Mapping, WordingSpec } from './dialect.ts';

const family = '<name>';

const isText = (log: Log): boolean => log.series.has('completion/length');

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
  kindOf: log => (isText(log) ? 'language-model' : 'classic'),
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
    clipRange: ['clipRange', 'clipLow'],
    targetKl: ['targetKl'],
    entropyCoef: ['entropyCoef'],
    valueCoef: ['valueCoef'],
    gamma: ['gamma'],
    maxGradNorm: ['gradientClip'],
    refCoef: ['klRefCoef'],
    groupSize: ['groupSize'],
    temperature: ['temperature'],
    maxCompletionLength: ['maxNewTokens'],
    task: ['environment/id', 'environment'],
  },
  wording: log => (isText(log) ? textWording(log) : classicWording(log)),
  remarks: 'One row an iteration, written after its update; every value is as the registry says.',
};

/** A task's name if it can stand in a command as it is. */
const taskOf = (id: unknown): string =>
  typeof id === 'string' && /^[A-Za-z0-9_./-]{1,80}$/.test(id) ? id : '…';

const sharedNames = {
  learningRate: 'learningRate',
  learningRateSchedule: 'learningRateSchedule',
  epochs: 'epochs',
  minibatchSize: 'minibatchSize',
  totalSteps: 'steps',
  entropyCoef: 'entropyCoef',
  maxGradNorm: 'gradientClip',
};

const command =
  (log: Log): WordingSpec['write'] =>
  pairs =>
    `keel train ${taskOf(log.setting(['environment/id']))} ${pairs.map(([name, value]) => `--set ${name}=${value}`).join(' ')}`;

const classicWording = (log: Log): WordingSpec => ({
  names: {
    ...sharedNames,
    stepsPerRollout: 'stepsPerRollout',
    envs: 'envs',
    clipRange: 'clipRange',
    targetKl: 'targetKl',
    valueCoef: 'valueCoef',
    gamma: 'gamma',
  },
  otherwise: {
    rewardScale: () => `keel train ${taskOf(log.setting(['environment/id']))} --set normaliseRewards=true`,
    refCoef: value => `--set reference=frozen --set klRefCoefInitial=${value} --set klRefCoefFinal=${value}`,
  },
  write: command(log),
});

/** GRPO: docs/grpo.md. What bounds an update there is the guard. */
const textWording = (log: Log): WordingSpec => ({
  names: {
    ...sharedNames,
    clipRange: 'clipLow',
    clipRangeHigh: 'clipHigh',
    targetKl: 'guard',
    refCoef: 'klRefCoef',
    groupSize: 'groupSize',
    temperature: 'temperature',
    maxCompletionLength: 'maxNewTokens',
  },
  write: command(log),
});
