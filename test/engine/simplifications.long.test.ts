/**
 * What the engine simplifies as a graph is built: that it does, and that values at the edges (infinities, NaN, -0, the
 * ends of float32) come out as if it did not. Ordinary values are the business of expressions.test.ts.
 */
import { describe, expect, it } from 'vitest';
import {
  add,
  cast,
  concat,
  div,
  equal,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  grad,
  less,
  linear,
  loop,
  matmul,
  mul,
  neg,
  pad,
  pow,
  reduceMax,
  reduceMean,
  reduceSum,
  reshape,
  slice,
  split,
  sqrt,
  sub,
  type Tensor,
  tanh,
  toOnnx,
  transpose,
  where,
} from '../../src/engine/index.ts';
import { expectClose, numbers, runCompiled } from './support/check.ts';
import { decodeModel, opTypes } from './support/onnx-model.ts';

function inputs(): { g: Graph; x: Tensor; y: Tensor; s: Tensor } {
  const g = new Graph();
  return { g, x: g.input('x', [2, 3]), y: g.input('y', [2, 3]), s: g.input('s', []) };
}

/** The ONNX operators that a tensor costs. */
function cost(make: (t: ReturnType<typeof inputs>) => Tensor): string[] {
  const g = new Graph();
  const t = {
    g,
    x: g.input('x', [2, 3], 'float32', { required: false }),
    y: g.input('y', [2, 3], 'float32', { required: false }),
    s: g.input('s', [], 'float32', { required: false }),
  };
  g.output('out', make(t));
  return opTypes(decodeModel(toOnnx(g).bytes).graph!).sort();
}

describe('nothing is left of', () => {
  it('neutral operands', () => {
    const { g, x } = inputs();
    const [zeros, ones] = [expand(g.constant(0), [2, 3]), g.constant([1, 1, 1])];
    for (const t of [
      add(x, 0),
      add(0, x),
      add(x, zeros),
      sub(x, 0),
      mul(x, 1),
      mul(1, x),
      mul(x, ones),
      div(x, 1),
      div(x, ones),
      pow(x, 1),
      neg(neg(x)),
      mul(mul(x, 2), 0.5),
      expand(x, [2, 3]),
      reshape(x, [2, 3]),
      reshape(reshape(x, [6]), [2, -1]),
      transpose(transpose(x)),
      transpose(x, [0, 1]),
      slice(x, [0, 0], [2, 3]),
      pad(x, [0, 0], [0, 0]),
      concat([x], 0),
      split(x, [2], 0)[0],
      cast(x, 'float32'),
      reduceSum(x, { axes: [] }),
      where(g.constant(1, [], 'bool'), x, 5),
    ]) {
      expect(t).toBe(x);
    }
    // Neutral, but wider: the shape has to come out.
    expect(add(x, expand(g.constant(0), [4, 2, 3])).shape).toEqual([4, 2, 3]);
    expect(mul(g.constant(1, []), expand(g.constant(1), [5])).shape).toEqual([5]);
  });

  it('a concat that comes apart again', () => {
    const { x, y } = inputs();
    const [a, b] = split(concat([x, y], 1), [3, 3], 1);
    expect(a).toBe(x);
    expect(b).toBe(y);
    const [c] = split(concat([x, y], 1), [2, 4], 1);
    expect(c.shape).toEqual([2, 2]);
  });

  it('operators on constants', () => {
    const g = new Graph();
    const c = g.constant([1, 4, 9]);
    const folded = [sqrt(add(mul(c, 2), 1)), reduceSum(c), reshape(c, [3, 1]), cast(less(c, 5), 'float32')];
    for (const t of folded) expect(t.node.op.name).toBe('constant');
    expect(numbers(evaluate(withOutput(g, folded[0])).out.data)).toEqual([Math.sqrt(3), 3, Math.sqrt(19)]);
  });

  it('operators on constants too large to fold, other than their values', async () => {
    const g = new Graph();
    const n = 5000;
    const ramp = g.constant(Float64Array.from({ length: n }, (_, i) => i / n));
    const ones = g.constant(new Float64Array(n).fill(1));
    const x = g.input('x', [1]);
    g.output('y', add(mul(exp(ramp), ones), x));
    const expected = Array.from({ length: n }, (_, i) => Math.exp(i / n) + 1);
    expectClose('evaluated', evaluate(g, { x: [1] }).y.data, expected, 1e-12);
    expectClose('compiled', (await runCompiled(g, { x: [1] })).y, expected, 1e-6);
  });

  it('an expand that broadcasting does anyway', () => {
    expect(cost(({ x, s }) => add(x, expand(s, [2, 3])))).toEqual(['Add']);
    expect(cost(({ x, s }) => mul(expand(tanh(s), [2, 3]), x))).toEqual(['Mul', 'Tanh']);
    expect(cost(({ x, s }) => where(less(x, 0), expand(s, [2, 3]), x))).toEqual(['Less', 'Where']);
  });

  it('the reduction of what was only repeated', () => {
    expect(cost(({ s }) => reduceMax(expand(s, [100, 100])))).not.toContain('Expand');
    expect(cost(({ s }) => reduceSum(expand(s, [100, 100])))).not.toContain('Expand');
    expect(cost(({ s }) => reduceMean(expand(s, [100, 100])))).not.toContain('Expand');
  });

  it('what no output needs', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    g.output('y', exp(x));
    for (let i = 0; i < 10; i++) tanh(mul(x, i));
    grad(reduceSum(tanh(exp(x))), [x]);
    expect(toOnnx(g).nodeCount).toBe(1);
  });
});

