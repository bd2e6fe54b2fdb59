/** Operators that are neither products nor value by value: reductions, softmax, reading and adding by index, copies. */
import type { Node, Operator } from '../graph.ts';
import * as gathering from '../ops/gather.ts';
import type { ArgMaxAttrs, ReduceAttrs } from '../ops/reduce.ts';
import * as reductions from '../ops/reduce.ts';
import * as shapes from '../ops/shape.ts';
import { around } from '../ops/shape.ts';
import * as normalisers from '../ops/softmax.ts';
import { type Shape, sizeOf, stridesOf } from '../shape.ts';
import type { Variable } from './mathematics.ts';
import * as mathematics from './mathematics.ts';
import {
  type Code,
  copyBytes,
  f32x4,
  fillBytes,
  i32,
  i32x4,
  i64,
  type Local,
  multiplyAdd,
  select,
  trap,
  v128,
  when,
} from './module.ts';
import { bytesPer, repeat, type View, walk } from './views.ts';

/** Where a node's tensors are in memory. */
export interface Placed {
  readonly node: Node;
  /** Addresses of its inputs and outputs. */
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
}

type Kernel = (placed: Placed, variable: Variable) => Code[];

const table = new Map<Operator, Kernel>();
const define = (op: unknown, kernel: Kernel): void => {
  table.set(op as Operator, kernel);
};

/** How a node is computed; undefined where nothing here can. */
export const kernelFor = (node: Node): Kernel | undefined => (fits(node) ? table.get(node.op) : undefined);

/** Softmax is written for the last axis, and reductions for axes that are neighbours. */
function fits({ op, attrs, inputs }: Node): boolean {
  if (op === (normalisers.softmaxOp as Operator) || op === (normalisers.logSoftmaxOp as Operator))
    return (attrs as { axis: number }).axis === inputs[0].shape.length - 1;
  if (folds.has(op)) {
    const { axes } = attrs as ReduceAttrs;
    return axes.every((axis, i) => i === 0 || axis === axes[i - 1] + 1) && !inputs[0].shape.includes(0);
  }
  return true;
}

const zero = i32.constant(0);
const at = (address: number): Code => i32.constant(address);
const move = (local: Local, bytes: number): Code => local.set(i32.add(local.get, i32.constant(bytes)));

// ---- reductions ----------------------------------------------------------------------------------------------------

interface Fold {
  /** What a sum begins with. */
  readonly first: number;
  add(sum: Code, value: Local): Code;
  join(a: Code, b: Code): Code;
  readonly last?: (sum: Code) => Code;
}

const squares = (sum: Code, value: Local): Code => multiplyAdd(value.get, value.get, sum);
const folds = new Map<unknown, Fold>([
  [reductions.reduceSumOp, { first: 0, add: (sum, value) => f32x4.add(sum, value.get), join: f32x4.add }],
  [reductions.sumSquaresOp, { first: 0, add: squares, join: f32x4.add }],
  [reductions.l2NormOp, { first: 0, add: squares, join: f32x4.add, last: f32x4.sqrt }],
  [
    reductions.reduceMaxOp,
    { first: Number.NEGATIVE_INFINITY, add: (sum, value) => f32x4.max(sum, value.get), join: f32x4.max },
  ],
]);
for (const [op, fold] of folds) define(op, (placed, variable) => reduction(placed, fold, variable));

function reduction({ node, inputs: [x], outputs: [y] }: Placed, fold: Fold, variable: Variable): Code[] {
  const { shape } = node.inputs[0];
  const { axes } = node.attrs as ReduceAttrs;
  const outer = sizeOf(shape.slice(0, axes[0]));
  const size = sizeOf(axes.map(axis => shape[axis]));
  const inner = sizeOf(shape.slice(axes.at(-1)! + 1));
  return inner === 1
    ? alongRows(x, y, outer, size, fold, variable)
    : downColumns(x, y, outer, size, inner, fold, variable);
}

const finished = (fold: Fold, sum: Code): Code => fold.last?.(sum) ?? sum;

