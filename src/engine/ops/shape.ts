/** Operators that move values and change none: reshape, transpose, concat, split, slice, pad. */
import { fail } from '../errors.ts';
import { apply, apply1, type Dense, type Operator, type Tensor } from '../graph.ts';
import {
  checkShape,
  normaliseAxes,
  normaliseAxis,
  type Shape,
  sameShape,
  showShape,
  sizeOf,
  stridesOf,
} from '../shape.ts';
import { unexpanded } from './elementwise.ts';

// ---- reshape -------------------------------------------------------------------------------------------------------

interface ReshapeAttrs {
  readonly shape: Shape;
}

export const reshapeOp: Operator<ReshapeAttrs> = {
  name: 'reshape',
  infer([x], { shape }) {
    checkShape('reshape', shape);
    if (sizeOf(shape) !== sizeOf(x.shape)) {
      fail(
        `reshape: ${showShape(x.shape)} holds ${sizeOf(x.shape)} values and ${showShape(shape)} holds ${sizeOf(shape)}: they must hold the same number`,
      );
    }
    return [{ shape, dtype: x.dtype }];
  },
  evaluate: ([x]) => [x.data.slice()],
  onnx: (b, [x], [y], { attrs }) => b.node('Reshape', [x, b.ints(attrs.shape)], [y], { allowzero: 1 }),
};

/** The same values in another shape; one size may be -1 and is then worked out. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  const known = shape.filter(n => n !== -1);
  if (known.length < shape.length - 1)
    fail(`reshape: ${showShape(shape)} leaves more than one size open: write all but one`);
  const rest = sizeOf(x.shape) / sizeOf(known);
  if (known.length < shape.length && !Number.isInteger(rest)) {
    fail(
      `reshape: ${showShape(x.shape)} holds ${sizeOf(x.shape)} values, which ${showShape(shape)} does not divide`,
    );
  }
  const full = shape.map(n => (n === -1 ? rest : n));
  if (sameShape(full, x.shape)) return x;
  if (x.node.op === (reshapeOp as Operator)) return reshape(x.node.inputs[0], full);
  return apply1(reshapeOp, [x], { shape: full });
}

// ---- transpose -----------------------------------------------------------------------------------------------------

interface TransposeAttrs {
  readonly order: readonly number[];
}

export const transposeOp: Operator<TransposeAttrs> = {
  name: 'transpose',
  infer: ([x], { order }) => [{ shape: order.map(axis => x.shape[axis]), dtype: x.dtype }],
  evaluate: ([x], { order }) => [permuted(x, order)],
  onnx: (b, inputs, outputs, { attrs }) => b.node('Transpose', inputs, outputs, { perm: attrs.order }),
};

/** Axes in another order (`order[i]` is the old axis that becomes axis i); without one, the last two are swapped. */
export function transpose(x: Tensor, order?: readonly number[]): Tensor {
  const rank = x.shape.length;
  if (!order && rank < 2)
    fail(`transpose: ${showShape(x.shape)} has ${rank} axes, at least 2 are needed to swap the last two`);
  const full = order
    ? order.map(axis => normaliseAxis('transpose', axis, rank))
    : [...Array(rank - 2).keys(), rank - 1, rank - 2];
  if (full.length !== rank || new Set(full).size !== rank) {
    fail(`transpose: order (${full.join(', ')}) does not name each axis of ${showShape(x.shape)} once`);
  }
  if (full.every((axis, i) => axis === i)) return x;
  if (x.node.op === (transposeOp as Operator)) {
    const inner = (x.node.attrs as TransposeAttrs).order;
    return transpose(
      x.node.inputs[0],
      full.map(axis => inner[axis]),
    );
  }
  return apply1(transposeOp, [x], { order: full });
}

function permuted(x: Dense, order: readonly number[]): Float64Array {
  const strides = stridesOf(x.shape);
  const shape = order.map(axis => x.shape[axis]);
  const out = new Float64Array(x.data.length);
  const outStrides = stridesOf(shape);
  for (let i = 0; i < out.length; i++) {
    let from = 0;
    for (let axis = 0; axis < shape.length; axis++) {
      from += (Math.floor(i / outStrides[axis]) % shape[axis]) * strides[order[axis]];
    }
    out[i] = x.data[from];
  }
  return out;
}

// ---- concat, split -------------------------------------------------------------------------------------------------

interface AxisAttrs {
  readonly axis: number;
}

