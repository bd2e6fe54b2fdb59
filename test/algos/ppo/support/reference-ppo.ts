/**
 * PPO's update as it is documented (src/algos/ppo/settings.ts), in float64 loops with derivatives of its own: what `learn`
 * and `measure` are compared with. It shares with src/ the order of parameters in the flat vector, and nothing else.
 */
import type { PpoConfig } from '../../../../src/algos/ppo/settings.ts';
import { activationFunctions, erf, mlpSize, ReferenceAdam } from '../../../nn/support/reference.ts';
import { Tape, type Term, type Value } from './autodiff.ts';

/** One factor of a policy; sizes are those of its actions. */
export type Part =
  | { kind: 'gaussian'; n: number }
  | { kind: 'categorical'; k: number }
  | { kind: 'multi'; ks: readonly number[] }
  | { kind: 'bernoulli'; n: number };

export interface Shape {
  observationSize: number;
  parts: readonly Part[];
}

export interface ReferenceBatch {
  observations: ArrayLike<number>;
  actions: ArrayLike<number>;
  oldParams: ArrayLike<number>;
  oldLogProbs: ArrayLike<number>;
  oldValues: ArrayLike<number>;
  advantages: ArrayLike<number>;
  returns: ArrayLike<number>;
}

export interface ReferenceKnobs {
  actorRate: number;
  criticRate: number;
  clipRange: number;
  klCoef: number;
  klLimit: number;
  /** Beyond it the policy waits while the value function goes on; Infinity never. */
  guard: number;
  stepsDone: number;
}

export interface Minibatch {
  policyLoss: number;
  valueLoss: number;
  loss: number;
  entropy: number;
  kl: number;
  klRef: number;
  clipFraction: number;
  gradNorm: number;
  gradient: Float64Array;
}

const outputsOf = (part: Part): number => {
  switch (part.kind) {
    case 'gaussian':
    case 'bernoulli':
      return part.n;
    case 'categorical':
      return part.k;
    default:
      return part.ks.reduce((a, b) => a + b, 0);
  }
};
const logStdsOf = (part: Part): number => (part.kind === 'gaussian' ? part.n : 0);
const paramsOfPart = (part: Part): number => outputsOf(part) + logStdsOf(part);
const actionsOfPart = (part: Part): number => {
  switch (part.kind) {
    case 'categorical':
      return 1;
    case 'multi':
      return part.ks.length;
    default:
      return part.n;
  }
};

const total = (shape: Shape, size: (part: Part) => number): number =>
  shape.parts.reduce((sum, part) => sum + size(part), 0);

/** Where things lie in the flat vector. */
export function placesOf(shape: Shape, config: Pick<PpoConfig, 'hidden'>) {
  const actorSizes = [shape.observationSize, ...config.hidden, total(shape, outputsOf)];
  const criticSizes = [shape.observationSize, ...config.hidden, 1];
  const logStdAt = mlpSize(actorSizes);
  const logStds = total(shape, logStdsOf);
  const criticAt = logStdAt + logStds;
  return {
    actorSizes,
    criticSizes,
    logStdAt,
    logStds,
    criticAt,
    size: criticAt + mlpSize(criticSizes),
    paramSize: total(shape, paramsOfPart),
    actionSize: total(shape, actionsOfPart),
  };
}

const slopes = {
  tanh: (_: number, y: number): number => 1 - y * y,
  relu: (x: number): number => (x > 0 ? 1 : 0),
  gelu: (x: number): number =>
    0.5 * (1 + erf(x / Math.SQRT2)) + (x * Math.exp(-0.5 * x * x)) / Math.sqrt(2 * Math.PI),
};

function network(
  tape: Tape,
  flat: readonly Term[],
  offset: number,
  sizes: readonly number[],
  activation: PpoConfig['activation'],
  input: readonly Term[],
): Term[] {
  let at = offset;
  let layer = [...input];
  for (let i = 1; i < sizes.length; i++) {
    const [inputs, outputs] = [sizes[i - 1], sizes[i]];
    const start = at;
    const next = Array.from({ length: outputs }, (_, o) => {
      const weights = Array.from({ length: inputs }, (_, k) => flat[start + k * outputs + o]);
      const sum = tape.dot(weights, layer, flat[start + inputs * outputs + o]);
      return i < sizes.length - 1 ? tape.map(sum, activationFunctions[activation], slopes[activation]) : sum;
    });
    layer = next;
    at = start + (inputs + 1) * outputs;
  }
  return layer;
}

