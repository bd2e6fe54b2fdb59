/**
 * The table of operators: for each, how to draw an instance with random shapes.
 *
 * `f` is written against {@link Ops}, so that the same lines build the graph and compute the naive values. All float
 * inputs are differentiated unless `wrt` names some. Inputs keep away from kinks, where no derivative exists.
 */
import type { Draw, InputSpec } from './draw.ts';
import type { Ops, Typed } from './ops.ts';

export interface Instance {
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly wrt?: readonly string[];
  f<T extends Typed>(k: Ops<T>, x: Readonly<Record<string, T>>): T | readonly T[];
}

export interface Case {
  readonly name: string;
  make(d: Draw): Instance;
}

const cases: Case[] = [];
const add = (name: string, make: (d: Draw) => Instance): void => {
  cases.push({ name, make });
};

// ---- value by value ------------------------------------------------------------------------------------------------

for (const op of ['neg', 'exp', 'tanh', 'sigmoid', 'erf'] as const) {
  add(op, d => ({ inputs: { x: d.floats(d.shape(0, 3)) }, f: (k, { x }) => k[op](x) }));
}
for (const op of ['log', 'sqrt'] as const) {
  add(op, d => ({ inputs: { x: d.floats(d.shape(0, 3), 0.25, 3) }, f: (k, { x }) => k[op](x) }));
}
add('relu', d => ({ inputs: { x: d.nonzero(d.shape(0, 3)) }, f: (k, { x }) => k.relu(x) }));
for (const approximate of ['none', 'tanh'] as const) {
  add(`gelu ${approximate}`, d => ({
    inputs: { x: d.floats(d.shape(0, 3), -4, 4) },
    f: (k, { x }) => k.gelu(x, { approximate }),
  }));
}
add('far out of range', d => ({
  // Saturated, yet finite everywhere, and so are the derivatives.
  inputs: { x: d.nonzero(d.shape(1, 2), 20, 80) },
  f: (k, { x }) => [k.tanh(x), k.sigmoid(x), k.erf(x), k.gelu(x), k.gelu(x, { approximate: 'tanh' })],
}));
add('stopGradient', d => ({
  inputs: { x: d.floats([3]), y: d.floats([3]) },
  wrt: ['y'],
  f: (k, { x, y }) => k.mul(k.stopGradient(k.exp(x)), y),
}));