function withOutput(g: Graph, t: Tensor): Graph {
  g.output('out', t);
  return g;
}

describe('shared and merged are', () => {
  it('the same operator on the same operands', () => {
    const { g, x, y } = inputs();
    expect(exp(x)).toBe(exp(x));
    expect(add(x, y)).toBe(add(x, y));
    expect(g.constant([1, 2])).toBe(g.constant([1, 2]));
    expect(split(x, [1, 2], 1)).toEqual(split(x, [1, 2], 1));
    expect(reduceSum(x, { axes: [0] })).not.toBe(reduceSum(x, { axes: [1] }));
    expect(g.constant([1, 2])).not.toBe(g.constant([1, 2], [2], 'int64'));
    expect(g.constant([1, 2])).not.toBe(g.constant([1, 2], [2, 1]));
    expect(g.constant([0])).not.toBe(g.constant([-0]));
    expect(g.constant([NaN])).toBe(g.constant([NaN]));
    expect(g.constant([1, 12])).not.toBe(g.constant([11, 2]));
  });

  it('what the derivative needs of the forward pass', () => {
    const types = cost(({ x }) => {
      const y = tanh(x);
      return add(y, grad(reduceSum(mul(y, y)), [x])[0]);
    });
    expect(types.filter(type => type === 'Tanh').length).toBe(1);
  });

  it('factors and signs', () => {
    expect(cost(({ x }) => mul(mul(mul(x, 2), 3), 4))).toEqual(['Mul']);
    expect(cost(({ x, y }) => mul(neg(x), neg(y)))).toEqual(['Mul']);
    expect(cost(({ x, y }) => add(x, neg(y)))).toEqual(['Sub']);
    expect(cost(({ x, y }) => sub(x, neg(y)))).toEqual(['Add']);
    expect(cost(({ x }) => neg(mul(x, -3)))).toEqual(['Mul']);
  });

  it('a mask: no Where', () => {
    expect(cost(({ x }) => where(less(x, 0), 3, 0))).toEqual(['Cast', 'Less', 'Mul']);
    expect(cost(({ x }) => where(less(x, 0), 1, 0))).toEqual(['Cast', 'Less']);
  });

  it('a sum of squares', () => {
    expect(cost(({ x }) => reduceSum(mul(x, x)))).toHaveLength(1);
    expect(cost(({ x }) => reduceSum(pow(x, 2), { axes: [1] }))).toHaveLength(1);
  });

  it('a transpose into the product that reads it', () => {
    expect(cost(({ x, y }) => matmul(x, transpose(y)))).toEqual(['Gemm']);
    expect(cost(({ x, y }) => matmul(transpose(x), y))).toEqual(['Gemm']);
  });

  it('no two constants of one graph', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    g.output('y', mul(tanh(add(x, 3)), g.constant(3)));
    expect(decodeModel(toOnnx(g).bytes).graph!.initializer!.length).toBe(1);
  });

  it('a layer and its derivative by input, weights and bias: products and a sum, nothing else', () => {
    const g = new Graph();
    const [x, w, b] = [g.input('x', [4, 3]), g.input('w', [3, 2]), g.input('b', [2])];
    grad(reduceSum(tanh(linear(x, w, b))), [x, w, b]).forEach((t, i) => {
      g.output(`d${i}`, t);
    });
    const types = opTypes(decodeModel(toOnnx(g).bytes).graph!).sort();
    expect(types.length).toBeLessThanOrEqual(7);
    for (const type of ['Expand', 'Reshape', 'Transpose', 'Identity']) expect(types).not.toContain(type);
  });
});

