/** What `grad` promises beyond single operators; derivatives of derivatives. */
import { describe, expect, it } from 'vitest';
import {
  add,
  argMax,
  cast,
  clip,
  concat,
  div,
  EngineError,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  gelu,
  grad,
  greater,
  l2Norm,
  layerNorm,
  log,
  logSoftmax,
  maskedSoftmax,
  matmul,
  max,
  min,
  mul,
  neg,
  pow,
  reduceMax,
  reduceMean,
  reduceSum,
  relu,
  reshape,
  scatterRows,
  sigmoid,
  slice,
  softmax,
  split,
  sqrt,
  stopGradient,
  sub,
  type Tensor,
  tanh,
  toOnnx,
  where,
} from '../../src/engine/index.ts';
import { expectClose, finiteDifferences, type PlainFeeds, runCompiled } from './support/check.ts';

/** The values of named tensors, interpreted. */
function values(g: Graph, tensors: Record<string, Tensor>, feeds: PlainFeeds): Record<string, number[]> {
  for (const [name, t] of Object.entries(tensors)) g.output(name, t);
  const out = evaluate(g, feeds);
  return Object.fromEntries(Object.entries(out).map(([name, { data }]) => [name, [...data]]));
}

describe('grad', () => {
  it('of a tensor by itself is 1, whatever its shape of one value', () => {
    for (const shape of [[], [1], [1, 1]]) {
      const g = new Graph();
      const x = g.input('x', shape);
      const [d] = grad(x, [x]);
      expect(d.shape).toEqual(shape);
      expect(values(g, { d, x: exp(x) }, { x: [5] }).d).toEqual([1]);
    }
  });

  it('of several losses is that of their sum, and a loss given twice counts twice', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const y = g.input('y', []);
    const first = reduceSum(mul(x, y));
    const second = reshape(exp(y), [1, 1]);
    const [dx, dy] = grad([first, second, first], [x, y]);
    const out = values(g, { dx, dy }, { x: [3, 4], y: [0] });
    expect(out.dx).toEqual([0, 0]);
    expect(out.dy).toEqual([15]);
    expect(out.dx.length).toBe(2);
  });

  it('by several tensors keeps their order, also where one is given twice', () => {
    const g = new Graph();
    const [x, y, z] = ['x', 'y', 'z'].map(name => g.input(name, []));
    const [dz, dx, dy, again] = grad(add(mul(x, y), mul(z, 7)), [z, x, y, z]);
    expect(values(g, { dz, dx, dy, again }, { x: [2], y: [3], z: [0] })).toEqual({
      dz: [7],
      dx: [3],
      dy: [2],
      again: [7],
    });
  });

  it('by nothing is nothing', () => {
    const g = new Graph();
    expect(grad(g.input('x', []), [])).toEqual([]);
  });

  it('by a tensor and by what it depends on are both total derivatives', () => {
    const g = new Graph();
    const x = g.input('x', []);
    const y = mul(x, x);
    // z = y³ + x: dz/dy = 3y² with x fixed; dz/dx = 1 + 3y²·2x through y.
    const [dy, dx] = grad(add(pow(y, 3), x), [y, x]);
    expect(values(g, { dy, dx }, { x: [2] })).toEqual({ dy: [48], dx: [1 + 48 * 4] });
  });

  it('sums over every use of a value', () => {
    const g = new Graph();
    const x = g.input('x', []);
    let sum: Tensor = exp(x);
    for (let i = 0; i < 10; i++) sum = add(sum, mul(x, sum));
    // e^x (1 + x)^10
    const [d] = grad(sum, [x]);
    expectClose('d', values(g, { d }, { x: [0.5] }).d, [Math.exp(0.5) * (1.5 ** 10 + 10 * 1.5 ** 9)], 1e-13);
  });

  it('reaches only the pieces of a split, and only the outputs, that the loss uses', () => {
    const g = new Graph();
    const x = g.input('x', [5]);
    const [a, , c] = split(x, [1, 2, 2], 0);
    const [d] = grad(add(reduceSum(exp(c)), reduceSum(mul(a, 3))), [x]);
    expectClose('d', values(g, { d }, { x: [0, 0, 0, 0, 1] }).d, [3, 0, 0, 1, Math.E], 1e-13);
  });

  it('of a loss of shape (1, 1) by a matrix', () => {
    const g = new Graph();
    const [x, w] = [g.input('x', [1, 2]), g.input('w', [2, 1])];
    const [dx, dw] = grad(matmul(x, w), [x, w]);
    expect(dx.shape).toEqual([1, 2]);
    expect(values(g, { dx, dw }, { x: [2, 3], w: [5, 7] })).toEqual({ dx: [5, 7], dw: [2, 3] });
  });

  it('does not flow through stopGradient, comparisons, casts, argMax', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const stopped = mul(stopGradient(mul(x, x)), x);
    const [d] = grad(reduceSum(stopped), [x]);
    expect(values(g, { d }, { x: [3, -2] }).d).toEqual([9, 4]);
    const through = [
      stopGradient(x),
      cast(greater(x, 0), 'float32'),
      cast(cast(x, 'int32'), 'float32'),
      cast(argMax(x, 0), 'float32'),
      where(greater(x, 0), 1, 0),
      stopGradient(expand(reduceSum(x), [3])),
    ];
    for (const t of through) {
      expect(() => grad(reduceSum(t), [x])).toThrow(/does not depend on input 'x' \(2\)/);
      const [zero] = grad(reduceSum(t), [x], { unused: 'zero' });
      expect(zero.shape).toEqual([2]);
    }
  });

  it('stopGradient forwards is no node', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    g.output('y', exp(stopGradient(x)));
    expect(toOnnx(g).nodeCount).toBe(1);
  });

  it('of ties: min and max give all to the first, reduceMax shares, clip keeps its bounds', () => {
    const g = new Graph();
    const [x, y] = [g.input('x', [2]), g.input('y', [2])];
    const sum = add(reduceSum(mul(min(x, y), 3)), reduceSum(mul(max(x, y), 5)));
    const [dx, dy] = grad(sum, [x, y], { unused: 'zero' });
    const [top] = grad(reduceMax(x), [x]);
    const [inside] = grad(reduceSum(clip(x, 1, 2)), [x]);
    const [active] = grad(reduceSum(relu(sub(x, 1))), [x]);
    const out = values(g, { dx, dy, top, inside, active }, { x: [1, 1], y: [1, 1] });
    expect(out).toEqual({ dx: [8, 8], dy: [0, 0], top: [0.5, 0.5], inside: [1, 1], active: [0, 0] });
  });

  it('of a NaN or an infinity that where masks is 0', () => {
    const g = new Graph();
    const [x, mask] = [g.input('x', [3]), g.input('mask', [3], 'bool')];
    const y = where(mask, x, 0);
    const [d] = grad(reduceSum(mul(y, y)), [x]);
    const out = values(g, { y, d }, { x: [NaN, Infinity, 3], mask: [0, 0, 1] });
    expect(out).toEqual({ y: [0, 0, 3], d: [0, 0, 6] });
  });

  it('of l2Norm at 0 is 0; of pow at a base of 0 is that of the polynomial', () => {
    const g = new Graph();
    const x = g.input('x', [3]);
    const [norm] = grad(l2Norm(x), [x]);
    const [sizes] = grad(reduceSum(l2Norm(x, { axes: [] })), [x]);
    const cubes = grad(reduceSum(pow(x, 3)), [x])[0];
    const squares = grad(reduceSum(pow(x, g.constant([2, 2, 2]))), [x])[0];
    const firsts = grad(reduceSum(pow(x, g.constant([1, 1, 1]))), [x])[0];
    const out = values(g, { norm, sizes, cubes, squares, firsts }, { x: [0, 0, 0] });
    expect(out.norm.map(Math.abs)).toEqual([0, 0, 0]);
    expect(out.sizes.map(Math.abs)).toEqual([0, 0, 0]);
    expect(out.cubes).toEqual([0, 0, 0]);
    expect(out.squares).toEqual([0, 0, 0]);
    expect(out.firsts).toEqual([1, 1, 1]);
  });

  it('of x⁰, which is 1 everywhere, is 0 everywhere', () => {
    const g = new Graph();
    const [x, p] = [g.input('x', [2]), g.input('p', [])];
    const [byNumber] = grad(reduceSum(pow(x, 0)), [x], { unused: 'zero' });
    const [byTensor] = grad(reduceSum(pow(x, p)), [x]);
    const out = values(g, { byNumber, byTensor }, { x: [0, 2], p: [0] });
    expect(out.byNumber.map(Math.abs)).toEqual([0, 0]);
    expect(out.byTensor.map(Math.abs)).toEqual([0, 0]);
  });

  it('of pow by an exponent at a base of 0 is 0', () => {
    const g = new Graph();
    const [x, p] = [g.input('x', [2]), g.input('p', [2])];
    const [d] = grad(reduceSum(pow(x, p)), [p]);
    expect(values(g, { d }, { x: [0, 0], p: [2, 0.5] }).d).toEqual([0, 0]);
  });

  it('of a graph deeper than the call stack', () => {
    const g = new Graph();
    const x = g.input('x', []);
    let y: Tensor = x;
    for (let i = 0; i < 20_000; i++) y = i % 2 ? sub(1, y) : tanh(y);
    const [d] = grad(y, [x]);
    g.output('d', d);
    expect(Number.isFinite(evaluate(g, { x: [0.5] }).d.data[0])).toBe(true);
  });

  it('leaves the graph as it was: outputs named before keep their values', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const y = g.output('y', mul(tanh(x), 3));
    const before = evaluate(g, { x: [1, 2] }).y.data;
    const bytes = toOnnx(g).bytes;
    grad(reduceSum(y), [x]);
    expect(evaluate(g, { x: [1, 2] }).y.data).toEqual(before);
    expect(toOnnx(g).bytes).toEqual(bytes);
  });
});

