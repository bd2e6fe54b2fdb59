/**
 * Vector-Jacobian products: from the derivative of the loss by a node's outputs to that by its inputs.
 *
 * Written as graph expressions, so a derivative can itself be derived. Operators that are missing here (comparisons,
 * casts, argMax, stopGradient) pass nothing on.
 */
import type { Node, Operator, Tensor } from '../graph.ts';
import * as elementwise from '../ops/elementwise.ts';
import {
  add,
  and,
  cast,
  div,
  equal,
  exp,
  expand,
  greater,
  greaterEqual,
  less,
  lessEqual,
  log,
  max,
  mul,
  neg,
  pow,
  sigmoid,
  sub,
  where,
} from '../ops/elementwise.ts';
import * as gathering from '../ops/gather.ts';
import { gather, scatterAlong, scatterRows, takeAlong } from '../ops/gather.ts';
import * as products from '../ops/matmul.ts';
import { matmul } from '../ops/matmul.ts';
import * as reductions from '../ops/reduce.ts';
import { type ReduceAttrs, reduceMean, reduceSum } from '../ops/reduce.ts';
import * as shapes from '../ops/shape.ts';
import { concat, pad, reshape, slice, split, transpose } from '../ops/shape.ts';
import * as normalisers from '../ops/softmax.ts';
import { reducedShape } from '../shape.ts';
import { sumTo } from './sum-to.ts';

/** `g` is the derivative by the first output, `grads` those by all of them (undefined: the loss does not use it). */
export type Derivative<A> = (
  node: Node<A>,
  g: Tensor,
  grads: readonly (Tensor | undefined)[],
) => readonly (Tensor | undefined)[];

const table = new Map<Operator, Derivative<never>>();

function derive<A>(op: Operator<A>, derivative: Derivative<A>): void {
  table.set(op as Operator, derivative as Derivative<never>);
}

/** How derivatives pass through an operator; undefined where none do. */
export function derivativeOf(op: Operator): Derivative<unknown> | undefined {
  return table.get(op) as Derivative<unknown> | undefined;
}

// ---- value by value ------------------------------------------------------------------------------------------------

derive(elementwise.expandOp, ({ inputs: [x] }, g) => [sumTo(g, x.shape)]);
derive(elementwise.negOp, (_, g) => [neg(g)]);
derive(elementwise.expOp, ({ outputs: [y] }, g) => [mul(g, y)]);
derive(elementwise.logOp, ({ inputs: [x] }, g) => [div(g, x)]);
derive(elementwise.sqrtOp, ({ outputs: [y] }, g) => [div(mul(g, 0.5), y)]);
derive(elementwise.tanhOp, ({ outputs: [y] }, g) => [mul(g, sub(1, mul(y, y)))]);
derive(elementwise.sigmoidOp, ({ outputs: [y] }, g) => [mul(g, mul(y, sub(1, y)))]);
derive(elementwise.reluOp, ({ outputs: [y] }, g) => [where(greater(y, 0), g, 0)]);
derive(elementwise.erfOp, ({ inputs: [x] }, g) => [mul(g, mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI)))]);

derive(elementwise.geluTanhOp, ({ inputs: [x], outputs: [y] }, g) => {
  // With y = x σ(z): y' = σ + y (1 - σ) z'. What the forward pass had inside of it is computed again.
  const { cubic, scale } = elementwise.geluTanh;
  const slope = add(mul(mul(x, x), cubic), scale); // z / x
  const sigma = sigmoid(mul(x, slope));
  const byZ = sub(y, mul(y, sigma));
  return [mul(g, add(sigma, mul(byZ, sub(mul(slope, 3), 2 * scale))))];
});

