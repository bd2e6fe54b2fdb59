/** Reductions over any axes: sum, mean, max, L2 norm; and the index of the largest. */
import { fail } from '../errors.ts';
import { apply1, type Dense, type Operator, type Tensor } from '../graph.ts';
import {
  normaliseAxes,
  normaliseAxis,
  reducedShape,
  type Shape,
  showShape,
  sizeOf,
  stridesOf,
} from '../shape.ts';
import { add, asScaled, expand, mul, mulOp, neg, relu, requireFloat } from './elementwise.ts';
import { around, expandSource } from './shape.ts';

export interface ReduceAttrs {
  /** Sorted, from the start. */
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

/** Over which axes, and whether they stay. */
export interface ReduceOptions {
  /** Axes to reduce; all of them unless named. */
  axes?: readonly number[];
  /** Keep reduced axes with size 1, so that the result broadcasts against what was reduced. */
  keepDims?: boolean;
}

type Fold = (values: Float64Array) => number;

function reduceOp(name: string, onnx: string, fold: Fold): Operator<ReduceAttrs> {
  return {
    name,
    infer([x], { axes, keepDims }) {
      requireFloat(name, x);
      if (name !== 'reduceSum' && name !== 'sumSquares' && axes.some(axis => x.shape[axis] === 0)) {
        fail(
          `${name}: ${showShape(x.shape)} has no values along the axes ${axes.join(', ')}: at least 1 is needed`,
        );
      }
      return [{ shape: reducedShape(x.shape, axes, keepDims), dtype: x.dtype }];
    },
    evaluate: ([x], { axes }) => [reduceDense(x, axes, fold)],
    onnx(b, [x], [y], { attrs, inputs }) {
      const all = attrs.axes.length === inputs[0].shape.length;
      const keepdims = attrs.keepDims ? 1 : 0;
      // Without axes all are reduced.
      const { shape } = inputs[0];
      if (onnx === 'ReduceSum' && shape.length === 2 && attrs.axes.join() === '0' && shape[0] > 0) {
        // A sum of rows is a product with ones, and takes half the time as such: every bias has one in its derivative.
        b.node('MatMul', [b.ones(attrs.keepDims ? [1, shape[0]] : [shape[0]]), x], [y]);
      } else if (all) b.node(onnx, [x], [y], { keepdims });
      else b.node(onnx, [x, b.ints(attrs.axes)], [y], { keepdims });
    },
  };
}

export const reduceSumOp = reduceOp('reduceSum', 'ReduceSum', sumOf);
export const reduceMaxOp = reduceOp('reduceMax', 'ReduceMax', v => v.reduce((a, b) => Math.max(a, b)));
export const l2NormOp = reduceOp('l2Norm', 'ReduceL2', v => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0)));

/** The sum of squares in one node; {@link reduceSum} of a square becomes it. */
export const sumSquaresOp = reduceOp('sumSquares', 'ReduceSumSquare', v =>
  v.reduce((sum, x) => sum + x * x, 0),
);

function sumOf(values: Float64Array): number {
  return values.reduce((sum, v) => sum + v, 0);
}

function reduce(op: Operator<ReduceAttrs>, x: Tensor, options: ReduceOptions): Tensor {
  const axes = normaliseAxes(op.name, options.axes, x.shape.length);
  // ONNX reads no axes as all axes.
  if (axes.length === 0)
    return op === sumSquaresOp ? mul(x, x) : op === l2NormOp ? add(relu(x), relu(neg(x))) : x;
  return apply1(op, [x], { axes, keepDims: options.keepDims ?? false });
}

/** How often the reduced values of an expand are repeats of one another. */
function repeats(source: Tensor, shape: Shape, axes: readonly number[]): number {
  return axes.reduce((n, axis) => (source.shape[axis] === 1 ? n * shape[axis] : n), 1);
}

/** The sum over axes. */
export function reduceSum(x: Tensor, options: ReduceOptions = {}): Tensor {
  const scaled = asScaled(x);
  if (scaled) return mul(reduceSum(scaled.tensor, options), scaled.factor);
  const source = expandSource(x);
  if (!source) {
    const root = squared(x);
    return root ? reduce(sumSquaresOp, root, options) : reduce(reduceSumOp, x, options);
  }
  const axes = normaliseAxes('reduceSum', options.axes, x.shape.length);
  const small = mul(reduce(reduceSumOp, source, { ...options, axes }), repeats(source, x.shape, axes));
  return expand(small, reducedShape(x.shape, axes, options.keepDims ?? false));
}