/** A sample's distribution parameters, laid out as src/kl documents: a Gaussian's means and then its log-stds. */
function policyOf(
  tape: Tape,
  shape: Shape,
  config: PpoConfig,
  flat: readonly Term[],
  obs: readonly Term[],
): Term[] {
  const { actorSizes, logStdAt } = placesOf(shape, config);
  const outputs = network(tape, flat, 0, actorSizes, config.activation, obs);
  const params: Term[] = [];
  let [at, logStd] = [0, logStdAt];
  for (const part of shape.parts) {
    params.push(...outputs.slice(at, at + outputsOf(part)));
    at += outputsOf(part);
    // Held by value alone: a derivative that ends at the bounds would keep it there for good.
    const held = (x: number): number => Math.min(config.logStdMax, Math.max(config.logStdMin, x));
    for (let i = 0; i < logStdsOf(part); i++) params.push(tape.map(flat[logStd++], held, () => 1));
  }
  return params;
}

const logSoftmax = (tape: Tape, logits: readonly Term[]): Value[] => {
  const top = Math.max(...logits.map(l => (typeof l === 'number' ? l : l.value)));
  const logSum = tape.log(tape.sum(logits.map(l => tape.exp(tape.sub(l, top)))));
  return logits.map(l => tape.sub(tape.sub(l, top), logSum));
};
const softplus = (tape: Tape, x: Term): Value =>
  tape.map(
    x,
    v => Math.max(v, 0) + Math.log1p(Math.exp(-Math.abs(v))),
    v => 1 / (1 + Math.exp(-v)),
  );
const negative = (tape: Tape, x: Term): Value => tape.mul(x, -1);

/** Logits in groups, as a categorical and several of them have them. */
function groupsOf(part: Part, params: readonly Term[]): Term[][] {
  const ks = part.kind === 'categorical' ? [part.k] : part.kind === 'multi' ? part.ks : [];
  let at = 0;
  return ks.map(k => {
    at += k;
    return params.slice(at - k, at);
  });
}

function logProbOfPart(tape: Tape, part: Part, p: readonly Term[], action: readonly number[]): Value {
  switch (part.kind) {
    case 'gaussian':
      return tape.sum(
        action.map((a, i) => {
          const z = tape.div(tape.sub(a, p[i]), tape.exp(p[part.n + i]));
          const half = tape.mul(tape.square(z), -0.5);
          return tape.sub(tape.sub(half, p[part.n + i]), 0.5 * Math.log(2 * Math.PI));
        }),
      );
    case 'bernoulli':
      return tape.sum(
        action.map((a, i) => negative(tape, softplus(tape, a === 1 ? negative(tape, p[i]) : p[i]))),
      );
    default:
      return tape.sum(groupsOf(part, p).map((logits, g) => logSoftmax(tape, logits)[action[g]]));
  }
}

function entropyOfPart(tape: Tape, part: Part, p: readonly Term[]): Value {
  switch (part.kind) {
    case 'gaussian':
      return tape.sum([...p.slice(part.n), part.n * (0.5 + 0.5 * Math.log(2 * Math.PI))]);
    case 'bernoulli':
      return tape.sum(
        p.flatMap(logit => {
          const [on, off] = [softplus(tape, negative(tape, logit)), softplus(tape, logit)];
          return [tape.mul(tape.exp(negative(tape, on)), on), tape.mul(tape.exp(negative(tape, off)), off)];
        }),
      );
    default:
      return tape.sum(
        groupsOf(part, p).flatMap(logits =>
          logSoftmax(tape, logits).map(l => negative(tape, tape.mul(tape.exp(l), l))),
        ),
      );
  }
}

function klOfPart(tape: Tape, part: Part, p: readonly Term[], q: readonly Term[]): Value {
  switch (part.kind) {
    case 'gaussian': {
      const { n } = part;
      return tape.sum(
        Array.from({ length: n }, (_, i) => {
          const apart = tape.square(tape.div(tape.sub(p[i], q[i]), tape.exp(q[n + i])));
          const d = tape.sub(p[n + i], q[n + i]);
          const ratio = tape.exp(tape.mul(d, 2));
          return tape.mul(tape.sub(tape.add(tape.sub(ratio, tape.mul(d, 2)), apart), 1), 0.5);
        }),
      );
    }
    case 'bernoulli':
      return tape.sum(
        p.flatMap((logit, i) =>
          [1, -1].map(sign => {
            const a = negative(tape, softplus(tape, tape.mul(logit, -sign)));
            const b = negative(tape, softplus(tape, tape.mul(q[i], -sign)));
            return tape.mul(tape.exp(a), tape.sub(a, b));
          }),
        ),
      );
    default: {
      const others = groupsOf(part, q);
      return tape.sum(
        groupsOf(part, p).flatMap((logits, g) => {
          const [a, b] = [logSoftmax(tape, logits), logSoftmax(tape, others[g])];
          return a.map((l, i) => tape.mul(tape.exp(l), tape.sub(l, b[i])));
        }),
      );
    }
  }
}