for (const op of ['add', 'sub', 'mul'] as const) {
  add(op, d => {
    const shape = d.shape(0, 4);
    return {
      inputs: { a: d.floats(d.narrower(shape)), b: d.floats(d.narrower(shape)) },
      f: (k, { a, b }) => k[op](a, b),
    };
  });
  add(`${op} with itself and with numbers`, d => {
    const n = d.pick([0, 1, -1, 2.5]);
    return {
      inputs: { a: d.floats(d.shape(0, 3)) },
      f: (k, { a }) => [k[op](a, a), k[op](a, n), k[op](n, a)],
    };
  });
}
add('div', d => {
  const shape = d.shape(0, 4);
  const n = d.pick([1, -1, 2.5]);
  return {
    inputs: { a: d.floats(d.narrower(shape)), b: d.nonzero(d.narrower(shape)) },
    f: (k, { a, b }) => [k.div(a, b), k.div(n, b), k.div(a, n), k.div(b, b)],
  };
});
add('pow', d => {
  const shape = d.shape(0, 3);
  return {
    inputs: { a: d.floats(d.narrower(shape), 0.25, 2), b: d.floats(d.narrower(shape)) },
    f: (k, { a, b }) => [k.pow(a, b), k.pow(a, a), k.pow(2, b)],
  };
});
add('pow by a number', d => ({
  // Whole exponents take bases of any sign.
  inputs: { a: d.nonzero(d.shape(0, 3)), p: d.floats(d.shape(1, 2), 0.25, 2) },
  f: (k, { a, p }) => [
    ...[0, 1, 2, 3, -1, -2].map(n => k.pow(a, n)),
    ...[0.5, -0.5, 1.5].map(n => k.pow(p, n)),
  ],
}));
for (const op of ['min', 'max'] as const) {
  add(op, d => {
    const shape = d.shape(0, 4);
    return {
      inputs: { a: d.apart(d.narrower(shape), 1), b: d.apart(d.narrower(shape), 3) },
      f: (k, { a, b }) => [k[op](a, b), k[op](a, 0), k[op](0, b), k[op](a, a)],
    };
  });
}
add('clip', d => ({
  inputs: { x: d.apart(d.shape(0, 3), 1) },
  f: (k, { x }) => [k.clip(x, -0.25, 0.25), k.clip(x, -100, 100), k.clip(x, 0, 0)],
}));
add('clip between tensors', d => ({
  inputs: {
    x: d.apart(d.shape(0, 3), 1),
    lo: { shape: [], dtype: 'float32', values: [-0.25 + 3 / 64] },
    hi: { shape: [], dtype: 'float32', values: [0.25 + 3 / 64] },
  },
  f: (k, { x, lo, hi }) => k.clip(x, lo, hi),
}));
add('clip between tensors that cross', d => ({
  inputs: {
    x: d.apart(d.shape(0, 3), 1),
    lo: { shape: [], dtype: 'float32', values: [0.25 + 3 / 64] },
    hi: { shape: [], dtype: 'float32', values: [-0.25 + 3 / 64] },
  },
  // The upper one wins, everywhere, and so it has the whole derivative.
  f: (k, { x, lo, hi }) => k.clip(x, lo, hi),
}));

const comparisons = ['equal', 'less', 'lessEqual', 'greater', 'greaterEqual'] as const;
add('comparisons', d => {
  const shape = d.shape(0, 3);
  const dtype = d.pick(['float32', 'int32', 'int64'] as const);
  // Small whole numbers, so that there are ties.
  const some = () => ({ ...d.ints(d.narrower(shape), -1, 1), dtype });
  return {
    inputs: { a: some(), b: some() },
    wrt: [],
    f: (k, { a, b }) => comparisons.flatMap(op => [k[op](a, b), k[op](a, 0), k[op](1, b)]),
  };
});
add('equal of bools; and, or, not', d => {
  const shape = d.shape(0, 3);
  return {
    inputs: { a: d.bools(d.narrower(shape)), b: d.bools(d.narrower(shape)) },
    f: (k, { a, b }) => [k.equal(a, b), k.and(a, b), k.or(a, b), k.not(a), k.not(k.and(k.not(a), b))],
  };
});
add('where', d => {
  const shape = d.shape(0, 3);
  return {
    inputs: {
      c: d.bools(d.narrower(shape)),
      a: d.floats(d.narrower(shape)),
      b: d.floats(d.narrower(shape)),
    },
    f: (k, { c, a, b }) => [
      k.where(c, a, b),
      k.where(c, a, 0),
      k.where(c, 0, b),
      k.where(c, a, a),
      k.where(c, 1, 0),
      k.where(c, 2.5, 0),
      k.where(c, 0, 1),
      k.where(c, -1, 3),
      k.where(k.not(c), k.exp(a), 1),
    ],
  };
});
add('where of any dtype', d => {
  const shape = d.shape(0, 3);
  const dtype = d.dtype();
  return {
    inputs: {
      c: d.bools(d.narrower(shape)),
      a: d.any(d.narrower(shape), dtype),
      b: d.any(d.narrower(shape), dtype),
    },
    f: (k, { c, a, b }) => k.where(c, a, b),
  };
});
add('cast', d => ({
  inputs: { x: d.any(d.shape(0, 3), d.dtype()) },
  wrt: [],
  f: (k, { x }) => (['float32', 'int32', 'int64', 'bool'] as const).map(to => k.cast(x, to)),
}));
add('whole numbers', d => {
  const shape = d.shape(0, 3);
  const dtype = d.indexType();
  const some = () => d.ints(d.narrower(shape), -5, 5, dtype);
  const divisor = d.ints(d.narrower(shape), 1, 4, dtype);
  return {
    inputs: { a: some(), b: some(), c: { ...divisor, values: divisor.values.map(v => (d.bool() ? v : -v)) } },
    f: (k, { a, b, c }) => [
      k.add(a, b),
      k.sub(a, b),
      k.sub(0, a),
      k.sub(a, k.sub(0, b)),
      k.mul(a, b),
      k.mul(a, -1),
      k.div(a, c),
      k.div(a, -1),
      k.min(a, b),
      k.max(a, 2),
    ],
  };
});
add('expand', d => {
  const shape = d.shape(0, 4);
  const dtype = d.dtype();
  return {
    inputs: { x: d.floats(d.narrower(shape)), y: d.any(d.narrower(shape), dtype) },
    wrt: ['x'],
    f: (k, { x, y }) => [k.expand(x, shape), k.expand(y, shape), k.expand(k.expand(x, shape), [2, ...shape])],
  };
});

