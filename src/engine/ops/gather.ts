/** Reading by index, and adding by index, which is its derivative. */
import { fail } from '../errors.ts';
import { apply1, type Dense, type Operator, type Tensor } from '../graph.ts';
import { checkShape, normaliseAxis, type Shape, sameShape, showShape, sizeOf } from '../shape.ts';
import { requireFloat } from './elementwise.ts';
import { around } from './shape.ts';

interface AxisAttrs {
  readonly axis: number;
}

function requireIndices(what: string, indices: Tensor): void {
  if (indices.dtype !== 'int64' && indices.dtype !== 'int32') {
    fail(`${what}: indices are ${indices.dtype}: cast them to int64`);
  }
}

/** An index as ONNX reads it: negatives count from the end. */
function checkedIndex(what: string, index: number, size: number): number {
  if (!(index >= -size && index < size))
    fail(`${what}: index ${index} is outside of ${size}: use ${-size} to ${size - 1}`);
  return index < 0 ? index + size : index;
}

interface GatherAttrs extends AxisAttrs {
  /** No slice is read twice by values that the loss depends on: the derivative then moves rows, and adds none. */
  readonly distinct: boolean;
}

export const gatherOp: Operator<GatherAttrs> = {
  name: 'gather',
  infer([x, indices], { axis }) {
    requireIndices('gather', indices);
    return [
      { shape: [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)], dtype: x.dtype },
    ];
  },
  evaluate([x, indices], { axis }, [out]) {
    const { outer, size, inner } = around(x.shape, axis);
    const data = new Float64Array(sizeOf(out.shape));
    const count = indices.data.length;
    for (let o = 0; o < outer; o++) {
      for (let k = 0; k < count; k++) {
        const from = (o * size + checkedIndex('gather', indices.data[k], size)) * inner;
        data.set(x.data.subarray(from, from + inner), (o * count + k) * inner);
      }
    }
    return [data];
  },
  onnx: (b, inputs, outputs, { attrs }) => b.node('Gather', inputs, outputs, { axis: attrs.axis }),
};

/**
 * Whole slices picked by index along an axis (rows, unless told otherwise): the axis is replaced by the shape of
 * `indices`. A scalar index takes one slice and drops the axis.
 *
 * `distinct` promises that no slice is read twice, unless the derivative is 0 wherever it is read: adding up is slow.
 */
export function gather(
  x: Tensor,
  indices: Tensor,
  axis = 0,
  { distinct = false }: { distinct?: boolean } = {},
): Tensor {
  return apply1(gatherOp, [x, indices], { axis: normaliseAxis('gather', axis, x.shape.length), distinct });
}

export const takeAlongOp: Operator<AxisAttrs> = {
  name: 'takeAlong',
  infer([x, indices], { axis }) {
    requireIndices('takeAlong', indices);
    checkAlong('takeAlong', x.shape, indices.shape, axis);
    return [{ shape: indices.shape, dtype: x.dtype }];
  },
  evaluate([x, indices], { axis }) {
    return [Float64Array.from(along(x.shape, indices, axis), from => x.data[from])];
  },
  onnx: (b, inputs, outputs, { attrs }) => b.node('GatherElements', inputs, outputs, { axis: attrs.axis }),
};

/** One value for each index: `out[i, j] = x[i, indices[i, j]]` along the last axis, likewise along others. */
export function takeAlong(x: Tensor, indices: Tensor, axis: number): Tensor {
  return apply1(takeAlongOp, [x, indices], { axis: normaliseAxis('takeAlong', axis, x.shape.length) });
}

export interface ScatterAttrs {
  readonly axis: number;
  readonly shape: Shape;
}

/** Rows up to which a product with one-hot rows is quicker than scattering one value after another. */
const MAX_ONE_HOT = 512;

