import type { Tensor } from '../../engine/graph.ts';
import { add, cast, exp, lessEqual, mul, neg, sub } from '../../engine/ops/elementwise.ts';
import { takeAlong } from '../../engine/ops/gather.ts';
import { matmul } from '../../engine/ops/matmul.ts';
import { argMax, reduceSum } from '../../engine/ops/reduce.ts';
import { split } from '../../engine/ops/shape.ts';
import { logSoftmax, softmax } from '../../engine/ops/softmax.ts';
import { nonNegative } from '../non-negative.ts';
import { checkBatch, checkCount, checkLength, checkNoiseRows } from './checks.ts';
import type { Distribution } from './distribution.ts';
import { checkCategory, entropyOf, klOf, logProbOf, sampleOf, topIndex } from './logits.ts';

/**
 * A logit that rules a category out. Not -Infinity: 0 * Infinity is NaN in entropy and KL, and their derivatives. -1e9
 * gives a probability of exactly 0, in float32 too, and stays finite everywhere.
 */
export const MASKED_LOGIT = -1e9;

const LAST_AXIS = { axes: [-1], keepDims: true };

/** -sum p log p over the last axis, from log-probabilities. */
export function entropyFromLogProbs(logP: Tensor): Tensor {
  return neg(reduceSum(mul(exp(logP), logP), LAST_AXIS));
}

/**
 * KL over the last axis from log-probabilities, as a sum of Bregman terms q - p + p (log p - log q): each is small where p
 * is near q, so float32 loses less than in p (log p - log q), whose terms cancel.
 */
export function klFromLogProbs(logP: Tensor, logQ: Tensor): Tensor {
  const p = exp(logP);
  const terms = add(sub(exp(logQ), p), mul(p, sub(logP, logQ)));
  return nonNegative(reduceSum(terms, LAST_AXIS));
}

/**
 * One of `k` categories. Parameters: k logits, finite (rule categories out with {@link MASKED_LOGIT}). An action is one
 * number, the index 0..k-1. Noise is one uniform in [0, 1), read through the inverse CDF.
 */
export function categorical(k: number): Distribution {
  checkCount('categorical(k): k', k, 1, 'the number of categories, categorical(2)');
  const name = `categorical(${k})`;

  return {
    kind: 'categorical',
    name,
    paramSize: k,
    actionSize: 1,
    noiseSize: 1,
    maxEntropy: Math.log(k),

    fillNoise(rng, out) {
      checkNoiseRows(name, out, 1);
      rng.fillUniform(out);
    },

    sample(params, noise, out) {
      checkLength(name, 'params', params, k);
      checkLength(name, 'noise', noise, 1);
      checkLength(name, 'out', out, 1);
      out[0] = sampleOf(name, params, 0, k, noise[0]);
    },

    mode(params, out) {
      checkLength(name, 'params', params, k);
      checkLength(name, 'out', out, 1);
      out[0] = topIndex(params, 0, k);
    },

    logProb(params, action) {
      checkLength(name, 'params', params, k);
      checkLength(name, 'action', action, 1);
      checkCategory(name, action[0], k);
      return logProbOf(params, 0, k, action[0]);
    },

    entropy(params) {
      checkLength(name, 'params', params, k);
      return entropyOf(params, 0, k);
    },

    kl(p, q) {
      checkLength(name, 'p', p, k);
      checkLength(name, 'q', q, k);
      return klOf(p, q, 0, k);
    },

    graph: {
      sample(params, noise) {
        checkBatch(name, 'params', params, k);
        checkBatch(name, 'noise', noise, 1, params);
        if (k === 1) return mul(noise, 0); // the only category
        // Cumulative sums by a triangular matrix. Noise is scaled to their last one, which rounding leaves near 1:
        // otherwise noise above it would select a last category of probability 0. That last sum is never counted, so
        // the index ends at k - 1.
        const upper = Float64Array.from({ length: k * k }, (_, i) => (Math.floor(i / k) <= i % k ? 1 : 0));
        const cumulative = matmul(softmax(params), params.node.graph.constant(upper, [k, k]));
        const [sums, total] = split(cumulative, [k - 1, 1], -1) as readonly [Tensor, Tensor];
        return reduceSum(cast(lessEqual(sums, mul(noise, total)), 'float32'), LAST_AXIS);
      },

      mode(params) {
        checkBatch(name, 'params', params, k);
        return cast(argMax(params, -1, { keepDims: true }), 'float32');
      },

      logProb(params, action) {
        checkBatch(name, 'params', params, k);
        checkBatch(name, 'action', action, 1, params);
        return takeAlong(logSoftmax(params), cast(action, 'int64'), -1);
      },

      entropy(params) {
        checkBatch(name, 'params', params, k);
        return entropyFromLogProbs(logSoftmax(params));
      },

      kl(p, q) {
        checkBatch(name, 'p', p, k);
        checkBatch(name, 'q', q, k, p);
        return klFromLogProbs(logSoftmax(p), logSoftmax(q));
      },
    },
  };
}