describe('the list that a concat was given', () => {
  it('may be changed afterwards', async () => {
    const { g, x, y } = inputs();
    const parts = [x, y];
    const joined = concat(parts, 0);
    parts.push(x);
    parts[0] = y;
    g.output('out', joined);
    const feeds = { x: [1, 2, 3, 4, 5, 6], y: [7, 8, 9, 10, 11, 12], s: [0] };
    g.output('s2', mul(g.inputNamed('s')!, 2));
    expect([...evaluate(g, feeds).out.data]).toEqual([...feeds.x, ...feeds.y]);
    expect((await runCompiled(g, feeds)).out).toEqual([...feeds.x, ...feeds.y]);
  });
});

/** Values with and without simplification: written against a constant, and against an input with the same value. */
describe('at the edges, a constant does what an input with its value does:', () => {
  const { float32Max, tiny } = { float32Max: 3.4028234663852886e38, tiny: 1e-40 };
  const values = [0, 1, -2, 1e-30, 1e30, Infinity, -Infinity, NaN];
  const constants = [0, -0, 1, -1, 0.5, 1e30, 1e-30, tiny, float32Max, Infinity, -Infinity, NaN];

  const forms: Record<string, (x: Tensor, c: Tensor | number) => Tensor> = {
    add: (x, c) => add(x, c),
    'sub from': (x, c) => sub(c, x),
    sub: (x, c) => sub(x, c),
    mul: (x, c) => mul(x, c),
    'mul twice': (x, c) => mul(mul(x, c), c),
    'product of two scaled': (x, c) => mul(mul(x, c), mul(x, c)),
    'product with a scaled one': (x, c) => mul(mul(x, c), x),
    'sum with a scaled one': (x, c) => add(x, mul(x, c)),
    'mul, then negated': (x, c) => neg(mul(x, c)),
    div: (x, c) => div(x, c),
    'div of': (x, c) => div(c, x),
    'div after mul': (x, c) => div(mul(x, c), c),
    // Of a square: √-∞ is NaN where (-∞)^½ is ∞, and no one minds.
    pow: (x, c) => pow(mul(x, x), c),
    where: (x, c) => where(less(x, 0.5), c, 0),
    'where, times x': (x, c) => mul(where(less(x, 0.5), c, 0), x),
    'where not': (x, c) => where(less(x, 0.5), x, c),
    'sum of scaled': (x, c) => reduceSum(mul(x, c), { axes: [1] }),
    'mean of scaled': (x, c) => reduceMean(mul(x, c), { axes: [1] }),
    'scaled scan': (x, c) =>
      loop({
        trips: 2,
        carry: { x },
        body: ({ carry }) => ({ carry, scan: { s: mul(carry.x, c) } }),
      }).scan.s,
    equal: (x, c) => equal(x, c),
  };
  it.each(Object.entries(forms))('%s', async (_, form) => {
    const g = new Graph();
    const x = g.input('x', [values.length, 1]);
    const feeds: Record<string, number[]> = { x: values };
    constants.forEach((c, i) => {
      feeds[`c${i}`] = [c];
      const input = g.input(`c${i}`, []);
      g.output(`plain${i}`, form(x, input));
      g.output(`folded${i}`, form(x, c));
    });
    const compiled = await runCompiled(g, feeds, { checkFeeds: false });
    const exact = evaluate(g, feeds);
    const wrong: string[] = [];
    constants.forEach((c, i) => {
      compiled[`plain${i}`].forEach((expected, k) => {
        const actual = compiled[`folded${i}`][k];
        // Rounding may differ, and so may what is too small for a normal float32; more exact is allowed, nothing else.
        const close = (target: number): boolean =>
          Object.is(actual + 0, target + 0) ||
          Math.abs(actual - target) <= 1e-6 * Math.abs(target) ||
          Math.abs(actual - target) < 2e-38;
        if (!close(expected) && !close(exact[`plain${i}`].data[k]))
          wrong.push(`x ${values[k % values.length]}, c ${c}: ${actual} instead of ${expected}`);
      });
    });
    expect(wrong).toEqual([]);
  });
});

