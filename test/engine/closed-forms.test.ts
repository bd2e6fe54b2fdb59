/**
 * Every operator at least once against numbers written down by hand, so that an error which the interpreter, the ONNX
 * writer and the naive formulas share does not stay hidden.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { type DType, erf, evaluate, Graph, type Tensor } from '../../src/engine/index.ts';
import { expectClose, type PlainFeeds, runCompiled } from './support/check.ts';
import { exportedOperators } from './support/exports.ts';
import { erfByIntegral } from './support/naive.ts';
import { engineOps, type Ops } from './support/ops.ts';

const called = new Set<string>();

interface Given {
  readonly k: Ops<Tensor>;
  /** An input with these values: never folded. */
  f32(values: number[], shape?: number[]): Tensor;
  i64(values: number[], shape?: number[]): Tensor;
  i32(values: number[], shape?: number[]): Tensor;
  bool(values: number[], shape?: number[]): Tensor;
}

/** Checks outputs (a list of values, or of lists) compiled and interpreted, and the shape of the first. */
function closedForm(
  name: string,
  make: (given: Given) => Tensor | readonly Tensor[],
  expected: readonly (readonly number[])[],
  shape?: readonly number[],
): void {
  it(name, async () => {
    const graph = new Graph();
    const feeds: PlainFeeds = {};
    const input =
      (dtype: DType) =>
      (values: number[], own: number[] = [values.length]): Tensor => {
        const id = `in${graph.inputs.length}`;
        feeds[id] = values;
        return graph.input(id, own, dtype);
      };
    const k = engineOps(graph, op => called.add(op));
    const made = make({
      k,
      f32: input('float32'),
      i64: input('int64'),
      i32: input('int32'),
      bool: input('bool'),
    });
    const outputs: readonly Tensor[] = Array.isArray(made) ? made : [made as Tensor];
    if (shape) expect(outputs[0].shape).toEqual(shape);
    outputs.forEach((t, i) => {
      graph.output(`out${i}`, t);
    });
    const reference = evaluate(graph, feeds);
    const compiled = await runCompiled(graph, feeds);
    expect(outputs.length).toBe(expected.length);
    expected.forEach((values, i) => {
      expectClose(`evaluate, output ${i}`, reference[`out${i}`].data, values, 1e-12);
      expectClose(`compiled, output ${i}`, compiled[`out${i}`], values, 1e-6);
    });
  });
}

