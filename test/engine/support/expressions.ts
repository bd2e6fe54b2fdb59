/**
 * Random expressions, made to meet the engine's simplifications: neutral and absorbing constants, chains of signs and
 * factors, expands that broadcast, reductions of repeats, masks, concats that come apart, loops around all of it.
 *
 * An expression is a list of numbers (genes) that is decoded the same way whatever it is built on, so one list makes a
 * graph and also its naive values. Decoding looks at shapes only.
 */
import type { Ops, Typed } from './ops.ts';

/** Reads choices off a list of genes; 0 when they are used up, so that a shorter list is a simpler expression. */
class Genes {
  readonly #genes: readonly number[];
  #at: number;

  constructor(genes: readonly number[], at = 0) {
    this.#genes = genes;
    this.#at = at;
  }

  below(n: number): number {
    return (this.#genes[this.#at++] ?? 0) % n;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)];
  }

  coin(): boolean {
    return this.below(2) === 1;
  }

  get left(): boolean {
    return this.#at < this.#genes.length;
  }

  /** The next `n` genes as a list of their own, which can be read more than once. */
  take(n: number): readonly number[] {
    const taken = this.#genes.slice(this.#at, this.#at + n);
    this.#at += n;
    return taken;
  }
}

/** Inputs of every expression. Sizes are 1, 2 and 3, so that most pairs broadcast. */
export const inputTypes = {
  a: { shape: [2, 3], dtype: 'float32' },
  b: { shape: [3], dtype: 'float32' },
  c: { shape: [2, 1], dtype: 'float32' },
  s: { shape: [], dtype: 'float32' },
  n: { shape: [], dtype: 'int64' },
  m: { shape: [2, 3], dtype: 'bool' },
} as const;

export const floatInputs = ['a', 'b', 'c', 's'] as const;

type Inputs<T> = Readonly<Record<keyof typeof inputTypes, T>>;

const factors = [0, 1, -1, 2, -0.5, 1, -1];
const addends = [0, 0, 1, -1, 0.75];

/** Decodes an expression: a scalar that depends on the last few values made, and these values. */
export function decode<T extends Typed>(
  k: Ops<T>,
  inputs: Inputs<T>,
  genes: readonly number[],
): { loss: T; values: T[] } {
  const source = new Genes(genes);
  const pool: T[] = floatInputs.map(name => inputs[name]);
  const start = pool.length;
  while (source.left && pool.length < start + 24) grow(k, pool, inputs, source, 0);
  const values = pool.slice(start).slice(-4);
  if (values.length === 0) values.push(inputs.s);
  const loss = values.map((v, i) => k.reduceSum(i % 2 ? k.mul(v, v) : v)).reduce((x, y) => k.add(x, y));
  return { loss, values };
}

/** Adds one value (or a few) to the pool. */
function grow<T extends Typed>(k: Ops<T>, pool: T[], inputs: Inputs<T>, g: Genes, depth: number): void {
  // Late values twice as likely: deep expressions rather than wide ones.
  const value = (): T =>
    g.coin() ? pool[pool.length - 1 - g.below(Math.min(4, pool.length))] : g.pick(pool);
  const scalar = (x: T): T => k.reduceMean(x);
  /** Another value that x broadcasts with. */
  const partner = (x: T): T => {
    const other = value();
    return broadcasts(x.shape, other.shape) && joint(x.shape, other.shape).length <= 4
      ? other
      : scalar(other);
  };
  const full = (n: number, shape: readonly number[]): T =>
    k.constant(Array(shape.reduce((p, q) => p * q, 1)).fill(n), shape);
  /** A constant as a number, as a scalar, in full, or as an expand. */
  const constantLike = (n: number, x: T): T | number => {
    const shape = g.pick([x.shape, x.shape, [1, ...x.shape], x.shape.map(() => 1), [1]]);
    return g.pick([
      () => n,
      () => full(n, []),
      () => full(n, shape),
      () => k.expand(full(n, []), shape),
      () => k.expand(full(n, [1]), shape.length === 0 ? [1] : shape),
    ])();
  };
  const axesOf = (x: T): { axes?: number[]; keepDims: boolean } => {
    const keepDims = g.coin();
    const axes = x.shape.map((_, i) => i).filter(() => g.coin());
    return axes.length === 0 ? { keepDims } : { axes, keepDims };
  };
  const condition = (x: T): T => {
    const compare = g.pick([k.less, k.lessEqual, k.greater, k.greaterEqual, k.equal]);
    return g.pick([
      () => compare(x, 0),
      () => compare(x, partner(x)),
      () => k.not(compare(x, 0.5)),
      () => k.and(compare(x, 0), k.less(x, 1)),
      () => k.or(compare(x, 1), k.less(x, 0)),
      () => (stretches(x.shape, [2, 3]) ? inputs.m : compare(x, 0)),
      () => k.constant([g.below(2)], [], 'bool'),
    ])();
  };
  /** Kept small: exp and products of products would leave float32 otherwise. */
  const tame = (x: T): T => k.tanh(x);

  const makers: (() => T | readonly T[])[] = [
    // Signs, factors and neutral operands.
    () => k.neg(value()),
    () => {
      const x = value();
      return k.neg(k.expand(k.neg(x), wider(x.shape)));
    },
    () => {
      const [x, n] = [value(), g.pick(factors)];
      return g.coin() ? k.mul(x, constantLike(n, x)) : k.mul(constantLike(n, x), x);
    },
    () => {
      const [x, n] = [value(), g.pick(factors)];
      return k.mul(k.mul(x, constantLike(n, x)), g.pick(factors));
    },
    () => {
      const [x, n] = [value(), g.pick(addends)];
      return g.coin() ? k.add(x, constantLike(n, x)) : k.add(constantLike(n, x), x);
    },
    () => {
      const [x, n] = [value(), g.pick(addends)];
      return g.coin() ? k.sub(x, constantLike(n, x)) : k.sub(constantLike(n, x), x);
    },
    () => {
      const x = value();
      return k.div(x, constantLike(g.pick([1, -1, 2, -0.5]), x));
    },
    () => {
      const x = value();
      return k.div(constantLike(g.pick([0, 1, -1, 2]), x), k.add(k.mul(x, x), 0.5));
    },
    () => {
      const [x, y] = [value(), value()];
      const other = broadcasts(x.shape, y.shape) ? y : scalar(y);
      return k.mul(k.mul(x, g.pick(factors)), k.mul(other, g.pick(factors)));
    },
    // Value by value.
    () => {
      const x = value();
      return g.pick([k.tanh, k.sigmoid, k.erf, k.relu])(x);
    },
    () => k.exp(tame(value())),
    () => {
      const x = value();
      return g.pick([k.sqrt, k.log])(k.add(k.mul(x, x), 0.5));
    },
    () => k.gelu(value(), { approximate: g.pick(['none', 'tanh']) }),
    () => {
      const x = value();
      return g.pick([k.add, k.sub, k.mul, k.min, k.max])(x, partner(x));
    },
    () => {
      const x = value();
      return g.pick([k.add, k.sub, k.mul, k.min, k.max])(partner(x), x);
    },
    () => {
      const x = value();
      const y = partner(x);
      return k.div(x, k.add(k.mul(y, y), 0.5));
    },
    () => {
      const x = value();
      return g.pick([
        () => k.pow(x, 1),
        () => k.pow(x, 2),
        () => k.pow(x, 3),
        () => k.pow(k.add(k.mul(x, x), 0.5), -0.5),
        () => k.pow(k.add(k.sigmoid(x), 0.5), tame(partner(x))),
      ])();
    },
    () => {
      const x = value();
      return g.pick([
        () => k.clip(x, -0.5, 0.5),
        () => k.clip(k.expand(x, wider(x.shape)), -0.5, 2),
        () => k.clip(x, -1, scalar(k.add(k.mul(x, x), 0.25))),
      ])();
    },
    () => {
      const x = value();
      const c = condition(x);
      return g.pick([
        () => {
          const y = partner(x);
          return k.where(c, x, broadcasts(y.shape, c.shape) ? y : scalar(y));
        },
        () => k.where(c, x, 0),
        () => k.where(c, constantLike(0, x), x),
        () => k.where(c, g.pick(factors), 0),
        () => k.mul(k.where(c, constantLike(g.pick(factors), x), 0), x),
        () => k.where(c, k.expand(full(2, []), x.shape), k.expand(full(0, []), x.shape)),
        () => k.cast(c, 'float32'),
      ])();
    },
    // Expands, and what meets them.
    () => {
      const x = value();
      const wide = x.shape.map((n, i) => (n === 1 && g.coin() ? 2 + (i % 2) : n));
      return k.expand(x, g.coin() && wide.length < 4 ? [2, ...wide] : wide);
    },
    () => {
      const own = value();
      const x = k.expand(stretches(own.shape, [2, 3]) ? own : scalar(own), [2, 3]);
      return g.pick([k.add, k.sub, k.mul, k.max])(x, g.coin() ? k.expand(inputs.s, [2, 3]) : x);
    },
    () => {
      const x = value();
      const wide = wider(x.shape);
      const reduce = g.pick([k.reduceSum, k.reduceMean, k.reduceMax]);
      const y = k.expand(x, wide);
      return reduce(g.coin() ? k.mul(y, y) : g.coin() ? k.neg(y) : y, axesOf(y));
    },
    // Reductions.
    () => {
      const x = value();
      return g.pick([k.reduceSum, k.reduceMean, k.reduceMax])(x, axesOf(x));
    },
    () => {
      const x = value();
      return k.reduceSum(k.mul(x, x), axesOf(x));
    },
    () => {
      const x = value();
      return k.l2Norm(k.add(k.mul(x, x), 0.25), axesOf(x));
    },
    () => {
      const x = value();
      if (x.shape.length === 0) return k.sigmoid(x);
      const axis = g.below(x.shape.length);
      return g.pick([k.softmax, k.logSoftmax])(x, axis);
    },
    () => {
      const x = value();
      const width = x.shape.at(-1);
      if (width === undefined || width < 2) return k.tanh(x);
      const row = (n: number): T => (g.coin() ? full(n, [width]) : k.expand(full(n, []), [width]));
      return k.layerNorm(x, row(g.pick([1, -2])), row(g.pick([0, 1])), 0.5);
    },
    // Moving values.
    () => {
      const x = value();
      return k.reshape(g.coin() ? k.reshape(x, [-1]) : x, g.pick([[-1], [1, -1], [-1, 1], [...x.shape, 1]]));
    },
    () => {
      const x = value();
      if (x.shape.length < 2) return k.neg(x);
      return g.coin() ? k.transpose(x) : k.transpose(k.transpose(x), [...x.shape.keys()].reverse());
    },
    () => {
      const x = value();
      if (x.shape.length === 0) return k.add(x, x);
      const axis = g.below(x.shape.length);
      const joined = k.concat([x, k.mul(x, g.pick(factors)), x].slice(g.below(2)), axis);
      const size = joined.shape[axis];
      return g.pick([
        () => joined,
        () => k.split(joined, [x.shape[axis], size - x.shape[axis]], axis)[g.below(2)],
        () => k.split(joined, Array(size / x.shape[axis]).fill(x.shape[axis]), axis)[g.below(2)],
        () => k.slice(joined, [1], [size], [axis]),
      ])();
    },
    () => {
      const x = value();
      if (x.shape.length === 0) return k.sub(x, x);
      const axis = g.below(x.shape.length);
      const [before, after] = [x.shape.map((_, i) => Number(i === axis)), x.shape.map(() => g.below(2))];
      return g.coin()
        ? k.pad(x, before, after)
        : k.slice(
            k.pad(x, before, after),
            before,
            before.map((n, i) => n + x.shape[i]),
          );
    },
    () => {
      const x = value();
      if (x.shape.length === 0) return k.mul(x, x);
      const axis = g.below(x.shape.length);
      const which = g.pick([[0], [0, -1], [-1, 0, 0]]);
      const shape = g.coin() || which.length > 1 ? [which.length] : [];
      return k.gather(x, k.constant(which, shape, 'int64'), axis);
    },
    () => {
      const x = value();
      if (x.shape.length === 0) return k.neg(x);
      const own = x.shape.map(() => 1).with(-1, 2);
      return k.takeAlong(x, k.constant([0, -1], own, 'int64'), -1);
    },
    // Products.
    () => {
      const x = value();
      if (x.shape.length < 2) return k.mul(x, 2);
      const y = g.coin() ? x : k.tanh(x);
      return g.pick([
        () => k.matmul(x, y, { transposeB: true }),
        () => k.matmul(x, y, { transposeA: true }),
        () => k.matmul(x, k.transpose(y)),
        () => k.matmul(k.transpose(x), y),
        () => k.matmul(k.transpose(x), k.transpose(y), { transposeB: true }),
      ])();
    },
    () => {
      const x = value();
      const inner = x.shape.at(-1);
      if (inner === undefined || inner > 3) return k.tanh(x);
      const w = k.slice(k.concat([inputs.a, inputs.a], 0), [0], [inner]);
      return x.shape.length === 2 && g.coin()
        ? k.linear(x, w, g.coin() ? inputs.b : k.expand(inputs.s, [3]))
        : k.matmul(x.shape.length === 1 ? k.reshape(x, [1, inner]) : x, w);
    },
    // Loops.
    () => loops(k, pool, inputs, g, depth),
    () => loops(k, pool, inputs, g, depth),
  ];
  const made = makers[g.below(makers.length)]();
  const list: readonly T[] = Array.isArray(made) ? made : [made as T];
  pool.push(...list.map(x => (size(x) > 48 ? k.reduceMean(x, { axes: [0] }) : x)));
}

/** A loop over one or two values of the pool, whose body is again a random expression. */
function loops<T extends Typed>(
  k: Ops<T>,
  pool: readonly T[],
  inputs: Inputs<T>,
  g: Genes,
  depth: number,
): T | readonly T[] {
  const carried = [g.pick(pool), g.pick(pool)].slice(g.below(2));
  if (depth >= 2) return k.tanh(carried[0]);
  const genes = g.take(12);
  const outer = [...pool];
  const styles = carried.map(() => g.below(8));
  const scanned = g.below(4);
  const ends = g.below(4);
  const trips = g.pick([1, 2, 3, { count: inputs.n, atMost: 3 }, { count: inputs.n, atMost: 2 }]);
  const result = k.loop({
    trips,
    carry: Object.fromEntries(carried.map((x, i) => [`x${i}`, x])),
    body: ({ iteration, carry }) => {
      const own = carried.map((_, i) => carry[`x${i}`]);
      const inner: T[] = [...outer.slice(-4), k.cast(iteration, 'float32'), ...own];
      const from = inner.length;
      const source = new Genes(genes);
      while (source.left && inner.length < from + 4) grow(k, inner, inputs, source, depth + 1);
      const last = inner.at(-1)!;
      /** Something of the carried shape that stays small. */
      const next = own.map((x, i): T => {
        const mean = k.reduceMean(k.tanh(last));
        const same = outer.find(t => sameShape(t.shape, x.shape) && t.dtype === x.dtype);
        switch (styles[i]) {
          case 0:
            return x;
          case 1:
            return same ?? x;
          case 2:
            // A scalar stands for the carried shape.
            return mean;
          case 3:
            return k.expand(k.constant([0.5], []), x.shape);
          case 4:
            return sameShape(own[0].shape, x.shape) ? own[0] : x;
          case 5:
            return sameShape(last.shape, x.shape) ? k.tanh(last) : k.mul(x, mean);
          default:
            return k.tanh(k.add(x, mean));
        }
      });
      return {
        carry: Object.fromEntries(next.map((x, i) => [`x${i}`, x])),
        ...(scanned > 0
          ? { scan: { s: scanned === 1 ? last : k.mul(last, -2), t: scanned === 2 ? own[0] : outer[0] } }
          : {}),
        ...(ends === 1 ? { goOn: k.less(iteration, 1) } : {}),
        ...(ends === 2 ? { goOn: k.less(k.reduceMean(next[0]), 0.25) } : {}),
      };
    },
  });
  const outs = Object.values(result.carry);
  return [...outs, ...Object.values(result.scan).slice(0, 1), k.cast(result.iterations, 'float32')].slice(
    0,
    1 + g.below(4),
  );
}

function size(x: Typed): number {
  return x.shape.reduce((p, q) => p * q, 1);
}

function wider(shape: readonly number[]): readonly number[] {
  return shape.length < 4 ? [2, ...shape] : shape;
}

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}

function joint(a: readonly number[], b: readonly number[]): readonly number[] {
  return a.length > b.length ? a : b;
}

function stretches(from: readonly number[], to: readonly number[]): boolean {
  return from.length <= to.length && from.every((n, i) => n === 1 || n === to[to.length - from.length + i]);
}

function broadcasts(a: readonly number[], b: readonly number[]): boolean {
  for (let i = 1; i <= Math.min(a.length, b.length); i++) {
    const [x, y] = [a.at(-i)!, b.at(-i)!];
    if (x !== y && x !== 1 && y !== 1) return false;
  }
  return true;
}
