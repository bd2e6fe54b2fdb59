/** One update outside of a trainer: a policy, a rollout as it would have sampled it, and the two programs. */
import {
  type ActorCritic,
  actorCritic,
  type Head,
} from '../../../../src/algos/agents/networks/actor-critic.ts';
import { distributionOf } from '../../../../src/algos/agents/networks/heads.ts';
import {
  compilePpo,
  type LearnStats,
  learn,
  type MeasureStats,
  measure,
  type PpoBatch,
  type PpoKnobs,
  type PpoPrograms,
} from '../../../../src/algos/ppo/programs.ts';
import { type PpoConfig, ppoSettings } from '../../../../src/algos/ppo/settings.ts';
import type { OptimiserState } from '../../../../src/algos/update/state.ts';
import { bernoulli, categorical, gaussian, multiCategorical } from '../../../../src/kl/index.ts';
import { Rng } from '../../../../src/random/index.ts';
import { distributionAt, type Part, type Shape, valueAt } from './reference-ppo.ts';

export type Settings = Partial<PpoConfig>;

/** Small enough for float64 loops. */
const small: Settings = { hidden: [5, 4], epochs: 2, minibatchSize: 8 };

export const configOf = (settings: Settings = {}): PpoConfig =>
  ppoSettings.schema.parse({ ...small, ...settings });

export const shapes = {
  gaussian: { observationSize: 3, parts: [{ kind: 'gaussian', n: 2 }] },
  categorical: { observationSize: 3, parts: [{ kind: 'categorical', k: 4 }] },
  composite: {
    observationSize: 3,
    parts: [
      { kind: 'gaussian', n: 2 },
      { kind: 'categorical', k: 3 },
    ],
  },
  mixed: {
    observationSize: 2,
    parts: [
      { kind: 'multi', ks: [2, 3] },
      { kind: 'gaussian', n: 1 },
      { kind: 'bernoulli', n: 2 },
      { kind: 'gaussian', n: 2 },
    ],
  },
} as const satisfies Record<string, Shape>;

function headOf(part: Part): Head {
  switch (part.kind) {
    case 'gaussian':
      return { distribution: gaussian(part.n), logStds: part.n };
    case 'categorical':
      return { distribution: categorical(part.k), logStds: 0 };
    case 'multi':
      return { distribution: multiCategorical(part.ks), logStds: 0 };
    case 'bernoulli':
      return { distribution: bernoulli(part.n), logStds: 0 };
    default:
      return part satisfies never;
  }
}

export function modelOf(shape: Shape, config: PpoConfig): ActorCritic {
  const heads = shape.parts.map(headOf);
  const { hidden, activation, logStdInitial, logStdMin, logStdMax } = config;
  return actorCritic({
    observationSize: shape.observationSize,
    heads,
    distribution: distributionOf(heads),
    hidden,
    activation,
    logStdInitial,
    logStdMin,
    logStdMax,
  });
}

export interface Task {
  shape: Shape;
  config: PpoConfig;
  model: ActorCritic;
  /** What collected the rollout. */
  old: Float32Array;
  batch: PpoBatch;
  state: OptimiserState;
  /** Rows of each minibatch, in order. */
  order: number[][];
  minibatches: number;
}

export interface TaskOptions {
  samples?: number;
  seed?: number;
  /** How far the parameters are from those that collected: 0 is a fresh update. */
  drift?: number;
  /** Of the advantages. */
  advantageScale?: number;
  returnNoise?: number;
  /** A first and second moment from earlier steps. */
  past?: boolean;
  /** Of the old policy; where the config does not say. */
  logStd?: number;
}