/** Where {@link gather} read: updates are added into zeros, rows that were read twice receive both. */
export const scatterRowsOp: Operator<{ readonly shape: Shape; readonly distinct: boolean }> = {
  name: 'scatterRows',
  infer([indices, updates], { shape }) {
    checkShape('scatterRows', shape);
    requireIndices('scatterRows', indices);
    requireFloat('scatterRows', updates);
    if (!sameShape(updates.shape, [...indices.shape, ...shape.slice(1)])) {
      fail(
        `scatterRows: updates ${showShape(updates.shape)} do not fit indices ${showShape(indices.shape)} into ${showShape(shape)}: one row an index`,
      );
    }
    return [{ shape, dtype: updates.dtype }];
  },
  evaluate([indices, updates], { shape }) {
    const data = new Float64Array(sizeOf(shape));
    const inner = sizeOf(shape.slice(1));
    for (let k = 0; k < indices.data.length; k++) {
      const to = checkedIndex('scatterRows', indices.data[k], shape[0]) * inner;
      for (let i = 0; i < inner; i++) data[to + i] += updates.data[k * inner + i];
    }
    return [data];
  },
  // Not ScatterND with a sum: ONNX Runtime's adds to one row from several threads at once and loses updates (its issues 18048, 23396).
  // A product with one-hot rows is as quick where there are few of them; ScatterElements is serial, and slow.
  onnx(b, [indices, updates], outputs, { attrs: { shape, distinct }, inputs }) {
    const [rows, count, inner] = [shape[0], sizeOf(inputs[0].shape), sizeOf(shape.slice(1))];
    const made = (op: string, from: readonly string[], attrs?: Record<string, number | string>): string => {
      const out = b.fresh();
      b.node(op, from, [out], attrs);
      return out;
    };
    const reshaped = (x: string, to: Shape): string => made('Reshape', [x, b.ints(to)], { allowzero: 1 });
    const flat = reshaped(updates, [count, inner]);
    const wide = (): string => (inputs[0].dtype === 'int64' ? indices : made('Cast', [indices], { to: 7 }));
    const zeros = (): string => made('ConstantOfShape', [b.ints([rows, inner])]);
    let sum: string;
    if (distinct) {
      sum = made('ScatterND', [zeros(), reshaped(wide(), [count, 1]), flat]);
    } else if (rows <= MAX_ONE_HOT) {
      const hot = made(
        'OneHot',
        [reshaped(wide(), [count]), b.ints([rows]), made('Cast', [b.ints([0, 1])], { to: 1 })],
        { axis: 0 },
      );
      sum = made('MatMul', [hot, flat]);
    } else {
      const places = made('Expand', [reshaped(indices, [count, 1]), b.ints([count, inner])]);
      sum = made('ScatterElements', [zeros(), places, flat], { axis: 0, reduction: 'add' });
    }
    b.node('Reshape', [sum, b.ints(shape)], outputs, { allowzero: 1 });
  },
};

/** Zeros of `shape` with each row of `updates` added at the row that its index names; see {@link gather} for `distinct`. */
export function scatterRows(
  indices: Tensor,
  updates: Tensor,
  shape: Shape,
  { distinct = false }: { distinct?: boolean } = {},
): Tensor {
  return apply1(scatterRowsOp, [indices, updates], { shape: [...shape], distinct });
}

/** Where {@link takeAlong} read. */
export const scatterAlongOp: Operator<ScatterAttrs> = {
  name: 'scatterAlong',
  infer([indices, updates], { axis, shape }) {
    checkShape('scatterAlong', shape);
    requireIndices('scatterAlong', indices);
    requireFloat('scatterAlong', updates);
    checkAlong('scatterAlong', shape, indices.shape, axis);
    if (!sameShape(indices.shape, updates.shape)) {
      fail(
        `scatterAlong: indices ${showShape(indices.shape)} and updates ${showShape(updates.shape)} must have one shape`,
      );
    }
    return [{ shape, dtype: updates.dtype }];
  },
  evaluate([indices, updates], { axis, shape }) {
    const data = new Float64Array(sizeOf(shape));
    along(shape, indices, axis).forEach((to, i) => {
      data[to] += updates.data[i];
    });
    return [data];
  },
  onnx(b, [indices, updates], outputs, { attrs }) {
    const zeros = b.fresh();
    b.node('ConstantOfShape', [b.ints(attrs.shape)], [zeros]);
    b.node('ScatterElements', [zeros, indices, updates], outputs, { axis: attrs.axis, reduction: 'add' });
  },
};

/** Zeros of `shape` with each update added at the place along `axis` that its index names. */
export function scatterAlong(indices: Tensor, updates: Tensor, axis: number, shape: Shape): Tensor {
  return apply1(scatterAlongOp, [indices, updates], {
    axis: normaliseAxis('scatterAlong', axis, shape.length),
    shape: [...shape],
  });
}

function checkAlong(what: string, shape: Shape, indices: Shape, axis: number): void {
  if (indices.length !== shape.length || indices.some((n, i) => i !== axis && n > shape[i])) {
    fail(
      `${what}: indices ${showShape(indices)} do not fit ${showShape(shape)}: only axis ${axis} may be larger`,
    );
  }
}

/** The place in a tensor of `shape` that each index means. */
function along(shape: Shape, indices: Dense, axis: number): number[] {
  const rank = shape.length;
  return Array.from(indices.data, (index, i) => {
    let rest = i;
    let stride = 1;
    let place = 0;
    for (let k = rank - 1; k >= 0; k--) {
      const coordinate = rest % indices.shape[k];
      rest = Math.floor(rest / indices.shape[k]);
      place += (k === axis ? checkedIndex('index', index, shape[axis]) : coordinate) * stride;
      stride *= shape[k];
    }
    return place;
  });
}
