import type { Tensor } from '../../engine/graph.ts';
import {
  add,
  cast,
  div,
  exp,
  greater,
  less,
  log,
  mul,
  relu,
  sigmoid as sigmoidNode,
  sub,
} from '../../engine/ops/elementwise.ts';
import { reduceSum } from '../../engine/ops/reduce.ts';
import { nonNegative } from '../non-negative.ts';
import { checkBatch, checkCount, checkLength, checkNoiseRows } from './checks.ts';
import type { Distribution } from './distribution.ts';
import { bregmanTerm, sigmoid, softplus } from './numeric.ts';

const LAST_AXIS = { axes: [-1], keepDims: true };

/** The KL of two switches with logits a and b. */
function klOfSwitch(a: number, b: number): number {
  // Named so that p's likelier side has the logit |a|: renaming both sides alike changes no KL.
  const likely = Math.abs(a);
  const other = a < 0 ? -b : b;
  const pOther = sigmoid(-likely);
  // As in logits.ts: near p = q, the difference of the log-probabilities by log1p and not by subtraction.
  const excess = pOther * Math.expm1(likely - other);
  const near = Math.abs(excess) < 0.5;
  const normaliser = Math.log1p(excess);
  const dLikely = near ? -normaliser : softplus(-likely) - softplus(-other);
  const dOther = near ? likely - other - normaliser : softplus(likely) - softplus(other);
  return bregmanTerm(sigmoid(likely), sigmoid(other), dLikely) + bregmanTerm(pOther, sigmoid(-other), dOther);
}

/**
 * log(1 + e^x) in two parts, relu(x) + rest, with rest = log(1 + e^-|x|) and decay = e^-|x|. Apart, because relu(x) cancels
 * exactly against x where log(1 + e^x) would round.
 *
 * -|x| is written x - 2 relu(x): whatever derivative the engine gives relu at 0, that of the sum is then 1/2 there. A
 * policy whose last layer starts at zero sits exactly at that point.
 */
function softplusParts(x: Tensor): { positive: Tensor; rest: Tensor; decay: Tensor; minusAbs: Tensor } {
  const positive = relu(x);
  const minusAbs = sub(x, mul(positive, 2));
  const decay = exp(minusAbs);
  return { positive, rest: log(add(decay, 1)), decay, minusAbs };
}

/**
 * `n` independent switches. Parameters: n logits, finite. An action is n numbers, each 0 or 1. Noise is one uniform in
 * [0, 1) for each: 1 where it is below sigmoid(logit).
 */
export function bernoulli(n: number): Distribution {
  checkCount('bernoulli(n): n', n, 1, 'the number of switches, bernoulli(2)');
  const name = `bernoulli(${n})`;

  return {
    kind: 'bernoulli',
    name,
    paramSize: n,
    actionSize: n,
    noiseSize: n,
    maxEntropy: n * Math.LN2,

    fillNoise(rng, out) {
      checkNoiseRows(name, out, n);
      rng.fillUniform(out);
    },

    sample(params, noise, out) {
      checkLength(name, 'params', params, n);
      checkLength(name, 'noise', noise, n);
      checkLength(name, 'out', out, n);
      for (let i = 0; i < n; i++) {
        const p = sigmoid(params[i]);
        if (!(p >= 0 && noise[i] >= 0)) {
          throw new RangeError(
            `${name}: cannot sample from logit ${params[i]} with noise ${noise[i]}: both must be finite; look for NaN upstream`,
          );
        }
        out[i] = noise[i] < p ? 1 : 0;
      }
    },

    mode(params, out) {
      checkLength(name, 'params', params, n);
      checkLength(name, 'out', out, n);
      for (let i = 0; i < n; i++) out[i] = params[i] > 0 ? 1 : 0;
    },

    logProb(params, action) {
      checkLength(name, 'params', params, n);
      checkLength(name, 'action', action, n);
      let sum = 0;
      for (let i = 0; i < n; i++) {
        const a = action[i];
        if (a !== 0 && a !== 1)
          throw new RangeError(`${name}: action ${a} at index ${i} is not 0 or 1: pass one`);
        sum -= softplus(a === 1 ? -params[i] : params[i]);
      }
      return sum;
    },

    entropy(params) {
      checkLength(name, 'params', params, n);
      let sum = 0;
      for (let i = 0; i < n; i++) {
        const size = Math.abs(params[i]);
        // Both parts are positive: log(1 + e^-|l|), and |l| times the smaller probability.
        sum += Math.log1p(Math.exp(-size)) + size * sigmoid(-size);
      }
      return sum;
    },

    kl(p, q) {
      checkLength(name, 'p', p, n);
      checkLength(name, 'q', q, n);
      let sum = 0;
      for (let i = 0; i < n; i++) sum += klOfSwitch(p[i], q[i]);
      return sum;
    },

    graph: {
      sample(params, noise) {
        checkBatch(name, 'params', params, n);
        checkBatch(name, 'noise', noise, n, params);
        return cast(less(noise, sigmoidNode(params)), 'float32');
      },

      mode(params) {
        checkBatch(name, 'params', params, n);
        return cast(greater(params, 0), 'float32');
      },

      logProb(params, action) {
        checkBatch(name, 'params', params, n);
        checkBatch(name, 'action', action, n, params);
        // action * logit - log(1 + e^logit)
        const { positive, rest } = softplusParts(params);
        return reduceSum(sub(sub(mul(action, params), positive), rest), LAST_AXIS);
      },

      entropy(params) {
        checkBatch(name, 'params', params, n);
        // As the plain function: log(1 + e^-|l|) + |l| sigmoid(-|l|).
        const { rest, decay, minusAbs } = softplusParts(params);
        return reduceSum(sub(rest, mul(minusAbs, div(decay, add(decay, 1)))), LAST_AXIS);
      },

      kl(p, q) {
        checkBatch(name, 'p', p, n);
        checkBatch(name, 'q', q, n, p);
        // The Bregman divergence of log(1 + e^x): its value at q, minus its tangent at p.
        const fromP = softplusParts(p);
        const fromQ = softplusParts(q);
        // sigmoid(p) from its logarithm: ONNX Runtime's own is 0 below -18, which a distant q would multiply.
        const probP = exp(sub(sub(p, fromP.positive), fromP.rest));
        const rise = add(sub(fromQ.positive, fromP.positive), sub(fromQ.rest, fromP.rest));
        return nonNegative(reduceSum(sub(rise, mul(probP, sub(q, p))), LAST_AXIS));
      },
    },
  };
}
