/** Loops over tensors in memory: the same places of several of them, read and written in step. */
import type { DType } from '../dtype.ts';
import { type Shape, stridesOf } from '../shape.ts';
import type { Variable } from './mathematics.ts';
import { type Code, i32, i64, type Local, repeatWhile, v128 } from './module.ts';

/** Bytes of one value in the program's memory: a bool is a mask of a whole lane there. */
export const bytesPer: Readonly<Record<DType, number>> = { float32: 4, int32: 4, bool: 4, int64: 8 };

/** A tensor, or a part of one, as a loop walks over it. */
export interface View {
  readonly address: number;
  readonly dtype: DType;
  /** Values to the next place along each axis of the loop; 0 repeats. */
  readonly strides: readonly number[];
}

/** How many values are computed at once. */
export type Lanes = 1 | 4;

/** What the body of a loop does with the k-th view at its present place. */
export interface Place {
  /** A vector (an i64 for int64); of one value, the first lane. */
  load(k: number): Code;
  store(k: number, value: Code): Code;
  /** Where the value is, less `address` of the view. */
  offset(k: number): Code;
}

/** The strides of a tensor whose shape broadcasts to `shape`. */
export function broadcastStrides(own: Shape, shape: Shape): number[] {
  const strides = stridesOf(own);
  return shape.map((_, axis) => {
    const at = axis - (shape.length - own.length);
    return at < 0 || own[at] === 1 ? 0 : strides[at];
  });
}

/** Axes of size 1 dropped, and neighbours made one where every view goes straight on from one to the other. */
function collapsed(shape: Shape, views: readonly View[]): { dims: number[]; strides: number[][] } {
  const dims: number[] = [];
  const strides: number[][] = views.map(() => []);
  for (const [axis, size] of shape.entries()) {
    if (size === 1) continue;
    const goesOn =
      dims.length > 0 && views.every((view, k) => strides[k].at(-1) === view.strides[axis] * size);
    if (goesOn) dims[dims.length - 1] *= size;
    else dims.push(size);
    views.forEach((view, k) => {
      if (goesOn) strides[k][dims.length - 1] = view.strides[axis];
      else strides[k].push(view.strides[axis]);
    });
  }
  return { dims, strides };
}

/** The statements so many times; `counter` is a variable of its own. */
export function repeat(times: number, statements: readonly Code[], variable: Variable): Code {
  if (times === 0) return [];
  if (times === 1) return statements.flat();
  const counter = variable('i32');
  return [
    ...counter.set(i32.constant(times)),
    ...repeatWhile(counter.get, [...statements, counter.set(i32.sub(counter.get, i32.constant(1)))]),
  ];
}

/**
 * Walks over all places of `shape`, four at a time along the last axis where `lanes` allows and all views lie there
 * without gaps (or repeat one value), and one by one in the rest.
 */
export function walk(
  shape: Shape,
  views: readonly View[],
  options: { readonly lanes: Lanes; readonly variable: Variable },
  body: (lanes: Lanes, place: Place) => readonly Code[],
): Code {
  const { variable } = options;
  if (shape.includes(0)) return [];
  const { dims, strides } = collapsed(shape, views);
  const inner = dims.length - 1;
  const isWide =
    options.lanes === 4 && inner >= 0 && strides.every(own => own[inner] === 0 || own[inner] === 1);
  // Views that move alike share a pointer.
  const pointers = new Map<string, { readonly local: Local; readonly steps: readonly number[] }>();
  const pointerOf = views.map(({ dtype }, k) => {
    const steps = strides[k].map(stride => stride * bytesPer[dtype]);
    if (steps.every(step => step === 0)) return undefined;
    const key = steps.join();
    if (!pointers.has(key)) pointers.set(key, { local: variable('i32'), steps });
    return pointers.get(key);
  });
  const moved = (by: (steps: readonly number[]) => number): Code[] =>
    [...pointers.values()].flatMap(({ local, steps }) => {
      const bytes = by(steps);
      return bytes === 0 ? [] : [local.set(i32.add(local.get, i32.constant(bytes)))];
    });
  const offset = (k: number): Code => pointerOf[k]?.local.get ?? i32.constant(0);
  const placeOf = (lanes: Lanes): Place => ({
    offset,
    load(k) {
      const { address, dtype } = views[k];
      if (dtype === 'int64') return i64.load(offset(k), address);
      if (lanes === 1) return v128.loadFirst(offset(k), address);
      return strides[k][inner] === 0 ? v128.loadSplat(offset(k), address) : v128.load(offset(k), address);
    },
    store(k, value) {
      const { address, dtype } = views[k];
      if (dtype === 'int64') return i64.store(offset(k), address, value);
      return lanes === 1
        ? v128.storeLane(offset(k), address, value, 0)
        : v128.store(offset(k), address, value);
    },
  });
  const level = (axis: number): Code[] => {
    if (inner < 0) return [...body(1, placeOf(1))];
    const size = dims[axis];
    if (axis < inner) {
      const after = moved(steps => steps[axis] - dims[axis + 1] * steps[axis + 1]);
      return [repeat(size, [...level(axis + 1), ...after], variable)];
    }
    const wide = isWide ? size >> 2 : 0;
    return [
      wide === 0 ? [] : repeat(wide, [...body(4, placeOf(4)), ...moved(steps => 4 * steps[inner])], variable),
      size === 4 * wide
        ? []
        : repeat(size - 4 * wide, [...body(1, placeOf(1)), ...moved(steps => steps[inner])], variable),
    ];
  };
  return [...[...pointers.values()].flatMap(({ local }) => local.set(i32.constant(0))), ...level(0).flat()];
}
