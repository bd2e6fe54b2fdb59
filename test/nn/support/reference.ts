/**
 * The textbook in plain float64 loops: what networks and optimisers are compared with. It shares nothing with src/ but
 * the order in which a network's values lie in a flat vector: weight (inputs, outputs) row by row, then bias, by layer.
 */
import { Rng } from '../../../src/random/index.ts';

/** erf by the series whose terms are all positive (Abramowitz & Stegun 7.1.6): no cancellation anywhere. */
export function erf(x: number): number {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 400; n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

export const activationFunctions = {
  tanh: Math.tanh,
  relu: (x: number): number => Math.max(x, 0),
  gelu: (x: number): number => (x / 2) * (1 + erf(x / Math.SQRT2)),
};

/** How many values a network of these sizes has. */
export function mlpSize(sizes: readonly number[]): number {
  let size = 0;
  for (let i = 1; i < sizes.length; i++) size += (sizes[i - 1] + 1) * sizes[i];
  return size;
}

/** One row through a network; `layers` has the outputs of every layer, the input first, the last layer's last. */
export function mlpLayers(
  flat: ArrayLike<number>,
  offset: number,
  sizes: readonly number[],
  activate: (x: number) => number,
  input: ArrayLike<number>,
): number[][] {
  const layers = [Array.from(input)];
  let at = offset;
  for (let i = 1; i < sizes.length; i++) {
    const [inputs, outputs] = [sizes[i - 1], sizes[i]];
    const bias = at + inputs * outputs;
    const out: number[] = [];
    for (let o = 0; o < outputs; o++) {
      let sum = flat[bias + o];
      for (let k = 0; k < inputs; k++) sum += layers[i - 1][k] * flat[at + k * outputs + o];
      out.push(i < sizes.length - 1 ? activate(sum) : sum);
    }
    layers.push(out);
    at = bias + outputs;
  }
  return layers;
}

export interface AdamSettings {
  beta1?: number;
  beta2?: number;
  epsilon?: number;
}

/** Adam as in the paper's algorithm 1, AdamW as in its paper's algorithm 2 (with a schedule multiplier of 1). */
export class ReferenceAdam {
  readonly weights: Float64Array;
  readonly m: Float64Array;
  readonly v: Float64Array;
  /** Steps taken. */
  t: number;
  readonly #settings: Required<AdamSettings>;

  constructor(
    weights: ArrayLike<number>,
    settings: AdamSettings = {},
    past: { m: ArrayLike<number>; v: ArrayLike<number>; t: number } = {
      m: new Float64Array(weights.length),
      v: new Float64Array(weights.length),
      t: 0,
    },
  ) {
    this.weights = Float64Array.from(weights);
    this.m = Float64Array.from(past.m);
    this.v = Float64Array.from(past.v);
    this.t = past.t;
    this.#settings = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, ...settings };
  }

  step(
    gradient: ArrayLike<number>,
    learningRate: number | ArrayLike<number>,
    weightDecay: number | ArrayLike<number> = 0,
  ): void {
    const { beta1, beta2, epsilon } = this.#settings;
    const { weights, m, v } = this;
    const at = (values: number | ArrayLike<number>, i: number): number =>
      typeof values === 'number' ? values : values[i];
    this.t++;
    // 1 - β^t without cancellation: the reference must be the better of the two.
    const left1 = beta1 === 0 ? 1 : -Math.expm1(this.t * Math.log(beta1));
    const left2 = beta2 === 0 ? 1 : -Math.expm1(this.t * Math.log(beta2));
    for (let i = 0; i < weights.length; i++) {
      m[i] = beta1 * m[i] + (1 - beta1) * gradient[i];
      v[i] = beta2 * v[i] + (1 - beta2) * gradient[i] ** 2;
      const direction = m[i] / left1 / (Math.sqrt(v[i] / left2) + epsilon);
      weights[i] -= at(learningRate, i) * (direction + at(weightDecay, i) * weights[i]);
    }
  }
}

/** `count` normal values that float32 holds exactly, so that rounding a feed is no part of the comparison. */
export function normals(seedOrRng: number | Rng, count: number, scale = 1): number[] {
  const rng = typeof seedOrRng === 'number' ? new Rng(seedOrRng) : seedOrRng;
  return Array.from({ length: count }, () => Math.fround(scale * rng.normal()));
}

/** The largest difference, relative to the larger of `scale` and the expected value; short where arrays are long. */
export function largestError(actual: ArrayLike<number>, expected: ArrayLike<number>, scale = 0): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    if (actual[i] === expected[i]) continue;
    const error = Math.abs(actual[i] - expected[i]) / Math.max(scale, Math.abs(expected[i]));
    // NaN is an error, too.
    if (!(error <= largest)) largest = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
  }
  return largest;
}
