/**
 * One categorical variable whose `k` logits lie at `at` in a row: shared by `categorical` and `multiCategorical`.
 * Every function subtracts the largest logit first, so logits of any finite size are safe.
 */
import type { Vector } from './distribution.ts';
import { bregmanTerm } from './numeric.ts';

/** Index (from 0) of the largest logit, the first at a tie. */
export function topIndex(logits: Vector, at: number, k: number): number {
  let top = 0;
  for (let i = 1; i < k; i++) if (logits[at + i] > logits[at + top]) top = i;
  return top;
}

/** Sum of exp(logit - largest): at least 1, and NaN where a logit is. */
function sumExp(logits: Vector, at: number, k: number, largest: number): number {
  let sum = 0;
  for (let i = 0; i < k; i++) sum += Math.exp(logits[at + i] - largest);
  return sum;
}

export function logProbOf(logits: Vector, at: number, k: number, index: number): number {
  const largest = logits[at + topIndex(logits, at, k)];
  return logits[at + index] - largest - Math.log(sumExp(logits, at, k, largest));
}

export function entropyOf(logits: Vector, at: number, k: number): number {
  const largest = logits[at + topIndex(logits, at, k)];
  const logSum = Math.log(sumExp(logits, at, k, largest));
  let entropy = 0;
  for (let i = 0; i < k; i++) {
    const logP = logits[at + i] - largest - logSum;
    entropy -= Math.exp(logP) * logP;
  }
  return entropy;
}

export function klOf(p: Vector, q: Vector, at: number, k: number): number {
  const topP = topIndex(p, at, k);
  const largestP = p[at + topP];
  const largestQ = q[at + topIndex(q, at, k)];
  const sumP = sumExp(p, at, k, largestP);
  const sumQ = sumExp(q, at, k, largestQ);
  const logSumP = Math.log(sumP);
  const logSumQ = Math.log(sumQ);

  // Near p = q, log q - log p must not come from two log-softmaxes, whose rounding would exceed it. With
  // d' = (q's logit - p's), taken relative to p's mode, the difference of the normalisers is log(1 + sum p (e^d' - 1)).
  const shift = q[at + topP] - largestP;
  let excess = 0;
  for (let i = 0; i < k; i++) {
    excess += Math.exp(p[at + i] - largestP) * Math.expm1(q[at + i] - p[at + i] - shift);
  }
  excess /= sumP;
  const near = Math.abs(excess) < 0.5; // false where e^d' overflowed
  const normaliser = Math.log1p(excess);

  let kl = 0;
  for (let i = 0; i < k; i++) {
    const logP = p[at + i] - largestP - logSumP;
    const logQ = q[at + i] - largestQ - logSumQ;
    const d = near ? q[at + i] - p[at + i] - shift - normaliser : logQ - logP;
    kl += bregmanTerm(Math.exp(logP), Math.exp(logQ), d);
  }
  return kl;
}

/**
 * The first index whose cumulative probability exceeds `u`: the number of cumulative probabilities <= u. Never an index of
 * probability 0.
 */
export function sampleOf(name: string, logits: Vector, at: number, k: number, u: number): number {
  const largest = logits[at + topIndex(logits, at, k)];
  const sum = sumExp(logits, at, k, largest);
  if (!(sum < Number.POSITIVE_INFINITY && u >= 0)) {
    throw new RangeError(
      `${name}: cannot sample from logits ${listOf(logits, at, k)} with noise ${u}: both must be finite; look for NaN upstream`,
    );
  }
  const target = u * sum;
  let cumulative = 0;
  let index = 0;
  for (let i = 0; i < k; i++) {
    const weight = Math.exp(logits[at + i] - largest);
    if (weight === 0) continue;
    index = i; // the last possible one, should `u` be 1
    cumulative += weight;
    if (cumulative > target) break;
  }
  return index;
}

/** Fails unless the number is one of the k categories. */
export function checkCategory(name: string, action: number, k: number): void {
  if (!(action >= 0 && action < k && Number.isInteger(action))) {
    throw new RangeError(`${name}: action ${action} is not a category in 0..${k - 1}: pass its index`);
  }
}

function listOf(logits: Vector, at: number, k: number): string {
  const shown = Array.from({ length: Math.min(k, 6) }, (_, i) => logits[at + i]);
  return `[${shown.join(', ')}${k > 6 ? ', ...' : ''}]`;
}