/** Each row by itself: sixteen values at a time in four sums, then four, then one; the sums are joined in a fixed order. */
function alongRows(x: number, y: number, rows: number, size: number, fold: Fold, variable: Variable): Code[] {
  const [from, to] = [variable('i32'), variable('i32')];
  const sums = Array.from({ length: 4 }, () => variable('v128'));
  const [value, total] = [variable('v128'), variable('v128')];
  const [long, short] = [size >> 4, (size & 15) >> 2];
  const four = (k: number): Code[] => [
    value.set(v128.load(from.get, x + 16 * k)),
    sums[k].set(fold.add(sums[k].get, value)),
  ];
  const lanes = [0, 1, 2, 3].map(lane =>
    v128.shuffle(
      total.get,
      total.get,
      Array.from({ length: 16 }, (_, i) => 4 * lane + (i & 3)),
    ),
  );
  const { join } = fold;
  const row: Code[] = [
    ...sums.map(sum => sum.set(v128.floats(fold.first))),
    repeat(long, [...[0, 1, 2, 3].flatMap(four), move(from, 64)], variable),
    repeat(short, [...four(0), move(from, 16)], variable),
    total.set(join(join(sums[0].get, sums[1].get), join(sums[2].get, sums[3].get))),
    total.set(join(join(lanes[0], lanes[1]), join(lanes[2], lanes[3]))),
    repeat(
      size & 3,
      [value.set(v128.loadFirst(from.get, x)), total.set(fold.add(total.get, value)), move(from, 4)],
      variable,
    ),
    v128.storeLane(to.get, y, finished(fold, total.get), 0),
    move(to, 4),
  ];
  // A row of a few values has none of the sums.
  const few: Code[] = [
    total.set(v128.floats(fold.first)),
    repeat(
      size,
      [value.set(v128.loadFirst(from.get, x)), total.set(fold.add(total.get, value)), move(from, 4)],
      variable,
    ),
    v128.storeLane(to.get, y, finished(fold, total.get), 0),
    move(to, 4),
  ];
  return [from.set(zero), to.set(zero), repeat(rows, size < 8 ? few : row, variable)];
}

/** Four columns at a time, from the first row to the last. */
function downColumns(
  x: number,
  y: number,
  outer: number,
  size: number,
  inner: number,
  fold: Fold,
  variable: Variable,
): Code[] {
  const [from, base, to] = [variable('i32'), variable('i32'), variable('i32')];
  const [value, sum] = [variable('v128'), variable('v128')];
  const column = (lanes: 1 | 4): Code[] => [
    from.set(base.get),
    sum.set(v128.floats(fold.first)),
    repeat(
      size,
      [
        value.set(lanes === 4 ? v128.load(from.get, x) : v128.loadFirst(from.get, x)),
        sum.set(fold.add(sum.get, value)),
        move(from, 4 * inner),
      ],
      variable,
    ),
    lanes === 4
      ? v128.store(to.get, y, finished(fold, sum.get))
      : v128.storeLane(to.get, y, finished(fold, sum.get), 0),
    move(base, 4 * lanes),
    move(to, 4 * lanes),
  ];
  return [
    base.set(zero),
    to.set(zero),
    repeat(
      outer,
      [
        repeat(inner >> 2, column(4), variable),
        repeat(inner & 3, column(1), variable),
        move(base, 4 * inner * (size - 1)),
      ],
      variable,
    ),
  ];
}

define(reductions.argMaxOp, ({ node, inputs: [x], outputs: [y] }, variable) => {
  const { axis } = node.attrs as ArgMaxAttrs;
  const { outer, size, inner } = around(node.inputs[0].shape, axis);
  const [from, base, to, k, best] = Array.from({ length: 5 }, () => variable('i32'));
  const [value, top] = [variable('v128'), variable('v128')];
  const larger = i32x4.first(f32x4.greater(value.get, top.get));
  const one: Code[] = [
    from.set(base.get),
    k.set(zero),
    best.set(zero),
    top.set(v128.loadFirst(from.get, x)),
    repeat(
      size,
      [
        value.set(v128.loadFirst(from.get, x)),
        when(larger, [best.set(k.get), top.set(value.get)]),
        k.set(i32.add(k.get, i32.constant(1))),
        move(from, 4 * inner),
      ],
      variable,
    ),
    i64.store(to.get, y, i64.fromI32(best.get)),
    move(base, 4),
    move(to, 8),
  ];
  const rows = repeat(outer, [repeat(inner, one, variable), move(base, 4 * inner * (size - 1))], variable);
  return [base.set(zero), to.set(zero), rows];
});

