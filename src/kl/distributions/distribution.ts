import type { Tensor } from '../../engine/graph.ts';
import type { Rng } from '../../random/rng.ts';

/** A row of numbers to read: an array, a typed array or a `subarray` of one. */
export type Vector = ArrayLike<number>;

/** A row of numbers to write. */
export type MutableVector = number[] | Float32Array | Float64Array;

/** The families there are; a composite has parts of the others. */
export type DistributionKind = 'gaussian' | 'categorical' | 'multi-categorical' | 'bernoulli' | 'composite';

/**
 * A family of distributions over actions: what a policy's output numbers mean.
 *
 * Everything exists twice. The plain functions work in float64 on one sample, for tests, tools and reading logs; the
 * graph functions build the same mathematics for a batch, to be differentiated and compiled. One contract suite holds
 * them together (test/kl).
 *
 * Numbers that are not finite come out as NaN, never as a plausible value. A sampled category cannot be NaN, so the plain
 * `sample` throws instead. All logarithms are natural: entropies and KLs are in nats, summed over an action's parts.
 */
export interface Distribution {
  readonly kind: DistributionKind;
  /** As one would write it, for messages: `gaussian(3)`. */
  readonly name: string;
  /** Numbers that describe the distribution of one sample; the factory documents their layout. */
  readonly paramSize: number;
  /** Numbers in one action; categories are stored as indices. */
  readonly actionSize: number;
  /** Numbers of noise that sampling one action consumes. */
  readonly noiseSize: number;
  /** The largest entropy of the family in nats, Infinity where there is none: relative entropy is H / maxEntropy. */
  readonly maxEntropy: number;

  /** Fills one or more rows of `noiseSize` numbers. Sampling is a function of parameters and noise, so it can be replayed. */
  fillNoise(rng: Rng, out: Float32Array | Float64Array): void;
  /** Writes the action that this noise selects. */
  sample(params: Vector, noise: Vector, out: MutableVector): void;
  /** Writes the most likely action. */
  mode(params: Vector, out: MutableVector): void;
  /** Logarithm of the action's probability, or density. */
  logProb(params: Vector, action: Vector): number;
  entropy(params: Vector): number;
  /** Exact KL(p ‖ q): what coding samples of p with q wastes. Never negative, and 0 for equal parameters. */
  kl(p: Vector, q: Vector): number;

  /** The same as graph nodes, on batches. */
  readonly graph: DistributionGraph;
}

/** {@link Distribution}'s functions on a batch of B samples; every result has two axes, so that it broadcasts. */
export interface DistributionGraph {
  /** (B, paramSize), (B, noiseSize) -> (B, actionSize) */
  sample(params: Tensor, noise: Tensor): Tensor;
  /** (B, paramSize) -> (B, actionSize) */
  mode(params: Tensor): Tensor;
  /** (B, paramSize), (B, actionSize) -> (B, 1) */
  logProb(params: Tensor, action: Tensor): Tensor;
  /** (B, paramSize) -> (B, 1) */
  entropy(params: Tensor): Tensor;
  /** (B, paramSize), (B, paramSize) -> (B, 1) */
  kl(p: Tensor, q: Tensor): Tensor;
}