/** What a tensor is the square of. */
function squared(x: Tensor): Tensor | undefined {
  const [a, b] = x.node.inputs;
  return x.node.op === (mulOp as Operator) && a === b ? a : undefined;
}

/** The mean over axes: a sum whose factor can meet others. */
export function reduceMean(x: Tensor, options: ReduceOptions = {}): Tensor {
  requireFloat('reduceMean', x);
  const axes = normaliseAxes('reduceMean', options.axes, x.shape.length);
  const count = sizeOf(axes.map(axis => x.shape[axis]));
  if (count === 0)
    fail(
      `reduceMean: ${showShape(x.shape)} has no values along the axes ${axes.join(', ')}: at least 1 is needed`,
    );
  return mul(reduceSum(x, { ...options, axes }), 1 / count);
}

/** The largest value over axes; ties share the derivative evenly. */
export function reduceMax(x: Tensor, options: ReduceOptions = {}): Tensor {
  const source = expandSource(x);
  if (!source || sizeOf(x.shape) === 0) return reduce(reduceMaxOp, x, options);
  const axes = normaliseAxes('reduceMax', options.axes, x.shape.length);
  const small = reduce(reduceMaxOp, source, { ...options, axes });
  return expand(small, reducedShape(x.shape, axes, options.keepDims ?? false));
}

/** √(sum of squares) over axes; its derivative at 0 is 0. */
export function l2Norm(x: Tensor, options: ReduceOptions = {}): Tensor {
  return reduce(l2NormOp, x, options);
}

function reduceDense(x: Dense, axes: readonly number[], fold: Fold): Float64Array {
  const kept = x.shape.map((_, axis) => axis).filter(axis => !axes.includes(axis));
  const strides = stridesOf(x.shape);
  const outSize = sizeOf(kept.map(axis => x.shape[axis]));
  const perOut = sizeOf(axes.map(axis => x.shape[axis]));
  const offsets = (which: readonly number[], count: number): number[] => {
    const own = stridesOf(which.map(axis => x.shape[axis]));
    return Array.from({ length: count }, (_, i) =>
      which.reduce((sum, axis, k) => sum + (Math.floor(i / own[k]) % x.shape[axis]) * strides[axis], 0),
    );
  };
  const outer = offsets(kept, outSize);
  const inner = offsets(axes, perOut);
  return Float64Array.from(outer, base => fold(Float64Array.from(inner, offset => x.data[base + offset])));
}

// ---- argMax --------------------------------------------------------------------------------------------------------

export interface ArgMaxAttrs {
  readonly axis: number;
  readonly keepDims: boolean;
}

export const argMaxOp: Operator<ArgMaxAttrs> = {
  name: 'argMax',
  infer([x], { axis, keepDims }) {
    requireFloat('argMax', x);
    if (x.shape[axis] === 0)
      fail(`argMax: ${showShape(x.shape)} has no values along axis ${axis}: at least 1 is needed`);
    return [{ shape: reducedShape(x.shape, [axis], keepDims), dtype: 'int64' }];
  },
  evaluate([x], { axis }, [out]) {
    const { outer, size, inner } = around(x.shape, axis);
    const data = new Float64Array(sizeOf(out.shape));
    for (let o = 0; o < outer; o++) {
      for (let i = 0; i < inner; i++) {
        let best = 0;
        const at = (k: number) => x.data[(o * size + k) * inner + i];
        for (let k = 1; k < size; k++) if (at(k) > at(best)) best = k;
        data[o * inner + i] = best;
      }
    }
    return [data];
  },
  onnx: (b, inputs, outputs, { attrs }) =>
    b.node('ArgMax', inputs, outputs, { axis: attrs.axis, keepdims: attrs.keepDims ? 1 : 0 }),
};

/** The index of the largest value along an axis, the first at a tie; int64, without a derivative. */
export function argMax(x: Tensor, axis: number, options: { keepDims?: boolean } = {}): Tensor {
  const at = normaliseAxis('argMax', axis, x.shape.length);
  return apply1(argMaxOp, [x], { axis: at, keepDims: options.keepDims ?? false });
}