describe('value by value', () => {
  closedForm(
    'add',
    g => g.k.add(g.f32([1, 2]), g.f32([10, 20, 30], [3, 1])),
    [[11, 12, 21, 22, 31, 32]],
    [3, 2],
  );
  closedForm('sub', g => g.k.sub(g.f32([1, 2], [2, 1]), g.f32([10, 20])), [[-9, -19, -8, -18]], [2, 2]);
  closedForm('mul', g => g.k.mul(g.f32([1, 2, 3]), g.f32([-2], [])), [[-2, -4, -6]], [3]);
  closedForm('div', g => g.k.div(g.f32([1, -3, 0]), g.f32([4, 2, 5])), [[0.25, -1.5, 0]]);
  closedForm('div by 0', g => g.k.div(g.f32([1, -1]), 0), [[Infinity, -Infinity]]);
  closedForm(
    'div of whole numbers is truncated',
    g => [g.k.div(g.i32([7, -7, 7, -7]), g.i32([2, 2, -2, -2])), g.k.div(g.i64([-1, 9]), 4)],
    [
      [3, -3, -3, 3],
      [0, 2],
    ],
  );
  closedForm('pow', g => g.k.pow(g.f32([2, 9, -2, 5]), g.f32([10, 0.5, 3, 0])), [[1024, 3, -8, 1]]);
  closedForm('min, max', g => [g.k.min(g.f32([1, -2, 3]), g.f32([2, -3, 3])), g.k.max(g.f32([1, -2]), 0)], [
    [1, -3, 3],
    [1, 0],
  ]);
  closedForm('neg', g => g.k.neg(g.f32([1, -2, 0.5])), [[-1, 2, -0.5]]);
  closedForm('exp', g => g.k.exp(g.f32([0, 1, -1])), [[1, Math.E, 0.36787944117144233]]);
  closedForm('log', g => g.k.log(g.f32([1, 2, 0.5])), [[0, Math.LN2, -Math.LN2]]);
  closedForm('sqrt', g => g.k.sqrt(g.f32([4, 2, 0])), [[2, Math.SQRT2, 0]]);
  closedForm('tanh', g => g.k.tanh(g.f32([0.5, -2, 0])), [[0.46211715726000974, -0.9640275800758169, 0]]);
  closedForm('sigmoid', g => g.k.sigmoid(g.f32([0, 2, -2, 100])), [
    [0.5, 0.8807970779778823, 0.11920292202211755, 1],
  ]);
  closedForm('relu', g => g.k.relu(g.f32([-1, 0, 2])), [[0, 0, 2]]);
  closedForm('erf', g => g.k.erf(g.f32([0, 0.5, -1, 2, 3.5, 10])), [
    [0, 0.5204998778130465, -0.8427007929497149, 0.9953222650189527, 0.9999992569016276, 1],
  ]);
  closedForm('gelu', g => g.k.gelu(g.f32([1, -2, 0])), [[0.8413447460685429, -0.04550026389635842, 0]]);
  closedForm('gelu tanh', g => g.k.gelu(g.f32([1, 0.5]), { approximate: 'tanh' }), [
    [0.8411919906082768, 0.34571400982514394],
  ]);
  closedForm('clip', g => g.k.clip(g.f32([-3, -1, 0, 1, 3]), -1, 2), [[-1, -1, 0, 1, 2]]);
  closedForm('stopGradient', g => g.k.stopGradient(g.f32([1, 2])), [[1, 2]]);
  closedForm(
    'comparisons',
    g => {
      const [a, b] = [g.f32([1, 2, 3]), g.f32([2, 2, 2])];
      return [
        g.k.equal(a, b),
        g.k.less(a, b),
        g.k.lessEqual(a, b),
        g.k.greater(a, b),
        g.k.greaterEqual(a, b),
      ];
    },
    [
      [0, 1, 0],
      [1, 0, 0],
      [1, 1, 0],
      [0, 0, 1],
      [0, 1, 1],
    ],
  );
  closedForm(
    'and, or, not',
    g => {
      const [a, b] = [g.bool([0, 0, 1, 1]), g.bool([0, 1, 0, 1])];
      return [g.k.and(a, b), g.k.or(a, b), g.k.not(a)];
    },
    [
      [0, 0, 0, 1],
      [0, 1, 1, 1],
      [1, 1, 0, 0],
    ],
  );
  closedForm(
    'where',
    g => g.k.where(g.bool([1, 0], [2, 1]), g.f32([1, 2]), g.f32([-5], [])),
    [[1, 2, -5, -5]],
    [2, 2],
  );
  closedForm(
    'cast',
    g => [g.k.cast(g.f32([-1.9, 0.5, 2]), 'int32'), g.k.cast(g.f32([-1.9, 0, 0.25]), 'bool')],
    [
      [-1, 0, 2],
      [1, 0, 1],
    ],
  );
  closedForm(
    'expand',
    g => g.k.expand(g.f32([1, 2], [2, 1]), [2, 2, 3]),
    [[1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]],
    [2, 2, 3],
  );
});

it('erf is exact in float64 everywhere, also where its two formulas meet', () => {
  const g = new Graph();
  const at = Array.from({ length: 1301 }, (_, i) => (i - 650) / 100).concat([
    2.4999999999, 2.5, 5.9999999, 6,
  ]);
  g.output('y', erf(g.input('x', [at.length])));
  expectClose('erf', evaluate(g, { x: at }).y.data, at.map(erfByIntegral), 1e-11);
});

const ramp = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe('moving values', () => {
  closedForm('reshape', g => g.k.reshape(g.f32(ramp(6), [2, 3]), [3, -1]), [ramp(6)], [3, 2]);
  closedForm('transpose', g => g.k.transpose(g.f32(ramp(6), [2, 3])), [[0, 3, 1, 4, 2, 5]], [3, 2]);
  closedForm(
    'transpose by an order',
    // x[i][j][k] = 100i + 10j + k becomes y[k][i][j].
    g => g.k.transpose(g.f32([0, 1, 10, 11, 20, 21], [1, 3, 2]), [2, 0, 1]),
    [[0, 10, 20, 1, 11, 21]],
    [2, 1, 3],
  );
  closedForm(
    'concat',
    g => g.k.concat([g.f32([1, 2], [2, 1]), g.f32([3, 4, 5, 6], [2, 2])], 1),
    [[1, 3, 4, 2, 5, 6]],
    [2, 3],
  );
  closedForm('split', g => g.k.split(g.f32(ramp(6), [2, 3]), [1, 2], 1), [
    [0, 3],
    [1, 2, 4, 5],
  ]);
  closedForm('slice', g => g.k.slice(g.f32(ramp(12), [3, 4]), [1, -3], [3, -1]), [[5, 6, 9, 10]], [2, 2]);
  closedForm('pad', g => g.k.pad(g.f32([1, 2], [1, 2]), [1, 0], [0, 2]), [[0, 0, 0, 0, 1, 2, 0, 0]], [2, 4]);
});

