/**
 * Estimators of KL(old ‖ new) from samples of old (Schulman 2020, http://joschu.net/blog/kl-approx.html).
 *
 * r = log new(a) - log old(a) is the log-ratio of one sampled action. All three average to the KL, or near it:
 *
 * | | formula | bias | sign |
 * |---|---|---|---|
 * | k1 | -r | none | either: large variance |
 * | k2 | r² / 2 | small while new is near old | never negative |
 * | k3 | e^r - 1 - r | none | never negative |
 *
 * None of them is cut off at 0 after averaging: a negative k1 is a true reading of few samples, and hiding it hides
 * divergence.
 */

import type { Tensor } from '../engine/graph.ts';
import { clip, exp, mul, neg, sub } from '../engine/ops/elementwise.ts';
import { expm1MinusX } from './distributions/numeric.ts';
import { nonNegative } from './non-negative.ts';

/**
 * k3 sees r clamped to ±20 before exp: e^20 is 5e8, while e^89 overflows float32, and a finite value whose derivative has
 * overflowed has killed runs. Beyond the limit k3's derivative is 0; k1 and k2 are not clamped.
 */
export const LOG_RATIO_LIMIT = 20;

/** Estimators of a KL from samples, by Schulman's names. */
export type KlEstimator = 'k1' | 'k2' | 'k3';

/** -r for one sample. */
export function k1(logRatio: number): number {
  return 0 - logRatio; // 0 and not -0 for equal probabilities
}

/** r² / 2 for one sample. */
export function k2(logRatio: number): number {
  return 0.5 * logRatio * logRatio;
}

/** e^r - 1 - r for one sample, r clamped to ±{@link LOG_RATIO_LIMIT}; to full precision near 0. */
export function k3(logRatio: number): number {
  return expm1MinusX(Math.min(Math.max(logRatio, -LOG_RATIO_LIMIT), LOG_RATIO_LIMIT)); // NaN stays NaN
}

/** {@link k1} of a tensor of log-ratios, value by value. */
export function k1Graph(logRatio: Tensor): Tensor {
  return neg(logRatio);
}

/** {@link k2} of a tensor of log-ratios, value by value. */
export function k2Graph(logRatio: Tensor): Tensor {
  return mul(mul(logRatio, logRatio), 0.5);
}

/** {@link k3} of a tensor of log-ratios, value by value. */
export function k3Graph(logRatio: Tensor): Tensor {
  const r = clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
  return nonNegative(sub(sub(exp(r), 1), r));
}

/** Every estimator by name, on one sample and in a graph. */
export const klEstimators: Readonly<
  Record<
    KlEstimator,
    { readonly plain: (logRatio: number) => number; readonly graph: (logRatio: Tensor) => Tensor }
  >
> = {
  k1: { plain: k1, graph: k1Graph },
  k2: { plain: k2, graph: k2Graph },
  k3: { plain: k3, graph: k3Graph },
};

/** The estimate from a batch: the mean over samples of old, given both log-probabilities of each. */
export function estimateKl(
  estimator: KlEstimator,
  logNew: ArrayLike<number>,
  logOld: ArrayLike<number>,
): number {
  const n = logNew.length;
  if (n !== logOld.length) {
    throw new RangeError(
      `estimateKl: ${n} new log-probabilities and ${logOld.length} old ones: pass one of each a sample`,
    );
  }
  if (n === 0) throw new RangeError('estimateKl: 0 samples, at least 1 is needed: a mean of none is NaN');
  const { plain } = klEstimators[estimator];
  let sum = 0;
  for (let i = 0; i < n; i++) sum += plain(logNew[i] - logOld[i]);
  return sum / n;
}