/** The sum over parts of a function of their slices of parameters (and actions). */
function overParts(
  tape: Tape,
  { parts }: Shape,
  f: (part: Part, paramsAt: number, actionsAt: number) => Value,
): Value {
  let [paramsAt, actionsAt] = [0, 0];
  return tape.sum(
    parts.map(part => {
      const out = f(part, paramsAt, actionsAt);
      paramsAt += paramsOfPart(part);
      actionsAt += actionsOfPart(part);
      return out;
    }),
  );
}

const rowOf = (values: ArrayLike<number>, size: number, at: number): number[] =>
  Array.from({ length: size }, (_, i) => values[at * size + i]);

export function logProb(tape: Tape, shape: Shape, p: readonly Term[], action: readonly number[]): Value {
  return overParts(tape, shape, (part, at, actionAt) =>
    logProbOfPart(
      tape,
      part,
      p.slice(at, at + paramsOfPart(part)),
      action.slice(actionAt, actionAt + actionsOfPart(part)),
    ),
  );
}
export function entropy(tape: Tape, shape: Shape, p: readonly Term[]): Value {
  return overParts(tape, shape, (part, at) =>
    entropyOfPart(tape, part, p.slice(at, at + paramsOfPart(part))),
  );
}
export function kl(tape: Tape, shape: Shape, p: readonly Term[], q: readonly Term[]): Value {
  return overParts(tape, shape, (part, at) => {
    const end = at + paramsOfPart(part);
    return klOfPart(tape, part, p.slice(at, end), q.slice(at, end));
  });
}

/** The policy's distribution parameters for one observation, as numbers. */
export function distributionAt(
  shape: Shape,
  config: PpoConfig,
  flat: ArrayLike<number>,
  obs: readonly number[],
): number[] {
  return policyOf(new Tape(), shape, config, Array.from(flat), obs).map(p =>
    typeof p === 'number' ? p : p.value,
  );
}

export function valueAt(
  shape: Shape,
  config: PpoConfig,
  flat: ArrayLike<number>,
  obs: readonly number[],
): number {
  const { criticSizes, criticAt } = placesOf(shape, config);
  const [v] = network(new Tape(), Array.from(flat), criticAt, criticSizes, config.activation, obs);
  return typeof v === 'number' ? v : v.value;
}

/** What a gradient step of this minibatch (rows of the batch) sees and does, at these parameters. */
export function lookAt(
  shape: Shape,
  config: PpoConfig,
  batch: ReferenceBatch,
  rows: readonly number[],
  flat: ArrayLike<number>,
  knobs: ReferenceKnobs & { step: number },
  reference?: ArrayLike<number>,
): Minibatch {
  const tape = new Tape();
  const places = placesOf(shape, config);
  const weights = Array.from(flat, p => tape.variable(p));
  const n = rows.length;
  const mean = (terms: readonly Term[]): Value => tape.mul(tape.sum(terms), 1 / n);

  const raw = rows.map(r => batch.advantages[r]);
  const centre = raw.reduce((a, b) => a + b, 0) / n;
  const std = Math.sqrt(raw.reduce((sum, a) => sum + (a - centre) ** 2, 0) / n);
  const divisor = std < 0.01 ? 1 : std + 1e-8;
  const advantages = config.normaliseAdvantages ? raw.map(a => (a - centre) / divisor) : raw;

  const [gains, valueLosses, entropies, kls, refs]: Value[][] = [[], [], [], [], []];
  let outside = 0;
  rows.forEach((r, i) => {
    const obs = rowOf(batch.observations, shape.observationSize, r);
    const policy = policyOf(tape, shape, config, weights, obs);
    const [value] = network(tape, weights, places.criticAt, places.criticSizes, config.activation, obs);
    const now = logProb(tape, shape, policy, rowOf(batch.actions, places.actionSize, r));
    const ratio = tape.exp(tape.clamp(tape.sub(now, batch.oldLogProbs[r]), -20, 20));
    const held = Math.min(1 + knobs.clipRange, Math.max(1 - knobs.clipRange, ratio.value));
    if (held !== ratio.value) outside++;
    const [free, cut] = [tape.mul(ratio, advantages[i]), held * advantages[i]];
    gains.push(free.value <= cut ? free : tape.add(cut, 0));

    const error = tape.sub(value, batch.returns[r]);
    let valueLoss = tape.square(error);
    if (config.valueClip !== null) {
      const moved = tape.clamp(tape.sub(value, batch.oldValues[r]), -config.valueClip, config.valueClip);
      const clipped = tape.square(tape.sub(tape.add(moved, batch.oldValues[r]), batch.returns[r]));
      if (clipped.value > valueLoss.value) valueLoss = clipped;
    }
    if (config.valueHuber) {
      const smooth = tape.map(
        error,
        e => (Math.abs(e) < 1 ? 0.5 * e * e : Math.abs(e) - 0.5),
        e => (Math.abs(e) < 1 ? e : Math.sign(e)),
      );
      valueLoss = tape.mul(tape.add(valueLoss, smooth), 0.5);
    }
    valueLosses.push(valueLoss);
    entropies.push(entropy(tape, shape, policy));
    kls.push(kl(tape, shape, rowOf(batch.oldParams, places.paramSize, r), policy));
    if (reference) refs.push(kl(tape, shape, policy, distributionAt(shape, config, reference, obs)));
  });

  const policyLoss = tape.mul(mean(gains), -1);
  const valueLoss = mean(valueLosses);
  const meanEntropy = mean(entropies);
  const meanKl = mean(kls);
  const meanRef = reference ? mean(refs) : undefined;
  let loss = tape.add(policyLoss, tape.mul(valueLoss, config.valueCoef));
  const warm =
    config.entropyWarmupSteps > 0
      ? config.entropyWarmupCoef * Math.max(0, 1 - knobs.step / config.entropyWarmupSteps)
      : 0;
  loss = tape.sub(loss, tape.mul(meanEntropy, config.entropyCoef + warm));
  if (config.entropyMin !== null && meanEntropy.value < config.entropyMin)
    loss = tape.add(loss, tape.mul(tape.sub(config.entropyMin, meanEntropy), config.entropyMinCoef));
  loss = tape.add(loss, tape.mul(meanKl, knobs.klCoef));
  if (meanRef) {
    const done = config.klRefDecaySteps === 0 ? 1 : Math.min(1, knobs.step / config.klRefDecaySteps);
    const weight = config.klRefCoefInitial + (config.klRefCoefFinal - config.klRefCoefInitial) * done;
    loss = tape.add(loss, tape.mul(meanRef, weight));
  }
  tape.backward(loss);
  const gradient = Float64Array.from(weights, p => p.derivative);
  return {
    policyLoss: policyLoss.value,
    valueLoss: valueLoss.value,
    loss: loss.value,
    entropy: meanEntropy.value,
    kl: meanKl.value,
    klRef: meanRef?.value ?? Number.NaN,
    clipFraction: outside / n,
    gradNorm: Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0)),
    gradient,
  };
}

