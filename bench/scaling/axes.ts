/** What is varied, at which points, what is measured there, and the shapes of the laws that it may follow. */
import { availableParallelism } from 'node:os';
import { constant, linear, quadratic, type Term } from './law.ts';
import { type LogKind, logPoint } from './log-point.ts';
import { pagePoint } from './page-point.ts';
import { type TrainPoint, trainPoint } from './train-point.ts';

export type Figures = Readonly<Record<string, number>>;

/** One of the figures of a point. */
export interface Quantity {
  readonly key: string;
  readonly name: string;
  readonly unit: string;
  /** What a law of it may be made of; without them it has none. */
  readonly terms?: readonly Term[];
}

export interface Axis {
  readonly name: string;
  readonly title: string;
  /** How it is measured: the settings that stay the same. */
  readonly how: string;
  /** What n counts. */
  readonly counts: string;
  readonly ns: readonly number[];
  readonly quickNs: readonly number[];
  /** What is measured at each n. */
  readonly variants: readonly string[];
  readonly quantities: readonly Quantity[];
  /** Whether n may be 0, so that its plots cannot be logarithmic. */
  readonly fromZero?: boolean;
  measure(built: string, variant: string, n: number): Promise<Figures>;
}

const affine = [constant, linear];
const upToSquare = [constant, linear, quadratic];

const stepsPerSecond: Quantity = { key: 'stepsPerSecond', name: 'steps/s', unit: '/s' };
const peak = (terms: readonly Term[]): Quantity => ({
  key: 'peakMegabytes',
  name: 'memory',
  unit: 'MB',
  terms,
});
const vectorStep = (terms: readonly Term[]): Quantity => ({
  key: 'vectorStepMicroseconds',
  name: 'a step of all',
  unit: 'µs',
  terms,
});
const minibatch = (terms: readonly Term[]): Quantity => ({
  key: 'minibatchMicroseconds',
  name: 'a minibatch',
  unit: 'µs',
  terms,
});

const training = async (built: string, point: TrainPoint): Promise<Figures> => ({
  ...(await trainPoint(built, point)),
});

const envs: Axis = {
  name: 'envs',
  title: 'Environments',
  how: '8,192 samples a rollout however many environments they come from, 4 epochs in minibatches of 512, 64-64',
  counts: 'environments',
  ns: [1, 4, 16, 64, 256, 1024],
  quickNs: [1, 32, 1024],
  variants: ['CartPole-v1', 'Pendulum-v1'],
  quantities: [stepsPerSecond, vectorStep(affine), peak(affine)],
  measure: (built, env, n) =>
    training(built, {
      env,
      config: { envs: n, stepsPerRollout: 8192 / n, minibatchSize: 512, epochs: 4 },
    }),
};

const rollout: Axis = {
  name: 'rollout',
  title: 'Samples a rollout',
  how: 'CartPole, 64 environments, one epoch in minibatches of 1,024, 64-64',
  counts: 'samples',
  ns: [2048, 8192, 32_768, 131_072],
  quickNs: [2048, 8192, 32_768],
  variants: ['CartPole-v1'],
  quantities: [
    stepsPerSecond,
    { key: 'iterationMilliseconds', name: 'an iteration', unit: 'ms', terms: affine },
    peak(affine),
  ],
  measure: (built, env, n) =>
    training(built, {
      env,
      config: { envs: 64, stepsPerRollout: n / 64, minibatchSize: 1024, epochs: 1 },
    }),
};

const width: Axis = {
  name: 'width',
  title: 'Width of networks',
  how: 'CartPole, 8 environments x 256 steps, 4 epochs in minibatches of 256, two hidden layers of n each',
  counts: 'units a layer',
  ns: [16, 32, 64, 128, 256, 512],
  quickNs: [16, 32, 64, 128],
  variants: ['CartPole-v1'],
  quantities: [stepsPerSecond, minibatch(upToSquare), vectorStep(upToSquare), peak(upToSquare)],
  measure: (built, env, n) =>
    training(built, {
      env,
      config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 4, hidden: `[${n},${n}]` },
    }),
};

const batch: Axis = {
  name: 'minibatch',
  title: 'Minibatch size',
  how: 'CartPole, 8 environments x 256 steps, 10 epochs, 64-64',
  counts: 'samples a minibatch',
  ns: [32, 64, 128, 256, 512, 1024, 2048],
  quickNs: [64, 256, 1024],
  variants: ['CartPole-v1'],
  quantities: [stepsPerSecond, minibatch(affine), peak(affine)],
  measure: (built, env, n) =>
    training(built, {
      env,
      config: { envs: 8, stepsPerRollout: 256, minibatchSize: n, epochs: 10 },
    }),
};

/** Threads that can step at once: without workers it is the main one, and there are no more than cores. */
const perThread: Term = {
  name: '1/t',
  at: n => 1 / Math.max(1, Math.min(n, availableParallelism())),
};

const workers: Axis = {
  name: 'workers',
  title: 'Worker threads',
  how: `HalfCheetah, 16 environments x 128 steps, 10 epochs in minibatches of 128, 128-128; t is the threads that step at once: n, at least 1, at most the machine's ${availableParallelism()} cores`,
  counts: 'workers',
  ns: [0, 1, 2, 4],
  quickNs: [0, 1, 2],
  variants: ['HalfCheetah-v5'],
  quantities: [
    stepsPerSecond,
    { key: 'stepMicroseconds', name: 'a step', unit: 'µs', terms: [constant, perThread] },
    peak(affine),
  ],
  fromZero: true,
  measure: (built, env, n) =>
    training(built, {
      env,
      config: {
        ...{ envs: 16, stepsPerRollout: 128, minibatchSize: 128, epochs: 10 },
        ...{ hidden: '[128,128]', workers: n },
      },
    }),
};

const rows: Axis = {
  name: 'rows',
  title: 'Rows of a log',
  how: '`keel doctor` on one log of six columns, from the start of the process to its end',
  counts: 'rows',
  ns: [1000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
  quickNs: [1000, 10_000, 100_000],
  variants: ['csv', 'jsonl'],
  quantities: [
    { key: 'logMegabytes', name: 'log', unit: 'MB' },
    { key: 'seconds', name: 'time', unit: 's', terms: affine },
    peak(affine),
  ],
  measure: async (built, kind, n) => ({ ...(await logPoint(built, kind as LogKind, n)) }),
};

const runs: Axis = {
  name: 'runs',
  title: 'Runs on the page',
  how: "`keel dash` on finished runs of 200 rows, every fifth another trainer's; ready is from the start of the process until all are read",
  counts: 'runs',
  ns: [1, 10, 50, 100, 200, 500],
  quickNs: [1, 10, 50],
  variants: ['keel dash'],
  quantities: [
    { key: 'readySeconds', name: 'ready', unit: 's', terms: affine },
    { key: 'listMilliseconds', name: 'the list of all', unit: 'ms', terms: affine },
    peak(affine),
  ],
  measure: async (built, _, n) => ({ ...(await pagePoint(built, n)) }),
};

export const axes: readonly Axis[] = [envs, rollout, width, batch, workers, rows, runs];
