/**
 * Random graphs for WebAssembly programs, made to meet what src/engine/wasm/plan.ts decides: views of views, parts of
 * concats, loops over values that join, loops in loops whose carried values are captured, swapped and replaced in place,
 * and values that are read long after they were made.
 *
 * Shapes have few sizes, so that most values can be read as another's shape. Products and sums go through tanh, so that
 * float32 and float64 stay close.
 */
import {
  add,
  and,
  cast,
  concat,
  expand,
  Graph,
  gather,
  greater,
  l2Norm,
  less,
  linear,
  loop,
  matmul,
  max,
  min,
  mul,
  neg,
  not,
  pad,
  reduceMax,
  reduceMean,
  reduceSum,
  relu,
  reshape,
  type Shape,
  sigmoid,
  sizeOf,
  slice,
  softmax,
  split,
  stopGradient,
  sub,
  type Tensor,
  tanh,
  transpose,
  where,
} from '../../../src/engine/index.ts';
import type { Rng } from '../../../src/random/index.ts';

export interface RandomGraph {
  readonly graph: Graph;
  readonly feeds: Readonly<Record<string, Float32Array | BigInt64Array>>;
}

/** What can be read at one place of a graph; a loop's body has its own, which begins with some of what is around it. */
interface Scope {
  readonly floats: Tensor[];
  /** int64 scalars: trip counts and indices. */
  readonly wholes: Tensor[];
  /** How many loops are around it. */
  readonly depth: number;
}

const shapes: readonly Shape[] = [
  [],
  [1],
  [6],
  [2, 3],
  [3, 2],
  [1, 6],
  [6, 1],
  [20],
  [4, 5],
  [5, 4],
  [2, 2, 5],
  [1, 20],
  [12],
  [3, 4],
];
const MOST_NESTED = 3;
/** Values of one tensor at most; what is longer is cut, or left away. */
const LONGEST = 60;

/** A graph of three to sixteen steps, some of them loops, and one to five of its values as outputs. */
export function randomGraph(rng: Rng): RandomGraph {
  const graph = new Graph();
  const feeds: Record<string, Float32Array | BigInt64Array> = {};
  const floats = Array.from({ length: 2 + rng.integer(4) }, (_, i) => {
    const shape = pick(rng, shapes);
    feeds[`x${i}`] = Float32Array.from({ length: sizeOf(shape) }, () => (rng.integer(257) - 128) / 64);
    return graph.input(`x${i}`, shape, 'float32', { required: false });
  });
  feeds.count = BigInt64Array.of(BigInt(rng.integer(5)));
  const count = graph.input('count', [], 'int64', { required: false });
  const scope: Scope = { floats, wholes: [count], depth: 0 };
  for (let steps = 3 + rng.integer(14); steps > 0; steps--) grow(rng, scope);
  const outputs = new Set<Tensor>();
  for (let i = 1 + rng.integer(5); i > 0; i--) outputs.add(value(rng, scope));
  [...outputs].forEach((t, i) => {
    graph.output(`y${i}`, t);
  });
  if (chance(rng, 0.3)) graph.output('whole', pick(rng, scope.wholes));
  return { graph, feeds };
}

function pick<T>(rng: Rng, choices: readonly T[]): T {
  return choices[rng.integer(choices.length)];
}

function chance(rng: Rng, probability: number): boolean {
  return rng.uniform() < probability;
}

/** A value of the scope, one of the last few half of the time: deep graphs rather than wide ones. */
function value(rng: Rng, { floats }: Scope): Tensor {
  return chance(rng, 0.5) ? pick(rng, floats.slice(-5)) : pick(rng, floats);
}

const flat = (x: Tensor): Tensor => reshape(x, [sizeOf(x.shape)]);

/** `x` in another shape: the same values, some of them in a row, or one value everywhere. */
function fitted(rng: Rng, x: Tensor, shape: Shape): Tensor {
  const [has, needs] = [sizeOf(x.shape), sizeOf(shape)];
  if (has === needs) return reshape(x, shape);
  if (has === 1) return expand(reshape(x, []), shape);
  if (has < needs) return expand(mul(reduceSum(x), 0.1), shape);
  const start = rng.integer(has - needs + 1);
  const end = start + needs;
  if (chance(rng, 0.5)) return reshape(slice(flat(x), [start], [end]), shape);
  return reshape(split(flat(x), [start, needs, has - end], 0)[1], shape);
}