export const concatOp: Operator<AxisAttrs> = {
  name: 'concat',
  infer(parts, { axis }) {
    const [first] = parts;
    let along = 0;
    for (const part of parts) {
      const fits =
        part.shape.length === first.shape.length &&
        part.shape.every((n, i) => i === axis || n === first.shape[i]);
      if (!fits) {
        fail(
          `concat: shapes ${showShape(first.shape)} and ${showShape(part.shape)} may differ on axis ${axis} only`,
        );
      }
      if (part.dtype !== first.dtype)
        fail(`concat: parts are ${first.dtype} and ${part.dtype}: cast them to one dtype`);
      along += part.shape[axis];
    }
    return [{ shape: first.shape.map((n, i) => (i === axis ? along : n)), dtype: first.dtype }];
  },
  evaluate(parts, { axis }, [out]) {
    const data = new Float64Array(sizeOf(out.shape));
    const { outer, inner, size } = around(out.shape, axis);
    let offset = 0;
    for (const part of parts) {
      const width = part.shape[axis] * inner;
      for (let o = 0; o < outer; o++) {
        data.set(part.data.subarray(o * width, (o + 1) * width), o * size * inner + offset);
      }
      offset += width;
    }
    return [data];
  },
  onnx: (b, inputs, outputs, { attrs }) => b.node('Concat', inputs, outputs, { axis: attrs.axis }),
};

/** Tensors one after another along an axis. */
export function concat(parts: readonly Tensor[], axis: number): Tensor {
  if (parts.length === 0) fail('concat: no tensors were given: give at least one');
  const at = normaliseAxis('concat', axis, parts[0].shape.length);
  return parts.length === 1 ? parts[0] : apply1(concatOp, parts, { axis: at });
}

interface SplitAttrs {
  readonly axis: number;
  readonly sizes: readonly number[];
}

export const splitOp: Operator<SplitAttrs> = {
  name: 'split',
  infer([x], { axis, sizes }) {
    const sum = sizes.reduce((a, b) => a + b, 0);
    if (sizes.some(n => !Number.isInteger(n) || n < 0) || sum !== x.shape[axis]) {
      fail(
        `split: sizes ${sizes.join(' + ')} make ${sum}, but axis ${axis} of ${showShape(x.shape)} has ${x.shape[axis]}`,
      );
    }
    return sizes.map(n => ({ shape: x.shape.with(axis, n), dtype: x.dtype }));
  },
  evaluate([x], { axis, sizes }) {
    let start = 0;
    return sizes.map(n => {
      const data = cut(x, axis, start, start + n);
      start += n;
      return data;
    });
  },
  onnx: (b, [x], outputs, { attrs }) =>
    b.node('Split', [x, b.ints(attrs.sizes)], outputs, { axis: attrs.axis }),
};

/** A tensor cut along an axis into pieces of the given sizes. */
export function split(x: Tensor, sizes: readonly number[], axis: number): readonly Tensor[] {
  const at = normaliseAxis('split', axis, x.shape.length);
  if (sizes.length === 1 && sizes[0] === x.shape[at]) return [x];
  if (x.node.op === (concatOp as Operator) && (x.node.attrs as AxisAttrs).axis === at) {
    // What was just put together comes apart without a node.
    const parts = x.node.inputs;
    if (parts.length === sizes.length && parts.every((part, i) => part.shape[at] === sizes[i])) return parts;
  }
  return apply(splitOp, [x], { axis: at, sizes: [...sizes] });
}

// ---- slice, pad ----------------------------------------------------------------------------------------------------

