/** softmax (also of masked values), logSoftmax and layerNorm: along one axis, stable for large values. */
import { fail } from '../errors.ts';
import { apply, apply1, type Operator, type Tensor } from '../graph.ts';
import { normaliseAxis, sameShape, showShape } from '../shape.ts';
import { requireFloat } from './elementwise.ts';
import { around } from './shape.ts';

interface AxisAttrs {
  readonly axis: number;
}

function softmaxOpOf(
  name: string,
  f: (shifted: number, sum: number) => number,
  onnx: NonNullable<Operator<AxisAttrs>['onnx']>,
): Operator<AxisAttrs> {
  return {
    name,
    infer([x], { axis }) {
      requireFloat(name, x);
      if (x.shape[axis] === 0)
        fail(`${name}: ${showShape(x.shape)} has no values along axis ${axis}: at least 1 is needed`);
      return [{ shape: x.shape, dtype: x.dtype }];
    },
    evaluate([x], { axis }) {
      const { outer, size, inner } = around(x.shape, axis);
      const out = new Float64Array(x.data.length);
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          const at = (k: number) => (o * size + k) * inner + i;
          let top = -Infinity;
          for (let k = 0; k < size; k++) top = Math.max(top, x.data[at(k)]);
          let sum = 0;
          for (let k = 0; k < size; k++) sum += Math.exp(x.data[at(k)] - top);
          for (let k = 0; k < size; k++) out[at(k)] = f(x.data[at(k)] - top, sum);
        }
      }
      return [out];
    },
    onnx,
  };
}

export const softmaxOp = softmaxOpOf(
  'softmax',
  (x, sum) => Math.exp(x) / sum,
  (b, inputs, outputs, { attrs }) => b.node('Softmax', inputs, outputs, { axis: attrs.axis }),
);
export const logSoftmaxOp = softmaxOpOf(
  'logSoftmax',
  (x, sum) => x - Math.log(sum),
  (b, inputs, outputs, { attrs }) => b.node('LogSoftmax', inputs, outputs, { axis: attrs.axis }),
);

/** How far below the largest value what is hidden counts: e⁻⁵⁰ is nothing beside 1 in float32, and an ordinary number. */
const HIDDEN = 50;

/** Softmax whose least values are raised to HIDDEN below the largest. */
export const maskedSoftmaxOp = softmaxOpOf(
  'maskedSoftmax',
  (x, sum) => Math.exp(x) / sum,
  (b, [x], outputs, { attrs: { axis } }) => {
    const [top, least, raised] = [b.fresh(), b.fresh(), b.fresh()];
    b.node('ReduceMax', [x, b.ints([axis])], [top], { keepdims: 1 });
    b.node('Sub', [top, b.scalar(HIDDEN, 'float32')], [least]);
    b.node('Max', [x, least], [raised]);
    b.node('Softmax', [raised], outputs, { axis });
  },
);

/** Probabilities from logits along an axis. */
export function softmax(x: Tensor, axis = -1): Tensor {
  return apply1(softmaxOp, [x], { axis: normaliseAxis('softmax', axis, x.shape.length) });
}

/** Logarithms of probabilities from logits along an axis. */
export function logSoftmax(x: Tensor, axis = -1): Tensor {
  return apply1(logSoftmaxOp, [x], { axis: normaliseAxis('logSoftmax', axis, x.shape.length) });
}

/**
 * The same where many values are hidden by a large negative number, as in attention. ONNX Runtime gives those a probability
 * below the least ordinary float32, and such numbers take the processor six times as long.
 */
export function maskedSoftmax(x: Tensor, axis = -1): Tensor {
  return apply1(maskedSoftmaxOp, [x], { axis: normaliseAxis('maskedSoftmax', axis, x.shape.length) });
}

interface LayerNormAttrs {
  readonly epsilon: number;
}

/** Outputs: the result, and the mean and 1/std of each row, which the derivative reuses. */
export const layerNormOp: Operator<LayerNormAttrs> = {
  name: 'layerNorm',
  infer([x, scale, bias]) {
    for (const t of [x, scale, bias]) requireFloat('layerNorm', t);
    const width = x.shape.at(-1);
    if (width === undefined || width === 0)
      fail(`layerNorm: ${showShape(x.shape)} has no last axis with values`);
    for (const t of [scale, bias]) {
      if (!sameShape(t.shape, [width])) {
        fail(
          `layerNorm: scale and bias of ${showShape(x.shape)} have the shape (${width}), not ${showShape(t.shape)}`,
        );
      }
    }
    const perRow = [...x.shape.slice(0, -1), 1];
    return [x.shape, perRow, perRow].map(shape => ({ shape, dtype: 'float32' }));
  },
  evaluate([x, scale, bias], { epsilon }) {
    const width = x.shape.at(-1)!;
    const rows = x.data.length / width;
    const [y, means, invStds] = [x.data.length, rows, rows].map(n => new Float64Array(n));
    for (let r = 0; r < rows; r++) {
      const row = x.data.subarray(r * width, (r + 1) * width);
      const mean = row.reduce((a, b) => a + b, 0) / width;
      const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / width;
      means[r] = mean;
      invStds[r] = 1 / Math.sqrt(variance + epsilon);
      row.forEach((v, i) => {
        y[r * width + i] = (v - mean) * invStds[r] * scale.data[i] + bias.data[i];
      });
    }
    return [y, means, invStds];
  },
  onnx: (b, inputs, outputs, { attrs }) =>
    b.node('LayerNormalization', inputs, outputs, { axis: -1, epsilon: { float: attrs.epsilon } }),
};

/** The last axis made mean 0 and variance 1, then scaled and shifted (Ba et al. 2016, arXiv 1607.06450). */
export function layerNorm(x: Tensor, scale: Tensor, bias: Tensor, epsilon = 1e-5): Tensor {
  return apply(layerNormOp, [x, scale, bias], { epsilon })[0];
}