// ---- softmax -------------------------------------------------------------------------------------------------------

for (const isLog of [true, false]) {
  define(
    isLog ? normalisers.logSoftmaxOp : normalisers.softmaxOp,
    ({ node, inputs: [x], outputs: [y] }, variable) => {
      const { shape } = node.inputs[0];
      const size = shape.at(-1)!;
      const rows = sizeOf(shape) / size;
      const [row, from] = [variable('i32'), variable('i32')];
      const [value, top, sum, result] = Array.from({ length: 4 }, () => variable('v128'));
      /** Four rows side by side, or one: each lane is a row. */
      const some = (lanes: 1 | 4): Code[] => {
        const load: Code[] =
          lanes === 1
            ? [value.set(v128.loadFirst(from.get, x))]
            : [
                value.set(v128.loadFirst(from.get, x)),
                ...[1, 2, 3].map(lane =>
                  value.set(v128.loadLane(from.get, x + 4 * lane * size, value.get, lane)),
                ),
              ];
        const over = (statements: readonly Code[]): Code[] => [
          from.set(row.get),
          repeat(size, [...load, ...statements, move(from, 4)], variable),
        ];
        const power = mathematics.exp(f32x4.sub(value.get, top.get), variable);
        const logSum = mathematics.log(sum.get, variable);
        return [
          top.set(v128.floats(Number.NEGATIVE_INFINITY)),
          ...over([top.set(f32x4.max(top.get, value.get))]),
          sum.set(v128.floats(0)),
          ...over([power.before, sum.set(f32x4.add(sum.get, power.value))]),
          ...(isLog ? [logSum.before, sum.set(logSum.value)] : []),
          ...over([
            isLog ? [] : power.before,
            result.set(
              isLog ? f32x4.sub(f32x4.sub(value.get, top.get), sum.get) : f32x4.div(power.value, sum.get),
            ),
            ...Array.from({ length: lanes }, (_, lane) =>
              v128.storeLane(from.get, y + 4 * lane * size, result.get, lane),
            ),
          ]),
          move(row, 4 * lanes * size),
        ];
      };
      return [row.set(zero), repeat(rows >> 2, some(4), variable), repeat(rows & 3, some(1), variable)];
    },
  );
}

// ---- by index ------------------------------------------------------------------------------------------------------

/** Reads an index, which may count from the end, and ends the program where it lies outside. */
function indexAt(address: Code, offset: number, dtype: string, size: number, index: Local): Code[] {
  const raw = dtype === 'int64' ? i32.fromI64(i64.load(address, offset)) : i32.load(address, offset);
  return [
    index.set(raw),
    index.set(select(i32.negative(index.get), i32.add(index.get, i32.constant(size)), index.get)),
    when(i32.atLeast(index.get, i32.constant(size)), [trap]),
  ];
}

/** Copies (or adds) values from one place to another, four at a time and then one by one. */
function moveValues(
  from: Local,
  x: number,
  to: Local,
  y: number,
  words: number,
  how: 'copy' | 'add',
  variable: Variable,
): Code[] {
  const [source, target] = [variable('i32'), variable('i32')];
  const sum = (value: Code, old: Code): Code => (how === 'copy' ? value : f32x4.add(old, value));
  return [
    source.set(from.get),
    target.set(to.get),
    repeat(
      words >> 2,
      [
        v128.store(target.get, y, sum(v128.load(source.get, x), v128.load(target.get, y))),
        move(source, 16),
        move(target, 16),
      ],
      variable,
    ),
    repeat(
      words & 3,
      [
        v128.storeLane(target.get, y, sum(v128.loadFirst(source.get, x), v128.loadFirst(target.get, y)), 0),
        move(source, 4),
        move(target, 4),
      ],
      variable,
    ),
  ];
}