/** A policy that has learnt something, what it sampled, and what the update starts from. */
export function taskOf(shape: Shape, settings: Settings = {}, options: TaskOptions = {}): Task {
  const { samples = 32, seed = 1, drift = 0, advantageScale = 1, returnNoise = 1, past = false } = options;
  const config = configOf(settings);
  const model = modelOf(shape, config);
  const { layout, distribution, observationSize } = model;
  const rng = new Rng(seed);
  const old = layout.initialise(rng);
  const views = layout.views(old);
  const head = `actor.${config.hidden.length}.weight`;
  for (const [name, view] of Object.entries(views)) {
    if (name === head) for (let i = 0; i < view.length; i++) view[i] *= 60;
    else if (name.endsWith('bias')) for (let i = 0; i < view.length; i++) view[i] = 0.1 * rng.normal();
    else if (name === 'actor.logStd' && options.logStd !== undefined) view.fill(options.logStd);
    else if (name === 'actor.logStd') for (let i = 0; i < view.length; i++) view[i] += -0.3 + 0.2 * i;
  }
  const { paramSize, actionSize, noiseSize } = distribution;
  const batch = {
    observations: new Float32Array(samples * observationSize),
    actions: new Float32Array(samples * actionSize),
    oldParams: new Float32Array(samples * paramSize),
    oldLogProbs: new Float32Array(samples),
    oldValues: new Float32Array(samples),
    advantages: new Float32Array(samples),
    returns: new Float32Array(samples),
  };
  rng.fillNormal(batch.observations);
  const noise = new Float32Array(noiseSize);
  for (let s = 0; s < samples; s++) {
    const obs = Array.from(batch.observations.subarray(s * observationSize, (s + 1) * observationSize));
    const params = batch.oldParams.subarray(s * paramSize, (s + 1) * paramSize);
    params.set(distributionAt(shape, config, old, obs));
    const action = batch.actions.subarray(s * actionSize, (s + 1) * actionSize);
    distribution.fillNoise(rng, noise);
    distribution.sample(params, noise, action);
    batch.oldLogProbs[s] = distribution.logProb(params, action);
    batch.oldValues[s] = valueAt(shape, config, old, obs);
    // Neither centred nor of spread 1, and related to the action, so that there is something to learn.
    batch.advantages[s] = advantageScale * (0.5 + 1.5 * rng.normal() + action[0]);
    batch.returns[s] = batch.oldValues[s] + returnNoise * (0.3 + rng.normal());
  }
  const minibatches = samples / config.minibatchSize;
  const order = Array.from({ length: config.epochs }, () => {
    const rows = Array.from(rng.permutation(samples));
    return Array.from({ length: minibatches }, (_, i) =>
      rows.slice(i * config.minibatchSize, (i + 1) * config.minibatchSize),
    );
  }).flat();
  const moment = (f: () => number): Float32Array =>
    Float32Array.from({ length: layout.size }, () => (past ? f() : 0));
  return {
    shape,
    config,
    model,
    old,
    batch,
    state: {
      weights: old.map(p => p + drift * rng.normal()),
      m: moment(() => 1e-3 * rng.normal()),
      v: moment(() => 1e-5 * (0.1 + rng.uniform())),
    },
    order,
    minibatches,
  };
}

export function knobsOf(config: PpoConfig, changes: Partial<PpoKnobs> = {}): PpoKnobs {
  return {
    actorRate: config.learningRate,
    criticRate: config.criticLearningRate ?? config.learningRate,
    clipRange: config.clipRange,
    klCoef: config.klCoef,
    klLimit: config.targetKl === null ? Number.POSITIVE_INFINITY : config.targetKl * config.targetKlFactor,
    guard: config.guard ?? Number.POSITIVE_INFINITY,
    stepsDone: 0,
    ...changes,
  };
}

const compiled = new Map<string, Promise<PpoPrograms>>();

/** The programs of a task; those of equal tasks are compiled once a file. */
export function programsOf({ shape, config, batch, minibatches, model }: Task): Promise<PpoPrograms> {
  const samples = batch.advantages.length;
  const key = JSON.stringify([shape, config, samples]);
  const known = compiled.get(key) ?? compilePpo(model, config, { samples, minibatches });
  compiled.set(key, known);
  return known;
}

/** For `afterAll`. */
export async function disposePrograms(): Promise<void> {
  for (const programs of compiled.values()) (await programs).dispose();
  compiled.clear();
}

const flatOrder = (order: readonly (readonly number[])[]): Int32Array => Int32Array.from(order.flat());

export interface Updated {
  state: OptimiserState;
  learnt: LearnStats;
  /** After the guard. */
  weights: Float32Array;
  measured: MeasureStats;
}

/** `learn` and then `measure`, as the trainer does. */
export async function update(
  task: Task,
  changes: Partial<PpoKnobs> = {},
  reference?: Float32Array,
): Promise<Updated> {
  const programs = await programsOf(task);
  const knobs = knobsOf(task.config, changes);
  const { state, stats } = learn(programs, task.batch, task.state, flatOrder(task.order), knobs, reference);
  const { weights, stats: measured } = measure(
    programs,
    task.batch,
    task.state.weights,
    state.weights,
    knobs.guard,
  );
  return { state, learnt: stats, weights, measured };
}

/** The part of a flat vector that a name stands for: a parameter, or the group `actor` or `critic`. */
export function part({ model: { layout } }: Pick<Task, 'model'>, flat: Float32Array, name: string): number[] {
  const group = layout.groups.find(g => g.name === name);
  if (group) return Array.from(flat.subarray(group.offset, group.offset + group.size));
  return Array.from(layout.views(flat)[name]);
}

/** The length of the way between two vectors. */
export const distance = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.sqrt(Array.from(a).reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0));

/** Equal to the bit; NaN equals itself and 0 is not -0. */
export const sameBits = (a: ArrayLike<number>, b: ArrayLike<number>): boolean =>
  a.length === b.length && Array.from(a).every((x, i) => Object.is(x, b[i]));