interface SliceAttrs {
  readonly axes: readonly number[];
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

export const sliceOp: Operator<SliceAttrs> = {
  name: 'slice',
  infer([x], { axes, starts, ends }) {
    let shape = x.shape;
    axes.forEach((axis, i) => {
      const size = x.shape[axis];
      const whole = Number.isInteger(starts[i]) && Number.isInteger(ends[i]);
      if (!(whole && starts[i] >= 0 && starts[i] <= ends[i] && ends[i] <= size)) {
        fail(
          `slice: ${starts[i]} to ${ends[i]} lies outside of axis ${axis} of ${showShape(x.shape)}, which has ${size}`,
        );
      }
      shape = shape.with(axis, ends[i] - starts[i]);
    });
    return [{ shape, dtype: x.dtype }];
  },
  evaluate([x], { axes, starts, ends }) {
    let at: Dense = x;
    axes.forEach((axis, i) => {
      at = { shape: at.shape.with(axis, ends[i] - starts[i]), data: cut(at, axis, starts[i], ends[i]) };
    });
    return [at.data.slice()];
  },
  onnx: (b, [x], [y], { attrs }) =>
    b.node('Slice', [x, b.ints(attrs.starts), b.ints(attrs.ends), b.ints(attrs.axes)], [y]),
};

/** From `starts` up to, not including, `ends` along each of `axes` (the first ones unless named); negatives count from the end. */
export function slice(
  x: Tensor,
  starts: readonly number[],
  ends: readonly number[],
  axes?: readonly number[],
): Tensor {
  const at = (axes ?? starts.map((_, i) => i)).map(axis => normaliseAxis('slice', axis, x.shape.length));
  if (starts.length !== at.length || ends.length !== at.length) {
    fail(
      `slice: ${starts.length} starts, ${ends.length} ends and ${at.length} axes: give one of each an axis`,
    );
  }
  normaliseAxes('slice', at, x.shape.length);
  const fromStart = (n: number, i: number) => (n < 0 ? n + x.shape[at[i]] : n);
  const attrs = { axes: at, starts: starts.map(fromStart), ends: ends.map(fromStart) };
  const whole = at.every((axis, i) => attrs.starts[i] === 0 && attrs.ends[i] === x.shape[axis]);
  return whole ? x : apply1(sliceOp, [x], attrs);
}

interface PadAttrs {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export const padOp: Operator<PadAttrs> = {
  name: 'pad',
  infer([x], { before, after }) {
    const rank = x.shape.length;
    if (
      before.length !== rank ||
      after.length !== rank ||
      [...before, ...after].some(n => !Number.isInteger(n) || n < 0)
    ) {
      fail(
        `pad: (${before.join(', ')}) before and (${after.join(', ')}) after do not fit ${showShape(x.shape)}: one whole number an axis`,
      );
    }
    return [{ shape: x.shape.map((n, i) => before[i] + n + after[i]), dtype: x.dtype }];
  },
  evaluate([x], { before }, [out]) {
    const data = new Float64Array(sizeOf(out.shape));
    const strides = stridesOf(x.shape);
    const outStrides = stridesOf(out.shape);
    for (let i = 0; i < x.data.length; i++) {
      let to = 0;
      for (let axis = 0; axis < strides.length; axis++) {
        to += ((Math.floor(i / strides[axis]) % x.shape[axis]) + before[axis]) * outStrides[axis];
      }
      data[to] = x.data[i];
    }
    return [data];
  },
  onnx: (b, [x], [y], { attrs }) => b.node('Pad', [x, b.ints([...attrs.before, ...attrs.after])], [y]),
};

/** Zeros around a tensor: so many before and after along each axis. */
export function pad(x: Tensor, before: readonly number[], after: readonly number[]): Tensor {
  const attrs = { before: [...before], after: [...after] };
  const [{ shape }] = padOp.infer([x], attrs);
  return sameShape(shape, x.shape) ? x : apply1(padOp, [x], attrs);
}

// ---- helpers -------------------------------------------------------------------------------------------------------

/** A tensor seen as (outer, size, inner) around one of its axes. */
export function around(shape: Shape, axis: number): { outer: number; size: number; inner: number } {
  return { outer: sizeOf(shape.slice(0, axis)), size: shape[axis], inner: sizeOf(shape.slice(axis + 1)) };
}

function cut(x: Dense, axis: number, start: number, end: number): Float64Array {
  const { outer, size, inner } = around(x.shape, axis);
  const width = (end - start) * inner;
  const out = new Float64Array(outer * width);
  for (let o = 0; o < outer; o++) {
    const from = (o * size + start) * inner;
    out.set(x.data.subarray(from, from + width), o * width);
  }
  return out;
}

/** A tensor with axes of size 1 put before its own, until it has `rank` axes. */
function withRank(x: Tensor, rank: number): Tensor {
  return reshape(x, [...Array(rank - x.shape.length).fill(1), ...x.shape]);
}

/** What an expand repeats, with as many axes as its result; undefined if the tensor is not an expand. */
export function expandSource(x: Tensor): Tensor | undefined {
  const source = unexpanded(x);
  return source === x ? undefined : withRank(source, x.shape.length);
}
