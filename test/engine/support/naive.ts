/**
 * Every operator once more, in plain JavaScript on plain arrays, from the definitions.
 *
 * It shares nothing with the engine but types: no strides, no simplification, one index at a time. What the reference
 * interpreter and the ONNX writer could get wrong together shows up as a difference to this.
 */
import type { DType } from '../../../src/engine/index.ts';
import type { LoopSpec, Ops } from './ops.ts';

export interface Value {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly data: readonly number[];
}

type Index = readonly number[];

/** What happened on the way, for tests that differentiate numerically. */
export interface Trace {
  /** The sign of every comparison that a value depended on; equal traces mean the same branches. */
  readonly branches: number[];
  /** The largest magnitude of any value. */
  largest: number;
}

export function value(data: readonly number[], shape: readonly number[], dtype: DType = 'float32'): Value {
  if (count(shape) !== data.length) throw new Error(`${data.length} values for (${shape})`);
  return { shape, dtype, data };
}

export function count(shape: readonly number[]): number {
  return shape.reduce((product, n) => product * n, 1);
}

/** All indices of a shape, the last axis fastest. */
function indices(shape: readonly number[]): Index[] {
  return shape.reduce<Index[]>(
    (prefixes, n) => prefixes.flatMap(prefix => Array.from({ length: n }, (_, i) => [...prefix, i])),
    [[]],
  );
}

/** The value at an index; axes of size 1 stand for all, and missing outer axes, too. */
function at(x: Value, index: Index): number {
  const own = index.slice(index.length - x.shape.length);
  let place = 0;
  own.forEach((i, axis) => {
    place = place * x.shape[axis] + (x.shape[axis] === 1 ? 0 : i);
  });
  return x.data[place];
}

/** A value from a formula for each index. */
function tabulate(shape: readonly number[], dtype: DType, f: (index: Index) => number): Value {
  return { shape: [...shape], dtype, data: indices(shape).map(f) };
}

function joint(...shapes: (readonly number[])[]): number[] {
  const rank = Math.max(...shapes.map(s => s.length));
  return Array.from({ length: rank }, (_, i) => {
    const sizes = shapes.map(s => s[s.length - rank + i] ?? 1).filter(n => n !== 1);
    if (sizes.some(n => n !== sizes[0])) throw new Error(`${shapes.join(' | ')} do not broadcast`);
    return sizes[0] ?? 1;
  });
}

const fromEnd = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** erf by Simpson's rule on its definition: slow, and nothing like a series or a continued fraction. */
export function erfByIntegral(x: number): number {
  const bounded = Math.max(-6.5, Math.min(6.5, x));
  const steps = 2000;
  const h = bounded / steps;
  let sum = 1 + Math.exp(-bounded * bounded);
  for (let i = 1; i < steps; i++) sum += (i % 2 ? 4 : 2) * Math.exp(-((i * h) ** 2));
  return ((2 / Math.sqrt(Math.PI)) * sum * h) / 3;
}

