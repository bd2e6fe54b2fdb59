/** Sizes of a tensor's axes, outermost first; `[]` is a scalar. Shapes are static: known when a node is added. */
export type Shape = readonly number[];

import { fail } from './errors.ts';

/** `(64, 27)`; a scalar is `()`. */
export function showShape(shape: Shape): string {
  return `(${shape.join(', ')})`;
}

/** How many elements a tensor of this shape has. */
export function sizeOf(shape: Shape): number {
  let size = 1;
  for (const n of shape) size *= n;
  return size;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}

/** Refuses a shape that is not a list of whole numbers of at least 0, or that holds more than 2^31 - 1 values. */
export function checkShape(what: string, shape: Shape): void {
  for (const n of shape) {
    if (!Number.isSafeInteger(n) || n < 0) {
      fail(`${what}: shape ${showShape(shape)} has the size ${n}: sizes are whole numbers of at least 0`);
    }
  }
  if (sizeOf(shape) > 0x7fffffff) {
    fail(`${what}: shape ${showShape(shape)} holds ${sizeOf(shape)} values, more than 2147483647: split it`);
  }
}

/** The shape two operands broadcast to (NumPy's rule: aligned at the last axis, 1 stretches), if they do. */
export function tryBroadcast(a: Shape, b: Shape): Shape | undefined {
  const rank = Math.max(a.length, b.length);
  const out: number[] = new Array(rank);
  for (let i = 0; i < rank; i++) {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) return undefined;
    out[i] = x === 1 ? y : x;
  }
  return out;
}

/** The same, where anything else is an error of the operator `what`. */
export function broadcastShapes(what: string, a: Shape, b: Shape): Shape {
  const joint = tryBroadcast(a, b);
  if (joint) return joint;
  const rank = Math.max(a.length, b.length);
  const size = (shape: Shape, i: number): number => shape[shape.length - rank + i] ?? 1;
  const i = Array.from({ length: rank }, (_, k) => k).find(k => !tryBroadcast([size(a, k)], [size(b, k)]))!;
  return fail(
    `${what}: shapes ${showShape(a)} and ${showShape(b)} do not broadcast: ${size(a, i)} against ${size(b, i)} on axis ${i}`,
  );
}

/** An axis counted from the end made one counted from the start. */
export function normaliseAxis(what: string, axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= rank) {
    fail(`${what}: axis ${axis} is outside of a tensor with ${rank} axes: use ${-rank} to ${rank - 1}`);
  }
  return axis < 0 ? axis + rank : axis;
}

/** Sorted, distinct axes from the start; all of them when none are named. */
export function normaliseAxes(what: string, axes: readonly number[] | undefined, rank: number): number[] {
  if (axes === undefined) return Array.from({ length: rank }, (_, i) => i);
  const out = axes.map(axis => normaliseAxis(what, axis, rank)).sort((a, b) => a - b);
  if (new Set(out).size !== out.length) fail(`${what}: axes ${axes.join(', ')} name one axis twice`);
  return out;
}

/** The shape that is left when `axes` (sorted) are reduced. */
export function reducedShape(shape: Shape, axes: readonly number[], keepDims: boolean): Shape {
  if (keepDims) return shape.map((n, i) => (axes.includes(i) ? 1 : n));
  return shape.filter((_, i) => !axes.includes(i));
}

/** Elements between neighbours along each axis, for a tensor stored row by row. */
export function stridesOf(shape: Shape): number[] {
  const strides: number[] = new Array(shape.length);
  let stride = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}