define(gathering.gatherOp, ({ node, inputs: [x, indices], outputs: [y] }, variable) => {
  const [values, picks] = node.inputs;
  const { outer, size, inner } = around(values.shape, (node.attrs as { axis: number }).axis);
  const words = (inner * bytesPer[values.dtype]) / 4;
  const [pick, index, base, from, to] = Array.from({ length: 5 }, () => variable('i32'));
  const one: Code[] = [
    ...indexAt(pick.get, indices, picks.dtype, size, index),
    from.set(i32.add(base.get, i32.mul(index.get, i32.constant(4 * words)))),
    ...moveValues(from, x, to, y, words, 'copy', variable),
    move(pick, bytesPer[picks.dtype]),
    move(to, 4 * words),
  ];
  return [
    base.set(zero),
    to.set(zero),
    repeat(
      outer,
      [pick.set(zero), repeat(sizeOf(picks.shape), one, variable), move(base, 4 * words * size)],
      variable,
    ),
  ];
});

define(gathering.scatterRowsOp, ({ node, inputs: [indices, updates], outputs: [y] }, variable) => {
  const { shape } = node.attrs as { shape: Shape };
  const [picks] = node.inputs;
  const words = sizeOf(shape.slice(1));
  const [pick, index, from, to] = Array.from({ length: 4 }, () => variable('i32'));
  return [
    fillBytes(at(y), zero, i32.constant(4 * sizeOf(shape))),
    pick.set(zero),
    from.set(zero),
    repeat(
      sizeOf(picks.shape),
      [
        ...indexAt(pick.get, indices, picks.dtype, shape[0], index),
        to.set(i32.mul(index.get, i32.constant(4 * words))),
        ...moveValues(from, updates, to, y, words, 'add', variable),
        move(pick, bytesPer[picks.dtype]),
        move(from, 4 * words),
      ],
      variable,
    ),
  ];
});

/** Walks over indices and, along with them, over the tensor that they point into; `place` is where they point. */
function along(
  node: Node,
  picks: { address: number; dtype: 'int32' | 'int64'; shape: Shape },
  into: { address: number; shape: Shape; bytes: number },
  other: View,
  variable: Variable,
  body: (place: Code, offset: Code) => readonly Code[],
): Code {
  const { axis } = node.attrs as { axis: number };
  const strides = stridesOf(into.shape);
  const index = variable('i32');
  const views: View[] = [
    { address: picks.address, dtype: picks.dtype, strides: stridesOf(picks.shape) },
    { address: into.address, dtype: into.bytes === 8 ? 'int64' : 'float32', strides: strides.with(axis, 0) },
    other,
  ];
  return walk(picks.shape, views, { lanes: 1, variable }, (_, place) => [
    ...indexAt(place.offset(0), picks.address, picks.dtype, into.shape[axis], index),
    ...body(
      i32.add(place.offset(1), i32.mul(index.get, i32.constant(strides[axis] * into.bytes))),
      place.offset(2),
    ),
  ]);
}

define(gathering.takeAlongOp, ({ node, inputs: [x, indices], outputs: [y] }, variable) => {
  const [values, picks] = node.inputs;
  const out: View = { address: y, dtype: values.dtype, strides: stridesOf(picks.shape) };
  const bytes = bytesPer[values.dtype];
  return [
    along(
      node,
      { address: indices, dtype: picks.dtype as 'int64', shape: picks.shape },
      { address: x, shape: values.shape, bytes },
      out,
      variable,
      (place, offset) => [
        bytes === 8
          ? i64.store(offset, y, i64.load(place, x))
          : v128.storeLane(offset, y, v128.loadFirst(place, x), 0),
      ],
    ),
  ];
});

define(gathering.scatterAlongOp, ({ node, inputs: [indices, updates], outputs: [y] }, variable) => {
  const { shape } = node.attrs as { shape: Shape };
  const [picks] = node.inputs;
  const place = variable('i32');
  return [
    fillBytes(at(y), zero, i32.constant(4 * sizeOf(shape))),
    along(
      node,
      { address: indices, dtype: picks.dtype as 'int64', shape: picks.shape },
      { address: y, shape, bytes: 4 },
      { address: updates, dtype: 'float32', strides: stridesOf(picks.shape) },
      variable,
      (found, offset) => [
        place.set(found),
        v128.storeLane(
          place.get,
          y,
          f32x4.add(v128.loadFirst(place.get, y), v128.loadFirst(offset, updates)),
          0,
        ),
      ],
    ),
  ];
});