describe('hoisting', () => {
  it('of an index that is out of range for trips that never come is not done, or does no harm', async () => {
    const g = new Graph();
    const [x, n] = [g.input('x', [2]), g.input('n', [], 'int64')];
    const { carry } = loop({
      trips: { count: n, atMost: 3 },
      carry: { x },
      body: ({ iteration, carry: c }) => ({ carry: { x: mul(c.x, gather(x, iteration)) } }),
    });
    g.output('y', carry.x);
    expect((await runCompiled(g, { x: [2, 3], n: [2] })).y).toEqual([12, 18]);
  });

  it('out of two loops at once', () => {
    const g = new Graph();
    const [x, w] = [g.input('x', [2]), g.input('w', [2])];
    const { carry } = loop({
      trips: 2,
      carry: { x },
      body: ({ carry: c }) => ({
        carry: loop({
          trips: 2,
          carry: { x: c.x },
          body: ({ carry: d }) => ({ carry: { x: add(mul(d.x, exp(w)), exp(c.x)) } }),
        }).carry,
      }),
    });
    g.output('y', carry.x);
    const model = decodeModel(toOnnx(g).bytes);
    const top = model.graph!.node!.map(node => node.opType);
    expect(top).toEqual(['Exp', 'Loop']);
  });
});

describe('large products with a transposed left side', () => {
  // What is copied into order differs by sizes: the left side, or the right one and the result; below them, nothing.
  const sizes = [
    ['left', 300, 256, 200],
    ['right and result', 300, 1024, 192],
    ['nothing: narrow', 300, 1024, 96],
    ['nothing: small', 64, 200, 200],
  ] as const;
  it.each(sizes)('%s', async (_, inner, rows, columns) => {
    const values = (count: number, step: number): Float32Array =>
      Float32Array.from({ length: count }, (_, i) => ((i * step) % 17) - 8);
    for (const transposeB of [false, true]) {
      const g = new Graph();
      const a = g.input('a', [inner, rows]);
      const b = g.input('b', transposeB ? [columns, inner] : [inner, columns]);
      g.output('product', matmul(a, b, { transposeA: true, transposeB }));
      const [left, right] = [values(inner * rows, 7), values(inner * columns, 5)];
      // Small whole numbers: sums are exact in float32, so that a value in a wrong place shows.
      const expected = new Float32Array(rows * columns);
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          for (let k = 0; k < inner; k++) {
            const other = transposeB ? right[j * inner + k] : right[k * columns + j];
            expected[i * columns + j] += left[k * rows + i] * other;
          }
        }
      }
      const { product } = await runCompiled(g, { a: left, b: right });
      expect(product).toEqual(numbers(expected));
    }
  });
});