export function naiveOps(trace: Trace = { branches: [], largest: 0 }): Ops<Value> {
  const branch = (difference: number): number => {
    const sign = Math.sign(difference);
    trace.branches.push(sign);
    return sign;
  };
  const noted = (x: Value): Value => {
    for (const v of x.data) trace.largest = Math.max(trace.largest, Number.isNaN(v) ? Infinity : Math.abs(v));
    return x;
  };
  const operands = (...xs: (Value | number)[]): Value[] => {
    const dtype = xs.find((x): x is Value => typeof x !== 'number')?.dtype ?? 'float32';
    return xs.map(x => (typeof x === 'number' ? value([x], [], dtype) : x));
  };
  const map = (x: Value, f: (v: number) => number): Value => noted({ ...x, data: x.data.map(f) });
  const zip = (
    a: Value | number,
    b: Value | number,
    f: (a: number, b: number) => number,
    as?: DType,
  ): Value => {
    const [x, y] = operands(a, b);
    const dtype = as ?? x.dtype;
    const whole = dtype === 'int32' || dtype === 'int64';
    return noted(
      tabulate(joint(x.shape, y.shape), dtype, i => {
        const v = f(at(x, i), at(y, i));
        return whole ? Math.trunc(v) : v;
      }),
    );
  };
  const compare =
    (holds: (sign: number) => boolean) =>
    (a: Value | number, b: Value | number): Value =>
      zip(a, b, (x, y) => (holds(branch(x - y)) ? 1 : 0), 'bool');

  /** Groups the values of x by what is left of their index when `axes` are reduced. */
  const reduce = (
    x: Value,
    { axes, keepDims = false }: { axes?: readonly number[]; keepDims?: boolean } = {},
    f: (values: number[]) => number,
  ): Value => {
    const gone = new Set((axes ?? x.shape.map((_, i) => i)).map(axis => fromEnd(axis, x.shape.length)));
    const reduced = (index: Index): Index =>
      keepDims
        ? index.map((i, axis) => (gone.has(axis) ? 0 : i))
        : index.filter((_, axis) => !gone.has(axis));
    const shape = keepDims
      ? x.shape.map((n, axis) => (gone.has(axis) ? 1 : n))
      : x.shape.filter((_, axis) => !gone.has(axis));
    const groups = new Map<string, number[]>(indices(shape).map(index => [index.join(), []]));
    indices(x.shape).forEach((index, i) => {
      groups.get(reduced(index).join())!.push(x.data[i]);
    });
    return noted({ shape, dtype: x.dtype, data: [...groups.values()].map(f) });
  };
  const largestOf = (values: number[]): number => {
    let best = values[0];
    for (const v of values.slice(1)) if (branch(v - best) > 0) best = v;
    return best;
  };
  /** Replaces every line along an axis by `f` of it. */
  const lines = (x: Value, axis: number, f: (line: number[]) => number[]): Value => {
    const along = fromEnd(axis, x.shape.length);
    const others = x.shape.map((n, i) => (i === along ? 1 : n));
    const out = new Map<string, number>();
    for (const start of indices(others)) {
      const places = Array.from({ length: x.shape[along] }, (_, i) => start.with(along, i));
      f(places.map(place => at(x, place))).forEach((v, i) => {
        out.set(places[i].join(), v);
      });
    }
    return noted(tabulate(x.shape, x.dtype, index => out.get(index.join())!));
  };
  const total = (values: number[]): number => values.reduce((a, b) => a + b, 0);
  const softmaxOf = (x: Value, axis = -1): Value =>
    lines(x, axis, line => {
      const top = Math.max(...line);
      const sum = total(line.map(v => Math.exp(v - top)));
      return line.map(v => Math.exp(v - top) / sum);
    });

  const ops: Ops<Value> = {
    constant: (values, shape, dtype = 'float32') => value(values, shape, dtype),

    add: (a, b) => zip(a, b, (x, y) => x + y),
    sub: (a, b) => zip(a, b, (x, y) => x - y),
    mul: (a, b) => zip(a, b, (x, y) => x * y),
    div: (a, b) => zip(a, b, (x, y) => x / y),
    pow: (a, b) => zip(a, b, (x, y) => x ** y),
    min: (a, b) => zip(a, b, (x, y) => (branch(x - y) <= 0 ? x : y)),
    max: (a, b) => zip(a, b, (x, y) => (branch(x - y) >= 0 ? x : y)),
    neg: x => map(x, v => -v),
    exp: x => map(x, Math.exp),
    log: x => map(x, Math.log),
    sqrt: x => map(x, Math.sqrt),
    tanh: x => map(x, v => 1 - 2 / (Math.exp(2 * v) + 1)),
    sigmoid: x => map(x, v => 1 / (1 + Math.exp(-v))),
    relu: x => map(x, v => (branch(v) > 0 ? v : 0)),
    erf: x => map(x, erfByIntegral),
    gelu: (x, { approximate = 'none' } = {}) =>
      map(x, v =>
        approximate === 'tanh'
          ? 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)))
          : 0.5 * v * (1 + erfByIntegral(v / Math.sqrt(2))),
      ),
    stopGradient: x => x,
    clip: (x, lo, hi) => {
      const [, low, high] = operands(x, lo, hi);
      return map(x, v => {
        if (branch(v - low.data[0]) < 0) return Math.min(low.data[0], high.data[0]);
        return branch(v - high.data[0]) > 0 ? high.data[0] : v;
      });
    },
    equal: compare(sign => sign === 0),
    less: compare(sign => sign < 0),
    lessEqual: compare(sign => sign <= 0),
    greater: compare(sign => sign > 0),
    greaterEqual: compare(sign => sign >= 0),
    and: (a, b) => zip(a, b, (x, y) => (x && y ? 1 : 0)),
    or: (a, b) => zip(a, b, (x, y) => (x || y ? 1 : 0)),
    not: x => map(x, v => (v ? 0 : 1)),
    where: (condition, a, b) => {
      const [x, y] = operands(a, b);
      return noted(
        tabulate(joint(condition.shape, x.shape, y.shape), x.dtype, i =>
          at(condition, i) ? at(x, i) : at(y, i),
        ),
      );
    },
    cast: (x, dtype) => {
      const convert = {
        float32: (v: number) => v,
        int32: Math.trunc,
        int64: Math.trunc,
        bool: (v: number) => Number(v !== 0),
      };
      return { ...map(x, convert[dtype]), dtype };
    },
    expand: (x, shape) => tabulate(shape, x.dtype, i => at(x, i)),

    reshape: (x, shape) => {
      const known = count(shape.filter(n => n !== -1));
      return { ...x, shape: shape.map(n => (n === -1 ? x.data.length / known : n)) };
    },
    transpose: (x, order) => {
      const rank = x.shape.length;
      const from = (order ?? [...Array(rank - 2).keys(), -1, -2]).map(axis => fromEnd(axis, rank));
      return tabulate(
        from.map(axis => x.shape[axis]),
        x.dtype,
        index => {
          const old: number[] = new Array(rank);
          from.forEach((axis, i) => {
            old[axis] = index[i];
          });
          return at(x, old);
        },
      );
    },
    concat: (parts, axis) => {
      const along = fromEnd(axis, parts[0].shape.length);
      const size = total(parts.map(part => part.shape[along]));
      return tabulate(parts[0].shape.with(along, size), parts[0].dtype, index => {
        let i = index[along];
        const part = parts.find(p => {
          if (i < p.shape[along]) return true;
          i -= p.shape[along];
          return false;
        })!;
        return at(part, index.with(along, i));
      });
    },
    split: (x, sizes, axis) => {
      const along = fromEnd(axis, x.shape.length);
      return sizes.map((n, k) => {
        const start = total(sizes.slice(0, k));
        return tabulate(x.shape.with(along, n), x.dtype, index =>
          at(x, index.with(along, index[along] + start)),
        );
      });
    },
    slice: (x, starts, ends, axes = starts.map((_, i) => i)) => {
      const first = x.shape.map(() => 0);
      const shape = [...x.shape];
      axes.forEach((axis, k) => {
        const along = fromEnd(axis, x.shape.length);
        const [start, end] = [starts[k], ends[k]].map(n => (n < 0 ? n + x.shape[along] : n));
        first[along] = start;
        shape[along] = end - start;
      });
      return tabulate(shape, x.dtype, index =>
        at(
          x,
          index.map((i, axis) => i + first[axis]),
        ),
      );
    },
    pad: (x, before, after) =>
      tabulate(
        x.shape.map((n, i) => before[i] + n + after[i]),
        x.dtype,
        index => {
          const inner = index.map((i, axis) => i - before[axis]);
          return inner.every((i, axis) => i >= 0 && i < x.shape[axis]) ? at(x, inner) : 0;
        },
      ),

    matmul: (a, b, { transposeA = false, transposeB = false } = {}) => {
      const x = transposeA ? ops.transpose(a) : a;
      const y = transposeB ? ops.transpose(b) : b;
      const batch = joint(x.shape.slice(0, -2), y.shape.slice(0, -2));
      const inner = x.shape.at(-1)!;
      return noted(
        tabulate([...batch, x.shape.at(-2)!, y.shape.at(-1)!], 'float32', index => {
          const before = index.slice(0, -2);
          const [row, column] = index.slice(-2);
          // An axis of size 1 among the last two is an index of 0, not a broadcast: it is never read beyond.
          return total(
            Array.from(
              { length: inner },
              (_, k) => at(x, [...before, row, k]) * at(y, [...before, k, column]),
            ),
          );
        }),
      );
    },
    linear: (x, w, b, { transposeW = false } = {}) =>
      ops.add(ops.matmul(x, w, { transposeB: transposeW }), b),

    gather: (x, which, axis = 0) => {
      const along = fromEnd(axis, x.shape.length);
      const wide = which.shape.length;
      const shape = [...x.shape.slice(0, along), ...which.shape, ...x.shape.slice(along + 1)];
      return tabulate(shape, x.dtype, index => {
        const picked = at(which, index.slice(along, along + wide));
        return at(x, [
          ...index.slice(0, along),
          fromEnd(picked, x.shape[along]),
          ...index.slice(along + wide),
        ]);
      });
    },
    takeAlong: (x, which, axis) => {
      const along = fromEnd(axis, x.shape.length);
      return tabulate(which.shape, x.dtype, index =>
        at(x, index.with(along, fromEnd(at(which, index), x.shape[along]))),
      );
    },
    scatterRows: (which, updates, shape) => {
      const wide = which.shape.length;
      return noted(
        tabulate(shape, 'float32', index =>
          total(
            indices(which.shape)
              .filter(i => fromEnd(at(which, i), shape[0]) === index[0])
              .map(i => at(updates, [...i.slice(0, wide), ...index.slice(1)])),
          ),
        ),
      );
    },
    scatterAlong: (which, updates, axis, shape) => {
      const along = fromEnd(axis, shape.length);
      return noted(
        tabulate(shape, 'float32', index =>
          total(
            indices(which.shape)
              .filter(i => i.with(along, fromEnd(at(which, i), shape[along])).join() === index.join())
              .map(i => at(updates, i)),
          ),
        ),
      );
    },

    reduceSum: (x, options) => reduce(x, options, total),
    reduceMean: (x, options) => reduce(x, options, values => total(values) / values.length),
    reduceMax: (x, options) => reduce(x, options, largestOf),
    l2Norm: (x, options) => reduce(x, options, values => Math.hypot(...values)),
    argMax: (x, axis, { keepDims = false } = {}) => ({
      ...reduce(x, { axes: [axis], keepDims }, values => values.indexOf(largestOf(values))),
      dtype: 'int64',
    }),
    softmax: softmaxOf,
    maskedSoftmax: softmaxOf,
    logSoftmax: (x, axis = -1) =>
      lines(x, axis, line => {
        const top = Math.max(...line);
        return line.map(v => v - top - Math.log(total(line.map(u => Math.exp(u - top)))));
      }),
    layerNorm: (x, scale, bias, epsilon = 1e-5) =>
      lines(x, -1, line => {
        const mean = total(line) / line.length;
        const variance = total(line.map(v => (v - mean) ** 2)) / line.length;
        return line.map(
          (v, i) => ((v - mean) / Math.sqrt(variance + epsilon)) * scale.data[i] + bias.data[i],
        );
      }),

    loop: ({ trips, carry: initial, body }: LoopSpec<Value>) => {
      const most = typeof trips === 'number' ? trips : trips.atMost;
      const limit = typeof trips === 'number' ? trips : Math.min(trips.count.data[0], trips.atMost);
      const filled = (x: Value, like: Value): Value =>
        x.shape.length === 0 ? tabulate(like.shape, x.dtype, () => x.data[0]) : x;
      let carry = initial;
      let ran = 0;
      const rows: Record<string, Value[]> = {};
      const run = (iteration: number, from: Record<string, Value>) =>
        body({ iteration: value([iteration], [], 'int64'), carry: from });
      for (; ran < limit; ) {
        const result = run(ran, carry);
        ran++;
        carry = Object.fromEntries(
          Object.entries(initial).map(([name, like]) => [name, filled(result.carry[name], like)]),
        );
        for (const [name, row] of Object.entries(result.scan ?? {})) {
          rows[name] ??= [];
          rows[name].push(row);
        }
        if (result.goOn && result.goOn.data[0] === 0) break;
      }
      if (ran === 0) {
        // Names and shapes of the scans are known from a run that does not count.
        const untraced = { branches: [...trace.branches], largest: trace.largest };
        for (const [name, row] of Object.entries(run(0, initial).scan ?? {})) {
          rows[name] = [{ ...row, data: row.data.map(() => 0) }];
        }
        trace.branches.splice(0, Infinity, ...untraced.branches);
        trace.largest = untraced.largest;
      }
      trace.branches.push(ran);
      const scan = Object.fromEntries(
        Object.entries(rows).map(([name, list]) => [
          name,
          tabulate([most, ...list[0].shape], list[0].dtype, ([i, ...rest]) =>
            list[i] ? at(list[i], rest) : 0,
          ),
        ]),
      );
      return { carry, scan, iterations: value([ran], [], 'int64') };
    },
  };
  return ops;
}