derive(elementwise.addOp, ({ inputs: [a, b] }, g) => [sumTo(g, a.shape), sumTo(g, b.shape)]);
derive(elementwise.subOp, ({ inputs: [a, b] }, g) => [sumTo(g, a.shape), neg(sumTo(g, b.shape))]);
derive(elementwise.mulOp, ({ inputs: [a, b] }, g) => {
  // A square: one product instead of two and their sum.
  if (a === b) return [mul(mul(g, 2), a), undefined];
  return [sumTo(mul(g, b), a.shape), sumTo(mul(g, a), b.shape)];
});
derive(elementwise.divOp, ({ inputs: [a, b], outputs: [y] }, g) => {
  const byA = div(g, b);
  return [sumTo(byA, a.shape), neg(sumTo(mul(byA, y), b.shape))];
});
derive(elementwise.powOp, ({ inputs: [a, b], outputs: [y] }, g) => {
  // Where the base is not positive, the derivative by the exponent is taken as 0: log would make it NaN.
  const logA = log(where(greater(a, 0), a, 1));
  // x⁰ is 1 everywhere, also at 0, where 0·0⁻¹ would be NaN.
  const base = where(and(equal(a, 0), equal(b, 0)), 1, a);
  const byA = mul(b, pow(base, sub(b, 1)));
  return [sumTo(mul(g, byA), a.shape), sumTo(mul(g, mul(y, logA)), b.shape)];
});
derive(elementwise.minOp, ({ inputs: [a, b] }, g) => choose(lessEqual(a, b), g, a, b));
derive(elementwise.maxOp, ({ inputs: [a, b] }, g) => choose(greaterEqual(a, b), g, a, b));
derive(elementwise.clipOp, ({ inputs: [x, lo, hi], outputs: [y] }, g) => [
  where(equal(x, y), g, 0),
  // The upper bound wins where the bounds cross.
  reduceSum(where(and(less(x, lo), lessEqual(lo, hi)), g, 0)),
  reduceSum(where(greater(max(x, lo), hi), g, 0)),
]);
derive(elementwise.whereOp, ({ inputs: [condition, a, b] }, g) => [undefined, ...choose(condition, g, a, b)]);

/** The derivative goes to `a` where `first` holds, else to `b`. */
function choose(first: Tensor, g: Tensor, a: Tensor, b: Tensor): Tensor[] {
  return [sumTo(where(first, g, 0), a.shape), sumTo(where(first, 0, g), b.shape)];
}

// ---- moving values -------------------------------------------------------------------------------------------------

derive(shapes.reshapeOp, ({ inputs: [x] }, g) => [reshape(g, x.shape)]);
derive(shapes.transposeOp, ({ attrs: { order } }, g) => [
  transpose(
    g,
    order.map((_, axis) => order.indexOf(axis)),
  ),
]);
derive(shapes.concatOp, ({ inputs, attrs: { axis } }, g) =>
  split(
    g,
    inputs.map(x => x.shape[axis]),
    axis,
  ),
);
derive(shapes.splitOp, ({ outputs, attrs: { axis } }, _, grads) => [
  concat(
    outputs.map((y, i) => grads[i] ?? zerosLike(y)),
    axis,
  ),
]);
derive(shapes.sliceOp, ({ inputs: [x], attrs: { axes, starts, ends } }, g) => {
  const before = x.shape.map((_, axis) => starts[axes.indexOf(axis)] ?? 0);
  const after = x.shape.map((size, axis) => size - (ends[axes.indexOf(axis)] ?? size));
  return [pad(g, before, after)];
});
derive(shapes.padOp, ({ inputs: [x], attrs: { before } }, g) => [
  slice(
    g,
    before,
    before.map((n, axis) => n + x.shape[axis]),
  ),
]);

// ---- products ------------------------------------------------------------------------------------------------------

derive(products.matmulOp, ({ inputs: [a, b], attrs: { transposeA, transposeB } }, g) => {
  const byA = transposeA
    ? matmul(b, g, { transposeA: transposeB, transposeB: true })
    : matmul(g, b, { transposeB: !transposeB });
  const byB = transposeB
    ? matmul(g, a, { transposeA: true, transposeB: transposeA })
    : matmul(a, g, { transposeA: !transposeA });
  return [sumTo(byA, a.shape), sumTo(byB, b.shape)];
});
derive(products.linearOp, ({ inputs: [x, w, b], attrs: { transposeW } }, g) => [
  matmul(g, w, { transposeB: !transposeW }),
  transposeW ? matmul(g, x, { transposeA: true }) : matmul(x, g, { transposeA: true }),
  sumTo(g, b.shape),
]);

// ---- by index ------------------------------------------------------------------------------------------------------