describe('grad refuses', () => {
  const g = new Graph();
  const x = g.input('x', [2, 3]);
  const n = g.input('n', [2], 'int64');

  it('a loss that is not one value, or not a float', () => {
    expect(() => grad(exp(x), [x])).toThrow(
      new EngineError(
        'grad: the loss is float32 (2, 3): one float32 value is needed; sum or average it first',
      ),
    );
    expect(() => grad([reduceSum(x), x], [x])).toThrow(/float32 \(2, 3\): one float32 value is needed/);
    expect(() => grad(gather(n, g.constant(0, [], 'int64')), [x])).toThrow(/the loss is int64 \(\)/);
    expect(() => grad(reduceSum(slice(x, [0], [0])), [x])).not.toThrow();
  });

  it('no loss', () => {
    expect(() => grad([], [x])).toThrow(/no loss was given: give at least one/);
  });

  it('a whole-number or bool tensor', () => {
    expect(() => grad(reduceSum(x), [n])).toThrow(
      new EngineError("grad: input 'n' (2) is int64: derivatives are by float32 tensors only"),
    );
    expect(() => grad(reduceSum(x), [greater(x, 0)])).toThrow(/a greater \(2, 3\) is bool/);
  });

  it('a tensor that the loss does not depend on, unless zeros are asked for', () => {
    const other = g.input('other', [4]);
    const made = tanh(other);
    expect(() => grad(reduceSum(x), [x, other])).toThrow(
      new EngineError(
        "grad: the loss does not depend on input 'other' (4): leave it out, or pass { unused: 'zero' }",
      ),
    );
    expect(() => grad(reduceSum(x), [made])).toThrow(/does not depend on a tanh \(4\)/);
    // Downstream of the loss is not upstream of it.
    const loss = reduceSum(x);
    expect(() => grad(loss, [exp(loss)])).toThrow(/does not depend on/);
    const [, zeros] = grad(reduceSum(x), [x, other], { unused: 'zero' });
    g.output('zeros', zeros);
    expect([...evaluate(g).zeros.data]).toEqual([0, 0, 0, 0]);
  });
});