/** Adds one step to a scope, which makes a value or a few. */
function grow(rng: Rng, scope: Scope): void {
  const x = value(rng, scope);
  const makers = [forms, forms, forms, arithmetic, arithmetic, sums, products, indices];
  if (scope.depth < MOST_NESTED) makers.push(randomLoop);
  const made = pick(rng, makers)(rng, scope, x);
  scope.floats.push(...made.filter(t => sizeOf(t.shape) <= LONGEST));
}

/** Value by value, with operands of the same shape and such that broadcast. */
function arithmetic(rng: Rng, scope: Scope, x: Tensor): Tensor[] {
  const other = (shape = x.shape): Tensor => fitted(rng, value(rng, scope), shape);
  const rank = x.shape.length;
  const makers: (() => Tensor)[] = [
    () => tanh(x),
    () => sigmoid(x),
    () => neg(x),
    () => relu(x),
    () => mul(x, 0.5),
    () => add(x, other()),
    () => sub(x, other()),
    () => mul(tanh(x), other()),
    () => min(x, other()),
    () => max(other(), x),
    () => where(less(x, other()), x, other()),
    () => where(less(reduceSum(x), 0.3), x, mul(x, 0.3)),
    () => cast(and(greater(x, 0.1), not(less(other(), -0.7))), 'float32'),
    () => add(x, other([])),
    () => add(x, other(x.shape.slice(1))), // a row
    () => add(x, other(x.shape.map((n, axis) => (axis === 0 ? n : 1)))), // a column
    () => add(x, other([rank === 0 ? 1 : 2, ...x.shape])),
  ];
  return [pick(rng, makers)()];
}

/** The same values in another shape or order: views, copies, and concats whose parts may be computed in place. */
function forms(rng: Rng, scope: Scope, x: Tensor): Tensor[] {
  const size = sizeOf(x.shape);
  const rank = x.shape.length;
  const makers: (() => Tensor | readonly Tensor[])[] = [
    () => stopGradient(x),
    () => reshape(x, pick(rng, [[size], ...shapes.filter(shape => sizeOf(shape) === size)])),
    () => (rank >= 2 ? transpose(x) : tanh(x)),
    () => pad(fitted(rng, x, [6]), [rng.integer(3)], [rng.integer(3)]),
    () => {
      const [a, b] = [flat(x), flat(value(rng, scope))];
      const all = concat(
        pick(rng, [
          [a, b],
          [a, a],
          [a, b, a],
          [tanh(a), b],
          [a, mul(b, 0.7)],
          [tanh(a), concat([mul(b, 0.7), neg(a)], 0)],
          [concat([b, tanh(a)], 0), tanh(a)], // one part in two concats
        ]),
        0,
      );
      return sizeOf(all.shape) > 40 ? fitted(rng, all, [20]) : all;
    },
    () => {
      if (rank === 0) return neg(x);
      return concat([x, fitted(rng, value(rng, scope), x.shape)], rng.integer(rank));
    },
    () => {
      if (size === 1) return neg(x);
      const first = 1 + rng.integer(size - 1);
      const parts = split(flat(x), [first, size - first], 0);
      return chance(rng, 0.5) ? parts : pick(rng, parts);
    },
    () => {
      const axis = rng.integer(rank + 1);
      const along = x.shape[axis] ?? 1;
      return along === 1 ? neg(x) : split(x, [1, along - 1], axis);
    },
    () => {
      const axis = rng.integer(rank + 1);
      const along = x.shape[axis] ?? 1;
      if (along === 1) return relu(x);
      const start = rng.integer(along);
      return slice(x, [start], [start + 1 + rng.integer(along - start)], [axis]);
    },
  ];
  return [pick(rng, makers)()].flat();
}

/** Over one axis or over all. */
function sums(rng: Rng, _: Scope, x: Tensor): Tensor[] {
  const rank = x.shape.length;
  if (rank === 0) return [mul(x, 0.5)];
  const options = { axes: [rng.integer(rank)], keepDims: chance(rng, 0.5) };
  const makers: (() => Tensor)[] = [
    () => reduceSum(x),
    () => reduceSum(x, options),
    () => reduceMean(x, options),
    () => reduceMax(x, options),
    () => l2Norm(x, options),
    () => softmax(x, -1),
  ];
  return [pick(rng, makers)()];
}