describe('products', () => {
  closedForm(
    'matmul',
    g => {
      const [a, b] = [g.f32([1, 2, 3, 4, 5, 6], [2, 3]), g.f32([7, 8, 9, 10, 11, 12], [2, 3])];
      return [g.k.matmul(a, b, { transposeB: true }), g.k.matmul(a, b, { transposeA: true })];
    },
    [
      [50, 68, 122, 167],
      [47, 52, 57, 64, 71, 78, 81, 90, 99],
    ],
    [2, 2],
  );
  closedForm(
    'matmul with broadcast batches',
    // (2, 1, 1, 2) by (3, 2, 1): every pair of a row and a column.
    g => g.k.matmul(g.f32([1, 2, 3, 4], [2, 1, 1, 2]), g.f32([1, 0, 0, 1, 1, 1], [3, 2, 1])),
    [[1, 2, 3, 3, 4, 7]],
    [2, 3, 1, 1],
  );
  closedForm(
    'linear',
    g => g.k.linear(g.f32([1, 2, 3, 4], [2, 2]), g.f32([1, 0, -1, 2], [2, 2]), g.f32([10, 20])),
    [[9, 24, 9, 28]],
    [2, 2],
  );
  closedForm(
    'linear with weights (outputs, inputs)',
    g =>
      g.k.linear(g.f32([1, 2], [1, 2]), g.f32([1, 0, -1, 2, 5, 5], [3, 2]), g.f32([0, 0, 1]), {
        transposeW: true,
      }),
    [[1, 3, 16]],
    [1, 3],
  );
});

describe('by index', () => {
  closedForm(
    'gather rows',
    g => g.k.gather(g.f32([1, 2, 3, 4, 5, 6], [3, 2]), g.i64([2, 0, -1])),
    [[5, 6, 1, 2, 5, 6]],
    [3, 2],
  );
  closedForm('gather one row', g => g.k.gather(g.f32([1, 2, 3, 4], [2, 2]), g.i32([1], [])), [[3, 4]], [2]);
  closedForm(
    'gather along the second axis',
    g => g.k.gather(g.f32([1, 2, 3, 4, 5, 6], [2, 3]), g.i64([2, 0], [1, 2]), 1),
    [[3, 1, 6, 4]],
    [2, 1, 2],
  );
  closedForm(
    'takeAlong',
    g => g.k.takeAlong(g.f32([1, 2, 3, 4, 5, 6], [2, 3]), g.i64([2, 0], [2, 1]), 1),
    [[3, 4]],
    [2, 1],
  );
  closedForm(
    'scatterRows adds',
    g => g.k.scatterRows(g.i64([1, 1, 2]), g.f32([1, 2, 10, 20, 5, 6], [3, 2]), [4, 2]),
    [[0, 0, 11, 22, 5, 6, 0, 0]],
    [4, 2],
  );
  closedForm(
    'scatterAlong adds',
    g => g.k.scatterAlong(g.i64([0, 0, 2, 1], [2, 2]), g.f32([1, 2, 3, 4], [2, 2]), 1, [2, 3]),
    [[3, 0, 0, 0, 4, 3]],
    [2, 3],
  );
});

