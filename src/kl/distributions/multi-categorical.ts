import type { Tensor } from '../../engine/graph.ts';
import { add, cast, lessEqual, mul } from '../../engine/ops/elementwise.ts';
import { takeAlong } from '../../engine/ops/gather.ts';
import { matmul } from '../../engine/ops/matmul.ts';
import { argMax, reduceSum } from '../../engine/ops/reduce.ts';
import { concat, reshape, split } from '../../engine/ops/shape.ts';
import { logSoftmax, softmax } from '../../engine/ops/softmax.ts';
import { entropyFromLogProbs, klFromLogProbs } from './categorical.ts';
import { checkBatch, checkCount, checkLength, checkNoiseRows } from './checks.ts';
import type { Distribution } from './distribution.ts';
import { checkCategory, entropyOf, klOf, logProbOf, sampleOf, topIndex } from './logits.ts';

/**
 * Several independent categorical variables, with `sizes[g]` categories each. Parameters: their logits, one variable after
 * the other, finite as for `categorical`. An action is one index for each variable; noise one uniform for each.
 */
export function multiCategorical(sizes: readonly number[]): Distribution {
  if (sizes.length === 0) {
    throw new RangeError(
      'multiCategorical([]) has 0 variables, at least 1 is needed: try multiCategorical([3, 2])',
    );
  }
  sizes.forEach((k, g) => {
    checkCount(
      `multiCategorical(sizes): sizes[${g}]`,
      k,
      1,
      'the number of categories, multiCategorical([3, 2])',
    );
  });
  const groups = sizes.length;
  const ks = [...sizes];
  const starts = ks.map((_, g) => ks.slice(0, g).reduce((a, b) => a + b, 0));
  const paramSize = ks.reduce((a, b) => a + b, 0);
  const name = `multiCategorical([${ks.join(', ')}])`;
  const alike = ks.every(k => k === ks[0]);

  /** A function along the last axis applied to each variable's logits: (B, paramSize) -> (B, paramSize). */
  function perGroup(params: Tensor, f: (logits: Tensor) => Tensor): Tensor {
    if (groups === 1) return f(params);
    // Three nodes instead of one a variable.
    if (alike) return reshape(f(reshape(params, [params.shape[0], groups, ks[0]])), params.shape);
    return concat(split(params, ks, -1).map(f), -1);
  }

  return {
    kind: 'multi-categorical',
    name,
    paramSize,
    actionSize: groups,
    noiseSize: groups,
    maxEntropy: ks.reduce((sum, k) => sum + Math.log(k), 0),

    fillNoise(rng, out) {
      checkNoiseRows(name, out, groups);
      rng.fillUniform(out);
    },

    sample(params, noise, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'noise', noise, groups);
      checkLength(name, 'out', out, groups);
      for (let g = 0; g < groups; g++) out[g] = sampleOf(name, params, starts[g], ks[g], noise[g]);
    },

    mode(params, out) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'out', out, groups);
      for (let g = 0; g < groups; g++) out[g] = topIndex(params, starts[g], ks[g]);
    },

    logProb(params, action) {
      checkLength(name, 'params', params, paramSize);
      checkLength(name, 'action', action, groups);
      let sum = 0;
      for (let g = 0; g < groups; g++) {
        checkCategory(name, action[g], ks[g]);
        sum += logProbOf(params, starts[g], ks[g], action[g]);
      }
      return sum;
    },

    entropy(params) {
      checkLength(name, 'params', params, paramSize);
      let sum = 0;
      for (let g = 0; g < groups; g++) sum += entropyOf(params, starts[g], ks[g]);
      return sum;
    },

    kl(p, q) {
      checkLength(name, 'p', p, paramSize);
      checkLength(name, 'q', q, paramSize);
      let sum = 0;
      for (let g = 0; g < groups; g++) sum += klOf(p, q, starts[g], ks[g]);
      return sum;
    },

    graph: {
      sample(params, noise) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'noise', noise, groups, params);
        const counted = paramSize - groups; // cumulative sums but each variable's last: as in `categorical`
        if (counted === 0) return mul(noise, 0);
        // All variables at once. Columns of the matrix: the counted cumulative sums of each variable, then the totals.
        const width = paramSize;
        const sumOf = new Float64Array(paramSize * width);
        const groupOf = new Float64Array(groups * counted);
        const countOf = new Float64Array(counted * groups);
        let column = 0;
        ks.forEach((k, g) => {
          for (let last = 0; last < k; last++) {
            const at = last < k - 1 ? column++ : counted + g;
            for (let i = 0; i <= last; i++) sumOf[(starts[g] + i) * width + at] = 1;
            if (last < k - 1) {
              groupOf[g * counted + at] = 1;
              countOf[at * groups + g] = 1;
            }
          }
        });
        const { graph } = params.node;
        const cumulative = matmul(
          perGroup(params, x => softmax(x)),
          graph.constant(sumOf, [paramSize, width]),
        );
        const [sums, totals] = split(cumulative, [counted, groups], -1) as readonly [Tensor, Tensor];
        // A row of zeros with a single 1 copies: these products are exact in float32.
        const thresholds = matmul(mul(noise, totals), graph.constant(groupOf, [groups, counted]));
        return matmul(
          cast(lessEqual(sums, thresholds), 'float32'),
          graph.constant(countOf, [counted, groups]),
        );
      },

      mode(params) {
        checkBatch(name, 'params', params, paramSize);
        const tops = split(params, ks, -1).map(logits => argMax(logits, -1, { keepDims: true }));
        return cast(concat(tops, -1), 'float32');
      },

      logProb(params, action) {
        checkBatch(name, 'params', params, paramSize);
        checkBatch(name, 'action', action, groups, params);
        const places = add(cast(action, 'int64'), params.node.graph.constant(starts, [groups], 'int64'));
        const logP = takeAlong(
          perGroup(params, x => logSoftmax(x)),
          places,
          -1,
        );
        return reduceSum(logP, { axes: [-1], keepDims: true });
      },

      entropy(params) {
        checkBatch(name, 'params', params, paramSize);
        return entropyFromLogProbs(perGroup(params, x => logSoftmax(x)));
      },

      kl(p, q) {
        checkBatch(name, 'p', p, paramSize);
        checkBatch(name, 'q', q, paramSize, p);
        return klFromLogProbs(
          perGroup(p, x => logSoftmax(x)),
          perGroup(q, x => logSoftmax(x)),
        );
      },
    },
  };
}