// ---- copies --------------------------------------------------------------------------------------------------------

/** Copies a box of values between two tensors, each with strides and a first place of its own. */
function copyBox(shape: Shape, from: View, to: View, variable: Variable): Code {
  return walk(shape, [from, to], { lanes: from.dtype === 'int64' ? 1 : 4, variable }, (_, place) => [
    place.store(1, place.load(0)),
  ]);
}

/** A tensor from a place on, with the strides of a whole one. */
const part = (address: number, node: Node['inputs'][number], start: readonly number[]): View => {
  const strides = stridesOf(node.shape);
  const offset = start.reduce((sum, n, axis) => sum + n * strides[axis], 0);
  return { address: address + offset * bytesPer[node.dtype], dtype: node.dtype, strides };
};

const startAlong = (rank: number, axis: number, start: number): number[] =>
  Array.from({ length: rank }, (_, i) => (i === axis ? start : 0));

define(shapes.transposeOp, ({ node, inputs: [x], outputs: [y] }, variable) => {
  const [from, to] = [node.inputs[0], node.outputs[0]];
  const { order } = node.attrs as { order: readonly number[] };
  const strides = stridesOf(from.shape);
  const turned = { address: x, dtype: from.dtype, strides: order.map(axis => strides[axis]) };
  return [copyBox(to.shape, turned, part(y, to, []), variable)];
});

define(shapes.splitOp, ({ node, inputs: [x], outputs }, variable) => {
  const { axis, sizes } = node.attrs as { axis: number; sizes: readonly number[] };
  let start = 0;
  return node.outputs.map((out, i) => {
    const from = part(x, node.inputs[0], startAlong(out.shape.length, axis, start));
    start += sizes[i];
    return outputs[i] < 0 ? [] : copyBox(out.shape, from, part(outputs[i], out, []), variable);
  });
});

define(shapes.concatOp, ({ node, inputs, outputs: [y] }, variable) => {
  const { axis } = node.attrs as { axis: number };
  const [out] = node.outputs;
  let start = 0;
  return node.inputs.map((x, i) => {
    const to = part(y, out, startAlong(out.shape.length, axis, start));
    start += x.shape[axis];
    // A part that was computed in its place needs no copy.
    return inputs[i] === to.address ? [] : copyBox(x.shape, part(inputs[i], x, []), to, variable);
  });
});

define(shapes.sliceOp, ({ node, inputs: [x], outputs: [y] }, variable) => {
  const { axes, starts } = node.attrs as { axes: readonly number[]; starts: readonly number[] };
  const [out] = node.outputs;
  const first = out.shape.map((_, axis) => starts[axes.indexOf(axis)] ?? 0);
  return [copyBox(out.shape, part(x, node.inputs[0], first), part(y, out, []), variable)];
});

define(shapes.padOp, ({ node, inputs: [x], outputs: [y] }, variable) => {
  const { before } = node.attrs as { before: readonly number[] };
  const [from, out] = [node.inputs[0], node.outputs[0]];
  return [
    fillBytes(at(y), zero, i32.constant(bytesPer[out.dtype] * sizeOf(out.shape))),
    copyBox(from.shape, part(x, from, []), part(y, out, before), variable),
  ];
});

/** So many bytes from one address to another, which may depend on an iteration: `step` bytes further each time. */
export function copyTo(
  to: number,
  from: number,
  bytes: number,
  moved?: { readonly iteration: number; readonly step: number },
): Code {
  if (bytes === 0) return [];
  const offset = moved ? i32.mul(i32.load(zero, moved.iteration), i32.constant(moved.step)) : zero;
  if (bytes === 4) return i32.store(offset, to, i32.load(zero, from));
  if (bytes === 8) return i64.store(offset, to, i64.load(zero, from));
  return copyBytes(i32.add(offset, at(to)), at(from), i32.constant(bytes));
}