export interface Course {
  minibatches: Minibatch[];
  weights: Float64Array;
  m: Float64Array;
  v: Float64Array;
  stopped: boolean;
}

/** All minibatches of an update in the order given, or as many as the KL allows. */
export function learnReference(
  shape: Shape,
  config: PpoConfig,
  batch: ReferenceBatch,
  order: readonly (readonly number[])[],
  minibatchesPerEpoch: number,
  start: { weights: ArrayLike<number>; m: ArrayLike<number>; v: ArrayLike<number> },
  knobs: ReferenceKnobs,
  reference?: ArrayLike<number>,
): Course {
  const { criticAt } = placesOf(shape, config);
  const optimiser = new ReferenceAdam(
    start.weights,
    { epsilon: config.adamEpsilon },
    { m: start.m, v: start.v, t: knobs.stepsDone },
  );
  const criticRate = config.criticLearningRate === null ? knobs.actorRate : knobs.criticRate;
  const minibatches: Minibatch[] = [];
  let [stopped, klSum] = [false, 0];
  for (let i = 0; i < order.length && !stopped; i++) {
    const step = { ...knobs, step: knobs.stepsDone + i };
    const seen = lookAt(shape, config, batch, order[i], optimiser.weights, step, reference);
    minibatches.push(seen);
    if (config.targetKlPer === 'minibatch' && seen.kl > knobs.klLimit) {
      stopped = true;
      break;
    }
    // Each network by its own norm.
    const scaleOf = (part: Float64Array): number => {
      const norm = Math.sqrt(part.reduce((sum, g) => sum + g * g, 0));
      return config.gradientClip === null ? 1 : Math.min(1, config.gradientClip / norm);
    };
    const [actorScale, criticScale] = [
      scaleOf(seen.gradient.subarray(0, criticAt)),
      scaleOf(seen.gradient.subarray(criticAt)),
    ];
    const actorRate = seen.kl > knobs.guard ? 0 : knobs.actorRate;
    optimiser.step(
      seen.gradient.map((g, k) => g * (k >= criticAt ? criticScale : actorScale)),
      optimiser.weights.map((_, k) => (k >= criticAt ? criticRate : actorRate)),
    );
    klSum += seen.kl;
    if ((i + 1) % minibatchesPerEpoch === 0) {
      if (config.targetKlPer === 'epoch' && klSum / minibatchesPerEpoch > knobs.klLimit) stopped = true;
      klSum = 0;
    }
  }
  return { minibatches, weights: optimiser.weights, m: optimiser.m, v: optimiser.v, stopped };
}
