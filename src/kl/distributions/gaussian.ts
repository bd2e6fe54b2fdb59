import type { Tensor } from '../../engine/graph.ts';
import { add, clip, div, exp, mul, sub } from '../../engine/ops/elementwise.ts';
import { reduceSum } from '../../engine/ops/reduce.ts';
import { split } from '../../engine/ops/shape.ts';
import { nonNegative } from '../non-negative.ts';
import { checkBatch, checkCount, checkLength, checkNoiseRows } from './checks.ts';
import type { Distribution, Vector } from './distribution.ts';
import { expm1MinusX } from './numeric.ts';

/**
 * Every function reads logStd clamped to these bounds: a std of 2e-9 to 5e8. Wide enough to touch no sensible policy,
 * narrow enough that exp(2 (logStdP - logStdQ)) <= e^80 and its derivative are finite in float32.
 */
export const LOG_STD_MIN = -20;
/** See {@link LOG_STD_MIN}. */
export const LOG_STD_MAX = 20;

const LAST_AXIS = { axes: [-1], keepDims: true };
const HALF_LOG_2PI = 0.5 * Math.log(2 * Math.PI);
const HALF_LOG_2 = 0.5 * Math.LN2;

function clampLogStd(logStd: number): number {
  return Math.min(Math.max(logStd, LOG_STD_MIN), LOG_STD_MAX); // NaN stays NaN
}

/**
 * `n` independent normal variables. Parameters: mean 0..n-1, then logStd 0..n-1. An action is n numbers, unbounded: what
 * was sampled is what is scored, and clipping to the environment's bounds happens on the environment's side.
 */
export function gaussian(n: number): Distribution {
  checkCount('gaussian(n): n', n, 1, 'the number of continuous actions, gaussian(2)');
  const name = `gaussian(${n})`;
  const paramSize = 2 * n;

  /** Mean and clamped logStd, each (B, n). The policy concatenates them; the engine then gives its parts back. */
  function parts(params: Tensor): [mean: Tensor, logStd: Tensor] {
    const [mean, logStd] = split(params, [n, n], -1) as readonly [Tensor, Tensor];
    return [mean, clip(logStd, LOG_STD_MIN, LOG_STD_MAX)];
  }

  return {
    kind: 'gaussian',
    name,
    paramSize,
    actionSize: n,
    noiseSize: n,
    maxEntropy: Number.POSITIVE_INFINITY,

    fillNoise(rng, out) {
      checkNoiseRows(name, out, n);
      rng.fillNormal(out);
    },

    sample(params, noise, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'noise', noise, n);
      checkLength(name, 'out', out, n);
      for (let i = 0; i < n; i++) out[i] = params[i] + Math.exp(clampLogStd(params[n + i])) * noise[i];
    },

    mode(params, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'out', out, n);
      for (let i = 0; i < n; i++) out[i] = params[i];
    },

    logProb(params, action) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'action', action, n);
      let sum = 0;
      for (let i = 0; i < n; i++) {
        const logStd = clampLogStd(params[n + i]);
        const z = (action[i] - params[i]) / Math.exp(logStd);
        sum += 0.5 * z * z + logStd;
      }
      return -sum - n * HALF_LOG_2PI;
    },

    entropy(params) {
      checkLength(name, 'params', params, paramSize);
      let sum = n * (0.5 + HALF_LOG_2PI);
      for (let i = 0; i < n; i++) sum += clampLogStd(params[n + i]);
      return sum;
    },

    kl(p: Vector, q: Vector) {
      checkLength(name, 'p', p, paramSize);
      checkLength(name, 'q', q, paramSize);
      let kl = 0;
      for (let i = 0; i < n; i++) {
        const logStdQ = clampLogStd(q[n + i]);
        const d = clampLogStd(p[n + i]) - logStdQ;
        const z = (p[i] - q[i]) / Math.exp(logStdQ);
        // Two squares in disguise: neither the widths' part nor the means' can be negative.
        kl += 0.5 * (expm1MinusX(2 * d) + z * z);
      }
      return kl;
    },

    graph: {
      sample(params, noise) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'noise', noise, n, params);
        const [mean, logStd] = parts(params);
        return add(mean, mul(exp(logStd), noise));
      },

      mode(params) {
        checkBatch(name, 'params', params, paramSize);
        return (split(params, [n, n], -1) as readonly [Tensor, Tensor])[0];
      },

      logProb(params, action) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'action', action, n, params);
        const [mean, logStd] = parts(params);
        // The 1/2 of z²/2 is folded into the width, sqrt(2) std: added to n logarithms once, where multiplying z² would
        // cost a node on (B, n) forwards and another backwards.
        const logWidth = add(logStd, HALF_LOG_2);
        const z = div(sub(action, mean), exp(logWidth));
        return sub(n * (HALF_LOG_2 - HALF_LOG_2PI), reduceSum(add(mul(z, z), logWidth), LAST_AXIS));
      },

      entropy(params) {
        checkBatch(name, 'params', params, paramSize);
        const [, logStd] = parts(params);
        return add(reduceSum(logStd, LAST_AXIS), n * (0.5 + HALF_LOG_2PI));
      },

      kl(p, q) {
        checkBatch(name, 'p', p, paramSize);
        checkBatch(name, 'q', q, paramSize, p);
        const [meanP, logStdP] = parts(p);
        const [meanQ, logStdQ] = parts(q);
        const twoD = mul(sub(logStdP, logStdQ), 2);
        const widths = sub(sub(exp(twoD), 1), twoD);
        const z = div(sub(meanP, meanQ), exp(logStdQ));
        return nonNegative(mul(reduceSum(add(widths, mul(z, z)), LAST_AXIS), 0.5));
      },
    },
  };
}