// ---- moving values -------------------------------------------------------------------------------------------------

add('reshape', d => {
  const shape = d.shape(0, 3);
  const size = shape.reduce((a, b) => a * b, 1);
  const x = d.any(shape, d.dtype());
  return {
    inputs: { x },
    f: (k, { x }) => [
      k.reshape(x, [size]),
      k.reshape(x, [1, -1, 1]),
      k.reshape(k.reshape(x, [size, 1]), [...shape].reverse()),
    ],
  };
});
add('transpose', d => {
  const shape = d.shape(2, 4);
  const rank = shape.length;
  const order = [...Array(rank).keys()];
  for (let i = rank - 1; i > 0; i--) {
    const j = d.int(0, i);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return {
    inputs: { x: d.any(shape, d.dtype()) },
    f: (k, { x }) => [
      k.transpose(x),
      k.transpose(x, order),
      k.transpose(
        x,
        order.map(axis => axis - rank),
      ),
      k.transpose(k.transpose(x, order), order),
    ],
  };
});
add('concat', d => {
  const shape = d.shape(1, 3);
  const axis = d.axis(shape.length);
  const dtype = d.dtype();
  const part = () => d.any(shape.with(axis, d.int(1, 3)), dtype);
  return {
    inputs: { a: part(), b: part(), c: part() },
    f: (k, { a, b, c }) => [k.concat([a, b, c], axis), k.concat([b, b], axis), k.concat([c], axis)],
  };
});
add('split', d => {
  const sizes = d.list(d.int(1, 3), 1, 3);
  const shape = d.shape(1, 3);
  const axis = d.axis(shape.length);
  return {
    inputs: {
      x: d.any(
        shape.with(
          axis,
          sizes.reduce((a, b) => a + b, 0),
        ),
        d.dtype(),
      ),
    },
    f: (k, { x }) => k.split(x, sizes, axis),
  };
});
add('split of which some pieces are unused', d => ({
  inputs: { x: d.floats([2, 6]) },
  f: (k, { x }) => k.exp(k.split(x, [1, 2, 3], 1)[1]),
}));
add('split of concat', d => {
  const axis = d.axis(2);
  const part = () => d.floats([2, 2].with(axis, d.int(1, 3)));
  const [a, b] = [part(), part()];
  const sizes = [a, b].map(x => x.shape.at(axis)!);
  return {
    inputs: { a, b },
    f: (k, x) => {
      const joined = k.concat([x.a, x.b], axis);
      const sum = sizes[0] + sizes[1];
      return [...k.split(joined, sizes, axis), ...k.split(joined, [1, sum - 1], axis)];
    },
  };
});
add('slice', d => {
  const shape = d.shape(1, 3, 4);
  const rank = shape.length;
  const all = [...Array(rank).keys()].filter(() => d.bool());
  const axes = all.map(axis => (d.bool() ? axis : axis - rank));
  const starts = all.map(axis => d.int(0, shape[axis] - 1));
  const ends = all.map((axis, i) => d.int(starts[i] + 1, shape[axis]));
  const fromEnd = starts.map((n, i) => n - shape[all[i]]);
  return {
    inputs: { x: d.any(shape, d.dtype()) },
    f: (k, { x }) => [
      k.slice(x, starts, ends, axes),
      k.slice(x, fromEnd, ends, axes),
      k.slice(x, [shape[0] - 1], [shape[0]]),
    ],
  };
});
add('pad', d => {
  const shape = d.shape(1, 3);
  const [before, after] = [shape.map(() => d.int(0, 2)), shape.map(() => d.int(0, 2))];
  return { inputs: { x: d.any(shape, d.dtype()) }, f: (k, { x }) => k.pad(x, before, after) };
});

// ---- products ------------------------------------------------------------------------------------------------------

add('matmul of matrices', d => {
  const [rows, inner, columns] = d.list(3, 1, 4);
  const [transposeA, transposeB] = [d.bool(), d.bool()];
  return {
    inputs: {
      a: d.floats(transposeA ? [inner, rows] : [rows, inner]),
      b: d.floats(transposeB ? [columns, inner] : [inner, columns]),
    },
    f: (k, { a, b }) => k.matmul(a, b, { transposeA, transposeB }),
  };
});
add('matmul of batches', d => {
  const [rows, inner, columns] = d.list(3, 1, 3);
  const batch = d.shape(0, 2, 3);
  const [transposeA, transposeB] = [d.bool(), d.bool()];
  const matrix = (flip: boolean, m: number, n: number) =>
    d.floats([...d.narrower(batch), ...(flip ? [n, m] : [m, n])]);
  return {
    inputs: { a: matrix(transposeA, rows, inner), b: matrix(transposeB, inner, columns) },
    f: (k, { a, b }) => k.matmul(a, b, { transposeA, transposeB }),
  };
});
add('matmul of transposes', d => {
  const [rows, inner, columns] = d.list(3, 1, 3);
  const batch = d.shape(0, 2, 2);
  const [transposeA, transposeB] = [d.bool(), d.bool()];
  return {
    inputs: {
      a: d.floats([...batch, ...(transposeA ? [rows, inner] : [inner, rows])]),
      b: d.floats(transposeB ? [inner, columns] : [columns, inner]),
    },
    f: (k, { a, b }) => k.matmul(k.transpose(a), k.transpose(b), { transposeA, transposeB }),
  };
});
add('matmul with itself', d => {
  const n = d.int(1, 3);
  return {
    inputs: { a: d.floats([n, n]), b: d.floats([2, n, n]) },
    f: (k, { a, b }) => [k.matmul(a, a), k.matmul(a, a, { transposeB: true }), k.matmul(b, b)],
  };
});
add('linear', d => {
  const [rows, inner, columns] = d.list(3, 1, 4);
  const transposeW = d.bool();
  return {
    inputs: {
      x: d.floats([rows, inner]),
      w: d.floats(transposeW ? [columns, inner] : [inner, columns]),
      b: d.floats(d.bool() ? [columns] : [1, columns]),
    },
    f: (k, { x, w, b }) => k.linear(x, w, b, { transposeW }),
  };
});
// ---- by index ------------------------------------------------------------------------------------------------------

add('gather rows', d => {
  const shape = d.shape(1, 3);
  const i = d.ints(d.shape(0, 2), -shape[0], shape[0] - 1, d.indexType());
  return { inputs: { x: d.any(shape, d.dtype()), i }, f: (k, { x, i }) => k.gather(x, i) };
});
add('gather along an axis', d => {
  const shape = d.shape(1, 4);
  const axis = d.axis(shape.length);
  const size = shape.at(axis)!;
  const i = d.ints(d.shape(0, 2), -size, size - 1, d.indexType());
  return { inputs: { x: d.floats(shape), i }, f: (k, { x, i }) => k.gather(x, i, axis) };
});
add('takeAlong', d => {
  const shape = d.shape(1, 3);
  const axis = d.axis(shape.length);
  const size = shape.at(axis)!;
  const own = shape.map(n => d.int(1, n)).with(axis, d.int(1, 4));
  const i = d.ints(own, -size, size - 1, d.indexType());
  return { inputs: { x: d.any(shape, d.dtype()), i }, f: (k, { x, i }) => k.takeAlong(x, i, axis) };
});
add('scatterRows', d => {
  const shape = d.shape(1, 3);
  const i = d.ints(d.shape(0, 2), -shape[0], shape[0] - 1, d.indexType());
  return {
    inputs: { i, u: d.floats([...i.shape, ...shape.slice(1)]) },
    f: (k, { i, u }) => k.scatterRows(i, u, shape),
  };
});
add('scatterAlong', d => {
  const shape = d.shape(1, 3);
  const axis = d.axis(shape.length);
  const size = shape.at(axis)!;
  const own = shape.map(n => d.int(1, n)).with(axis, d.int(1, 4));
  return {
    inputs: { i: d.ints(own, -size, size - 1, d.indexType()), u: d.floats(own) },
    f: (k, { i, u }) => k.scatterAlong(i, u, axis, shape),
  };
});

// ---- reductions ----------------------------------------------------------------------------------------------------

for (const op of ['reduceSum', 'reduceMean', 'l2Norm', 'reduceMax'] as const) {
  add(op, d => {
    const shape = d.shape(0, 4);
    const axes = d.axes(shape.length);
    const some = axes ? { axes } : {};
    const x = op === 'reduceMax' ? d.apart(shape) : d.nonzero(shape);
    return {
      inputs: { x },
      f: (k, { x }) => [k[op](x, some), k[op](x, { ...some, keepDims: true })],
    };
  });
  add(`${op} of an expand`, d => {
    const shape = d.shape(0, 4);
    const axes = d.axes(shape.length);
    const options = { ...(axes ? { axes } : {}), keepDims: d.bool() };
    const own = d.narrower(shape);
    return {
      inputs: { x: op === 'reduceMax' ? d.apart(own) : d.nonzero(own) },
      f: (k, { x }) => k[op](k.expand(x, shape), options),
    };
  });
}
add('sum of squares', d => {
  const shape = d.shape(0, 4);
  const axes = d.axes(shape.length);
  const options = { ...(axes ? { axes } : {}), keepDims: d.bool() };
  return {
    inputs: { x: d.floats(shape), y: d.floats(d.narrower(shape)) },
    f: (k, { x, y }) => [
      k.reduceSum(k.mul(x, x), options),
      k.reduceSum(k.pow(x, 2), options),
      k.reduceSum(k.mul(k.neg(x), k.neg(x)), options),
      k.reduceMean(k.mul(x, x), options),
      k.reduceSum(k.expand(k.mul(y, y), shape), options),
      k.reduceSum(k.mul(k.expand(y, shape), k.expand(y, shape)), options),
    ],
  };
});
add('sum of a matrix by rows and columns', d => {
  const shape = [d.int(1, 5), d.int(1, 5)];
  return {
    inputs: { x: d.floats(shape) },
    f: (k, { x }) =>
      [0, 1, -1, -2].flatMap(axis =>
        [true, false].map(keepDims => k.reduceSum(x, { axes: [axis], keepDims })),
      ),
  };
});
add('argMax', d => {
  const shape = d.shape(1, 3, 4);
  const axis = d.axis(shape.length);
  return {
    // Whole numbers make ties, of which the first counts.
    inputs: { x: { ...d.ints(shape, -1, 1), dtype: 'float32' } },
    wrt: [],
    f: (k, { x }) => [k.argMax(x, axis), k.argMax(x, axis, { keepDims: true })],
  };
});

// ---- softmax, layerNorm --------------------------------------------------------------------------------------------

for (const op of ['softmax', 'maskedSoftmax', 'logSoftmax'] as const) {
  add(op, d => {
    const shape = d.shape(1, 4);
    const axis = d.axis(shape.length);
    return { inputs: { x: d.floats(shape) }, f: (k, { x }) => [k[op](x, axis), k[op](x)] };
  });
  add(`${op} of large values`, d => ({
    inputs: { x: d.floats([2, 3], -300, 300) },
    f: (k, { x }) => k[op](x),
  }));
}
add('layerNorm', d => {
  const shape = d.shape(1, 3, 4);
  const width = shape.at(-1)!;
  const epsilon = d.pick([1e-5, 0.125]);
  return {
    inputs: { x: d.apart(shape), s: d.floats([width]), b: d.floats([width]) },
    f: (k, { x, s, b }) => k.layerNorm(x, s, b, epsilon),
  };
});

// ---- loops ---------------------------------------------------------------------------------------------------------

add('loop', d => {
  const trips = d.int(1, 4);
  return {
    inputs: { x: d.floats([2]), w: d.floats([2, 2], -1, 1) },
    f: (k, { x, w }) => {
      const { carry, scan } = k.loop({
        trips,
        carry: { h: x },
        body: ({ carry: { h } }) => {
          const next = k.tanh(k.reshape(k.matmul(k.reshape(h, [1, 2]), w), [2]));
          return { carry: { h: next }, scan: { row: k.mul(next, h), before: h } };
        },
      });
      return [carry.h, scan.row, scan.before];
    },
  };
});
add('loop that ends early', d => {
  const last = d.int(0, 4);
  return {
    inputs: { x: d.floats([2, 2]) },
    f: (k, { x }) => {
      const { carry, scan, iterations } = k.loop({
        trips: 4,
        carry: { x, n: k.constant([7], [], 'int64') },
        body: ({ iteration, carry: { x, n } }) => ({
          carry: { x: k.sub(k.mul(x, 0.5), k.cast(iteration, 'float32')), n: k.add(n, iteration) },
          scan: { x: k.exp(x), n, b: k.less(x, 0), neg: k.neg(x) },
          goOn: k.less(iteration, last),
        }),
      });
      return [carry.x, carry.n, scan.x, scan.n, scan.b, scan.neg, iterations];
    },
  };
});
add('loop with its trips fed', d => ({
  inputs: { x: d.floats([2]), w: d.floats([]), n: d.ints([], -1, 5) },
  f: (k, { x, w, n }) => {
    const { carry, scan, iterations } = k.loop({
      trips: { count: n, atMost: 3 },
      carry: { x },
      body: ({ carry: { x } }) => ({ carry: { x: k.tanh(k.mul(x, w)) }, scan: { s: k.mul(w, 3) } }),
    });
    return [carry.x, scan.s, iterations];
  },
}));
add('loop in a loop', d => {
  const [outer, inner] = [d.int(1, 3), d.int(1, 3)];
  return {
    inputs: { x: d.floats([2]), w: d.floats([]) },
    f: (k, { x, w }) => {
      const { carry, scan } = k.loop({
        trips: outer,
        carry: { x },
        body: ({ iteration: i, carry: { x } }) => {
          const deep = k.loop({
            trips: inner,
            carry: { y: k.sub(x, w) },
            body: ({ iteration: j, carry: { y } }) => ({
              // From this body, from the body around it, and from the outermost graph.
              carry: { y: k.tanh(k.add(k.mul(y, w), k.mul(x, k.cast(k.add(i, j), 'float32')))) },
              scan: { z: k.mul(y, x) },
              goOn: k.less(j, i),
            }),
          });
          return { carry: { x: k.mul(deep.carry.y, w) }, scan: { z: k.reduceSum(deep.scan.z) } };
        },
      });
      return [carry.x, scan.z];
    },
  };
});

export { cases };