// ---- derivatives of derivatives ------------------------------------------------------------------------------------

interface Second {
  readonly name: string;
  readonly shapes: Record<string, number[]>;
  readonly feeds: Record<string, number[]>;
  f(x: Record<string, Tensor>): Tensor;
}

const second: Second[] = [
  { name: 'tanh', shapes: { x: [3] }, feeds: { x: [0.5, -1, 2] }, f: ({ x }) => tanh(x) },
  { name: 'sigmoid', shapes: { x: [3] }, feeds: { x: [0.5, -1, 2] }, f: ({ x }) => sigmoid(x) },
  { name: 'exp, log', shapes: { x: [2] }, feeds: { x: [0.5, 1.5] }, f: ({ x }) => mul(exp(x), log(x)) },
  { name: 'sqrt', shapes: { x: [2] }, feeds: { x: [0.5, 1.5] }, f: ({ x }) => sqrt(x) },
  { name: 'gelu', shapes: { x: [3] }, feeds: { x: [0.5, -1, 2] }, f: ({ x }) => gelu(x) },
  {
    name: 'gelu tanh',
    shapes: { x: [3] },
    feeds: { x: [0.5, -1, 2] },
    f: ({ x }) => gelu(x, { approximate: 'tanh' }),
  },
  {
    name: 'div',
    shapes: { x: [2, 2], y: [2] },
    feeds: { x: [1, 2, -3, 0.5], y: [0.75, -2] },
    f: ({ x, y }) => div(x, y),
  },
  {
    name: 'pow',
    shapes: { x: [2], y: [2, 1] },
    feeds: { x: [1.5, 0.5], y: [2.5, -1] },
    f: ({ x, y }) => pow(x, y),
  },
  {
    name: 'pow at an exponent of 0',
    shapes: { x: [2], y: [2] },
    feeds: { x: [1.5, 0.5], y: [0, 0] },
    f: ({ x, y }) => pow(x, y),
  },
  { name: 'pow 3', shapes: { x: [3] }, feeds: { x: [-1.5, 0.5, 2] }, f: ({ x }) => pow(x, 3) },
  {
    name: 'softmax',
    shapes: { x: [2, 3] },
    feeds: { x: [0, 1, -1, 0.5, 0.25, 2] },
    f: ({ x }) => softmax(x),
  },
  {
    name: 'maskedSoftmax',
    shapes: { x: [2, 3] },
    feeds: { x: [0, 1, -1e9, 0.5, 0.25, 2] },
    f: ({ x }) => maskedSoftmax(x),
  },
  {
    name: 'logSoftmax',
    shapes: { x: [2, 3] },
    feeds: { x: [0, 1, -1, 0.5, 0.25, 2] },
    f: ({ x }) => logSoftmax(x, 0),
  },
  {
    name: 'layerNorm',
    shapes: { x: [2, 3], s: [3], b: [3] },
    feeds: { x: [0, 1, -1, 0.5, 0.25, 2], s: [1, -2, 0.5], b: [1, 2, 3] },
    f: ({ x, s, b }) => layerNorm(x, s, b, 0.1),
  },
  {
    name: 'matmul',
    shapes: { x: [2, 2, 3], y: [3, 2] },
    feeds: { x: [1, 2, 3, 4, 5, 6, -1, -2, 0, 1, 0.5, 2], y: [1, 0, -1, 2, 0.5, 3] },
    f: ({ x, y }) => matmul(x, y),
  },
  {
    name: 'l2Norm',
    shapes: { x: [2, 2] },
    feeds: { x: [1, 2, -3, 0.5] },
    f: ({ x }) => l2Norm(x, { axes: [1] }),
  },
  {
    name: 'reductions and expands',
    shapes: { x: [2, 2] },
    feeds: { x: [1, 2, -3, 0.5] },
    f: ({ x }) => mul(expand(reduceMean(mul(x, x), { axes: [0], keepDims: true }), [2, 2]), reduceMax(x)),
  },
  {
    name: 'gather, scatter, concat, slice',
    shapes: { x: [3, 2] },
    feeds: { x: [1, 2, -3, 0.5, 0.25, -1] },
    f: ({ x }) => {
      const which = x.node.graph.constant([2, 0, 2], [3], 'int64');
      const rows = gather(x, which);
      return scatterRows(
        which,
        mul(rows, concat([slice(rows, [0], [1], [1]), slice(rows, [1], [2], [1])], 1)),
        [3, 2],
      );
    },
  },
  {
    name: 'gather of distinct rows, and of columns',
    shapes: { x: [3, 2] },
    feeds: { x: [1, 2, -3, 0.5, 0.25, -1] },
    f: ({ x }) => {
      const which = x.node.graph.constant([2, 0], [2], 'int64');
      const turned = x.node.graph.constant([1, 0], [2], 'int64');
      const rows = gather(x, which, 0, { distinct: true });
      return mul(mul(rows, rows), gather(rows, turned, 1, { distinct: true }));
    },
  },
  {
    name: 'where, min, clip',
    shapes: { x: [3], y: [3] },
    feeds: { x: [0.75, -2, 0.5], y: [2, -3, 0.25] },
    f: ({ x, y }) => add(where(greater(x, 0), mul(x, mul(x, y)), exp(y)), pow(min(x, clip(y, -1, 1)), 2)),
  },
];