derive(gathering.gatherOp, ({ inputs: [x, indices], attrs: { axis, distinct } }, g) => {
  if (axis === 0) return [scatterRows(indices, g, x.shape, { distinct }), undefined];
  // Scattering works on rows: bring the axis to the front and back.
  const rank = x.shape.length;
  const wide = indices.shape.length;
  const front = [...range(axis, axis + wide), ...range(0, axis), ...range(axis + wide, rank - 1 + wide)];
  const shape = [x.shape[axis], ...x.shape.slice(0, axis), ...x.shape.slice(axis + 1)];
  const rows = scatterRows(indices, transpose(g, front), shape, { distinct });
  return [transpose(rows, [...range(1, axis + 1), 0, ...range(axis + 1, rank)]), undefined];
});
derive(gathering.takeAlongOp, ({ inputs: [x, indices], attrs: { axis } }, g) => [
  scatterAlong(indices, g, axis, x.shape),
  undefined,
]);
derive(gathering.scatterRowsOp, ({ inputs: [indices], attrs: { distinct } }, g) => [
  undefined,
  gather(g, indices, 0, { distinct }),
]);
derive(gathering.scatterAlongOp, ({ inputs: [indices], attrs: { axis } }, g) => [
  undefined,
  takeAlong(g, indices, axis),
]);

// ---- reductions ----------------------------------------------------------------------------------------------------

/** A reduced tensor with its reduced axes back as size 1, so that it broadcasts; a scalar does as it is. */
function unreduced(x: Tensor, reduced: Tensor, { axes }: ReduceAttrs): Tensor {
  if (reduced.shape.length === 0) return reduced;
  return reshape(reduced, reducedShape(x.shape, axes, true));
}

derive(reductions.reduceSumOp, ({ inputs: [x], attrs }, g) => [expand(unreduced(x, g, attrs), x.shape)]);
derive(reductions.reduceMaxOp, ({ inputs: [x], outputs: [y], attrs }, g) => {
  const isTop = cast(equal(x, unreduced(x, y, attrs)), 'float32');
  const ties = reduceSum(isTop, { axes: attrs.axes, keepDims: true });
  return [mul(isTop, div(unreduced(x, g, attrs), ties))];
});
derive(reductions.sumSquaresOp, ({ inputs: [x], attrs }, g) => [mul(unreduced(x, mul(g, 2), attrs), x)]);
derive(reductions.l2NormOp, ({ inputs: [x], outputs: [y], attrs }, g) => {
  const safe = where(greater(y, 0), y, 1);
  return [mul(x, unreduced(x, div(g, safe), attrs))];
});

// ---- softmax, layerNorm --------------------------------------------------------------------------------------------

for (const op of [normalisers.softmaxOp, normalisers.maskedSoftmaxOp]) {
  derive(op, ({ outputs: [y], attrs: { axis } }, g) => {
    const weighted = mul(g, y);
    return [sub(weighted, mul(y, reduceSum(weighted, { axes: [axis], keepDims: true })))];
  });
}
derive(normalisers.logSoftmaxOp, ({ outputs: [y], attrs: { axis } }, g) => [
  sub(g, mul(exp(y), reduceSum(g, { axes: [axis], keepDims: true }))),
]);
derive(normalisers.layerNormOp, ({ inputs: [x, scale], outputs: [y, mean, invStd] }, _, grads) => {
  const g = grads[0] ?? zerosLike(y);
  const centred = sub(x, mean);
  const normal = mul(centred, invStd);
  const byNormal = mul(g, scale);
  const last = { axes: [-1], keepDims: true };
  const inner = sub(
    sub(byNormal, reduceMean(byNormal, last)),
    mul(normal, reduceMean(mul(byNormal, normal), last)),
  );
  let byX = mul(invStd, inner);
  // The mean and 1/std have derivatives of their own when this derivative is itself derived.
  const width = x.shape.at(-1)!;
  if (grads[1]) byX = add(byX, mul(grads[1], 1 / width));
  if (grads[2]) byX = sub(byX, mul(mul(grads[2], mul(invStd, mul(invStd, invStd))), mul(centred, 1 / width)));
  const rows = x.shape.slice(0, -1).map((_, axis) => axis);
  return [byX, reduceSum(mul(g, normal), { axes: rows }), reduceSum(g, { axes: rows })];
});

// ---- helpers -------------------------------------------------------------------------------------------------------

export function zerosLike(x: Tensor): Tensor {
  return expand(x.node.graph.constant(0, [], x.dtype), x.shape);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