function products(rng: Rng, scope: Scope, x: Tensor): Tensor[] {
  const other = (shape: Shape): Tensor => fitted(rng, value(rng, scope), shape);
  const a = x.shape.length === 2 ? x : fitted(rng, x, [4, 5]);
  const columns = pick(rng, [1, 2, 3, 5]);
  if (chance(rng, 0.4)) return [tanh(linear(a, other([a.shape[1], columns]), other([columns])))];
  const [transposeA, transposeB] = [chance(rng, 0.5), chance(rng, 0.5)];
  const inner = a.shape[transposeA ? 0 : 1];
  const b = other(transposeB ? [columns, inner] : [inner, columns]);
  return [tanh(matmul(a, b, { transposeA, transposeB }))];
}

/** Whole numbers: made of others, and as the place of a row. */
function indices(rng: Rng, { wholes }: Scope, x: Tensor): Tensor[] {
  const whole = pick(rng, wholes);
  if (x.shape.length > 0 && chance(rng, 0.6)) return [gather(x, min(max(whole, 0), x.shape[0] - 1))];
  const made = chance(rng, 0.5) ? add(whole, 1) : sub(1, whole);
  wholes.push(made);
  return [mul(cast(made, 'float32'), 0.2)];
}

/**
 * A loop that carries some values of the scope: as often as is fixed, as often as a tensor says (which may be 0 or less), or until
 * a condition is false. What it leaves is read by what comes after it.
 */
function randomLoop(rng: Rng, scope: Scope, x: Tensor): Tensor[] {
  const carried: Record<string, Tensor> = { c0: x };
  for (let i = 1 + rng.integer(4); i > 1; i--) {
    const t = value(rng, scope);
    carried[`c${i - 1}`] = chance(rng, 0.5) ? fitted(rng, t, x.shape) : t;
  }
  const names = Object.keys(carried);
  const initial = chance(rng, 0.3) ? { ...carried, whole: pick(rng, scope.wholes) } : carried;
  const { carry, scan, iterations } = loop<Record<string, Tensor>, Record<string, Tensor>>({
    trips: chance(rng, 0.5)
      ? 1 + rng.integer(4)
      : { count: pick(rng, scope.wholes), atMost: 3 + rng.integer(2) },
    carry: initial,
    body({ iteration, carry: old }) {
      const olds = names.map(name => old[name]);
      const inner: Scope = {
        floats: chance(rng, 0.5) ? [...scope.floats, ...olds] : olds.slice(),
        wholes: [...scope.wholes, iteration, ...(old.whole ? [old.whole] : [])],
        depth: scope.depth + 1,
      };
      for (let steps = rng.integer(8); steps > 0; steps--) grow(rng, inner);
      const next: Record<string, Tensor> = {};
      for (const name of names) {
        const before = Object.values(next);
        const again = before.length > 0 && chance(rng, 0.2);
        next[name] = again
          ? fitted(rng, pick(rng, before), old[name].shape)
          : nextValue(rng, inner, olds, old[name]);
      }
      const scans = Array.from({ length: rng.integer(3) }, (_, i) => [
        `s${i}`,
        pick(rng, [...inner.floats.slice(-6), ...Object.values(next)]),
      ]);
      return {
        carry: old.whole
          ? { ...next, whole: pick(rng, [old.whole, add(old.whole, 1), iteration, inner.wholes.at(-1)!]) }
          : next,
        scan: Object.fromEntries(scans),
        ...(chance(rng, 0.4) && { goOn: condition(rng, chance(rng, 0.3) ? scope : inner) }),
      };
    },
  });
  scope.wholes.push(iterations, ...(carry.whole ? [carry.whole] : []));
  const stacked = Object.values(scan).map(t => (sizeOf(t.shape) > LONGEST ? fitted(rng, t, [20]) : t));
  return [...names.map(name => carry[name]), ...stacked];
}

/** What a carried value becomes: another carried value, itself changed in place or through a view, or any value. */
function nextValue(rng: Rng, scope: Scope, olds: readonly Tensor[], old: Tensor): Tensor {
  const { shape } = old;
  const any = (): Tensor => fitted(rng, pick(rng, scope.floats), shape);
  const makers: (() => Tensor)[] = [
    () => fitted(rng, pick(rng, olds), shape),
    () => tanh(add(old, mul(any(), 0.5))),
    () => tanh(add(old, mul(any(), 0.5))),
    () => reshape(tanh(mul(flat(old), 0.9)), shape),
    () => tanh(any()),
    any,
  ];
  return pick(rng, makers)();
}

function condition(rng: Rng, scope: Scope): Tensor {
  return less(reduceMean(tanh(value(rng, scope))), pick(rng, [0.1, 0.5]));
}