describe('second derivatives', () => {
  it.each(second)('$name', async ({ shapes, feeds, f }) => {
    const names = Object.keys(shapes);
    const build = (withSecond: boolean): Graph => {
      const g = new Graph();
      const x = Object.fromEntries(
        names.map(name => [name, g.input(name, shapes[name], 'float32', { required: false })]),
      );
      const y = f(x);
      const wrt = names.map(name => x[name]);
      // A curved loss, so that no second derivative is trivially 0; then a fixed direction through the gradient.
      const first = grad(reduceSum(mul(y, y)), wrt);
      const along = first
        .map((t, k) => {
          const size = t.shape.reduce((p, q) => p * q, 1);
          const weights = Array.from({ length: size }, (_, i) => ((i * 3 + k) % 5) / 2 - 0.75);
          return reduceSum(mul(t, g.constant(weights, t.shape)));
        })
        .reduce(add);
      g.output('along', along);
      if (withSecond) {
        grad(along, wrt, { unused: 'zero' }).forEach((t, i) => {
          g.output(`d/${names[i]}`, t);
        });
      }
      return g;
    };
    const [full, plain] = [build(true), build(false)];
    const reference = evaluate(full, feeds);
    for (const name of names) {
      const expected = finiteDifferences(
        moved => evaluate(plain, { ...feeds, [name]: moved }).along.data[0],
        feeds[name],
      );
      expectClose(`by ${name}`, reference[`d/${name}`].data, expected, 1e-6, 10);
    }
    const compiled = await runCompiled(full, feeds);
    for (const [name, { data }] of Object.entries(reference)) {
      expectClose(`compiled ${name}`, compiled[name], data, 1e-4, 10);
    }
  });

  it('third: of x⁵ and of sin-like tanh', () => {
    const g = new Graph();
    const x = g.input('x', []);
    const derive = (y: Tensor): Tensor => grad(y, [x])[0];
    const out = values(
      g,
      {
        power: derive(derive(derive(pow(x, 5)))),
        tanh: derive(derive(derive(tanh(x)))),
        neg: derive(derive(neg(exp(neg(x))))),
      },
      { x: [0.5] },
    );
    const t = Math.tanh(0.5);
    expectClose('x⁵', out.power, [60 * 0.25], 1e-12);
    expectClose('tanh', out.tanh, [-2 * (1 - t * t) ** 2 + 4 * t * t * (1 - t * t)], 1e-12);
    expectClose('-e^-x', out.neg, [-Math.exp(-0.5)], 1e-12);
  });
});