describe('reductions', () => {
  const table = [1, 2, 3, 4, 5, 6];
  closedForm(
    'reduceSum of what was repeated along some axes and not along others',
    g => {
      const x = g.k.expand(g.f32([1, 2, 3], [3, 1]), [3, 4]);
      return [g.k.reduceSum(x), g.k.reduceSum(x, { axes: [0] }), g.k.reduceSum(x, { axes: [1] })];
    },
    [[24], [6, 6, 6, 6], [4, 8, 12]],
  );
  closedForm(
    'reduceSum',
    g => {
      const x = g.f32(table, [2, 3]);
      return [
        g.k.reduceSum(x, { axes: [0] }),
        g.k.reduceSum(x, { axes: [1], keepDims: true }),
        g.k.reduceSum(x),
        g.k.reduceSum(x, { axes: [] }),
      ];
    },
    [[5, 7, 9], [6, 15], [21], table],
    [3],
  );
  closedForm('reduceMean', g => g.k.reduceMean(g.f32(table, [2, 3]), { axes: [-1] }), [[2, 5]], [2]);
  closedForm(
    'reduceMax',
    g => g.k.reduceMax(g.f32([1, 9, -3, 4, 0, 7], [2, 3]), { axes: [0], keepDims: true }),
    [[4, 9, 7]],
    [1, 3],
  );
  closedForm('l2Norm', g => g.k.l2Norm(g.f32([3, 4, 5, 12], [2, 2]), { axes: [1] }), [[5, 13]], [2]);
  closedForm('l2Norm over no axis', g => g.k.l2Norm(g.f32([3, -4], [2]), { axes: [] }), [[3, 4]], [2]);
  closedForm(
    'sum of squares over some axes, all, and none',
    g => {
      const x = g.f32([1, -2, 3, -4], [2, 2]);
      return [[1], [0, 1], []].map(axes => g.k.reduceSum(g.k.mul(x, x), { axes }));
    },
    [[5, 25], [30], [1, 4, 9, 16]],
    [2],
  );
  closedForm(
    'argMax',
    g => [g.k.argMax(g.f32([1, 5, 5, 7, 0, 2], [2, 3]), 1), g.k.argMax(g.f32([1, 2, 3]), 0)],
    [[1, 0], [2]],
  );
});

describe('softmax and layerNorm', () => {
  const logits = [0, Math.log(2), Math.log(5)];
  closedForm('softmax', g => g.k.softmax(g.k.constant(logits, [3])), [[0.125, 0.25, 0.625]]);
  closedForm('softmax along the first axis', g => g.k.softmax(g.f32([1, 2, 1, 2], [2, 2]), 0), [
    [0.5, 0.5, 0.5, 0.5],
  ]);
  closedForm('logSoftmax', g => g.k.logSoftmax(g.k.add(g.f32([0, 0, 0]), g.k.constant(logits, [3]))), [
    [Math.log(0.125), Math.log(0.25), Math.log(0.625)],
  ]);
  closedForm('logSoftmax of a masked action', g => g.k.logSoftmax(g.f32([3, -Infinity, 3])), [
    [-Math.LN2, -Infinity, -Math.LN2],
  ]);
  closedForm(
    'softmax of masked values',
    g => g.k.maskedSoftmax(g.f32([3, -1e9, 3, 500, -1e9, 499], [2, 3])),
    [[0.5, 0, 0.5, 1 / (1 + Math.exp(-1)), 0, 1 / (1 + Math.E)]],
  );
  closedForm('softmax of a masked action', g => g.k.softmax(g.f32([3, -Infinity, 3])), [[0.5, 0, 0.5]]);
  closedForm(
    'layerNorm',
    // Mean 2.5, variance 1.25: with an epsilon of 1 the divisor is 1.5.
    g => g.k.layerNorm(g.f32([1, 2, 3, 4]), g.f32([3, 3, 3, 6]), g.f32([0, 10, 0, 0]), 1),
    [[-3, 9, 1, 6]],
  );
});

describe('loops', () => {
  closedForm(
    'Fibonacci numbers: carried, scanned and counted',
    g => {
      const { carry, scan, iterations } = g.k.loop({
        trips: 6,
        carry: { a: g.i64([0], []), b: g.i64([1], []) },
        body: ({ carry: { a, b } }) => ({ carry: { a: b, b: g.k.add(a, b) }, scan: { a } }),
      });
      return [scan.a, carry.a, iterations];
    },
    [[0, 1, 1, 2, 3, 5], [8], [6]],
    [6],
  );
  closedForm(
    "compound interest until it doubles: the loop's own end, and rows of 0 after it",
    g => {
      const { carry, scan, iterations } = g.k.loop({
        trips: 5,
        carry: { x: g.f32([1], []) },
        body: ({ carry: { x } }) => {
          const next = g.k.mul(x, 1.5);
          return { carry: { x: next }, scan: { x: next }, goOn: g.k.less(next, 2) };
        },
      });
      return [carry.x, scan.x, iterations];
    },
    [[2.25], [1.5, 2.25, 0, 0, 0], [2]],
    [],
  );
});

afterAll(() => {
  expect(
    exportedOperators().filter(name => !called.has(name)),
    'exported operators without a closed form',
  ).toEqual([]);
});
