/**
 * What operators and graphs refuse. Every message is one line that begins with the operator, names both shapes or the
 * value with its limit, and comes when the operator is added, not when the graph is compiled or run.
 */
import { describe, expect, it } from 'vitest';
import {
  add,
  and,
  argMax,
  cast,
  clip,
  concat,
  div,
  EngineError,
  equal,
  erf,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  gelu,
  greater,
  greaterEqual,
  l2Norm,
  layerNorm,
  less,
  lessEqual,
  linear,
  log,
  logSoftmax,
  maskedSoftmax,
  matmul,
  max,
  min,
  mul,
  neg,
  not,
  or,
  pad,
  pow,
  reduceMax,
  reduceMean,
  reduceSum,
  relu,
  reshape,
  scatterAlong,
  scatterRows,
  showShape,
  sigmoid,
  sizeOf,
  slice,
  softmax,
  split,
  sqrt,
  sub,
  type Tensor,
  takeAlong,
  tanh,
  transpose,
  where,
} from '../../src/engine/index.ts';
import { f32 } from './support/check.ts';

/** Runs `f`, which must throw one line of an EngineError that starts like this and contains each fragment. */
function refuses(start: string, f: () => unknown, ...fragments: string[]): void {
  let error: unknown;
  try {
    f();
  } catch (e) {
    error = e;
  }
  if (!(error instanceof EngineError)) expect.fail(`${start}: ${error ?? 'nothing was thrown'}`);
  const { message } = error;
  expect(message).not.toContain('\n');
  expect(message.startsWith(start), `'${message}' starts with '${start}'`).toBe(true);
  for (const fragment of fragments) expect(message).toContain(fragment);
}

const g = new Graph();
const t = {
  scalar: g.input('scalar', []),
  two: g.input('two', [2]),
  three: g.input('three', [3]),
  twoThree: g.input('twoThree', [2, 3]),
  fourThree: g.input('fourThree', [4, 3]),
  cube: g.input('cube', [2, 3, 4]),
  otherCube: g.input('otherCube', [3, 4, 5]),
  empty: g.input('empty', [0, 3]),
  int: g.input('int', [3], 'int64'),
  int32: g.input('int32', [3], 'int32'),
  bool: g.input('bool', [3], 'bool'),
};

describe('shapes that do not broadcast are named, both of them', () => {
  const binary = { add, sub, mul, div, pow, min, max, equal, less, lessEqual, greater, greaterEqual };
  it.each(Object.entries(binary))('%s', (name, op) => {
    refuses(`${name}: `, () => op(t.two, t.three), '(2)', '(3)', 'axis 0');
    refuses(`${name}: `, () => op(t.twoThree, t.fourThree), '(2, 3)', '(4, 3)', '2 against 4 on axis 0');
    refuses(`${name}: `, () => op(expand(t.scalar, [2]), t.three), '(2)', '(3)');
    refuses(`${name}: `, () => op(t.three, g.constant([1, 1])), '(3)', '(2)');
    refuses(`${name}: `, () => op(neg(t.two), neg(t.three)), '(2)', '(3)');
  });

  it('and, or', () => {
    const wide = g.constant([1, 0], [2], 'bool');
    for (const [name, op] of Object.entries({ and, or }))
      refuses(`${name}: `, () => op(t.bool, wide), '(3)', '(2)');
  });

  it('where, on each of its three sides', () => {
    refuses('where: ', () => where(t.bool, t.two, t.three), '(2)', '(3)');
    refuses('where: ', () => where(t.bool, t.two, 0), '(3)', '(2)');
    refuses('where: ', () => where(t.bool, g.constant([1, 1]), 0), '(3)', '(2)');
    refuses('where: ', () => where(g.constant(1, [], 'bool'), t.two, t.three), '(2)', '(3)');
  });

  it('expand', () => {
    refuses('expand: ', () => expand(t.two, [3]), '(2)', '(3)');
    refuses('expand: ', () => expand(t.twoThree, [3]), '(2, 3)', '(3)');
    refuses('expand: ', () => expand(t.three, [1]), '(3)', '(1)', 'only sizes of 1');
    refuses('expand: ', () => expand(t.three, [-1, 3]), '(-1, 3)', '-1');
    refuses('expand: ', () => expand(t.three, [1.5, 3]), '1.5');
    refuses('expand: ', () => expand(t.scalar, [2 ** 16, 2 ** 16]), '4294967296', '2147483647');
  });
});

describe('dtypes', () => {
  it('of two operands must agree', () => {
    for (const [name, op] of Object.entries({ add, sub, mul, div, min, max, equal, less })) {
      refuses(`${name}: `, () => op(t.three, t.int), 'float32 and int64', 'cast one');
    }
    refuses('pow: ', () => pow(t.three, t.int), 'int64', 'cast');
    refuses('where: ', () => where(t.bool, t.three, t.int), 'float32 and int64', 'cast');
    refuses('concat: ', () => concat([t.three, t.int], 0), 'float32 and int64', 'cast');
  });

  it('that an operator takes are said', () => {
    for (const [name, op] of Object.entries({ neg, exp, log, sqrt, tanh, sigmoid, relu, erf })) {
      refuses(`${name}: `, () => op(t.int), 'takes float32, not int64', 'cast');
    }
    refuses('', () => gelu(t.int), 'cast');
    refuses('clip: ', () => clip(t.int, 0, 1), 'float32, not int64');
    refuses('pow: ', () => pow(t.int, 2), 'float32, not int64');
    for (const [name, op] of Object.entries({
      reduceSum,
      reduceMax,
      reduceMean,
      l2Norm,
      softmax,
      logSoftmax,
      maskedSoftmax,
    })) {
      refuses(`${name}: `, () => op(t.int), 'float32, not int64');
    }
    refuses('argMax: ', () => argMax(t.int, 0), 'float32, not int64');
    for (const [name, op] of Object.entries({ add, sub, mul, div, min, max, less, greater })) {
      refuses(`${name}: `, () => op(t.bool, t.bool), 'numbers, not bool', 'cast');
    }
    for (const [name, op] of Object.entries({ and, or })) {
      refuses(`${name}: `, () => op(t.bool, t.int), 'bool, not int64', 'compare');
    }
    refuses('not: ', () => not(t.three), 'bool, not float32', 'compare');
    refuses('where: ', () => where(t.three, 1, 0), 'bool, not float32');
  });

  it('of neutral operands are checked, too', () => {
    refuses('add: ', () => add(t.bool, 0), 'numbers, not bool');
    refuses('mul: ', () => mul(t.bool, 1), 'numbers, not bool');
    refuses('sub: ', () => sub(t.bool, 0), 'numbers, not bool');
  });

  it('of indices are whole numbers', () => {
    refuses('gather: ', () => gather(t.twoThree, t.three), 'float32', 'int64');
    refuses('takeAlong: ', () => takeAlong(t.three, t.three, 0), 'float32', 'int64');
    refuses('scatterRows: ', () => scatterRows(t.three, t.three, [3]), 'float32', 'int64');
    refuses('scatterAlong: ', () => scatterAlong(t.bool, t.three, 0, [3]), 'bool', 'int64');
    refuses('scatterRows: ', () => scatterRows(t.int, t.int32, [3]), 'float32, not int32');
  });

  it('hold the numbers that are mixed with them', () => {
    // Half of a whole number is neither truncated in silence nor an error of the runtime later on.
    refuses('add: ', () => add(t.int, 0.5), '0.5', 'int64');
    refuses('mul: ', () => mul(t.int32, 1.5), '1.5', 'int32');
    refuses('equal: ', () => equal(t.bool, 2), '2', 'bool');
    refuses('constant', () => g.constant([1, 2.5], [2], 'int64'), '2.5', 'int64');
    refuses('constant', () => g.constant(3e9, [], 'int32'), '3000000000', 'int32');
    refuses('constant', () => g.constant([0, 7], [2], 'bool'), '7', 'bool');
    refuses('constant', () => g.constant([2n ** 60n + 1n], [1], 'int64'), String(2n ** 60n + 1n));
    // Also where folding makes the number: it would wrap around in one way of running and not in the other.
    refuses('', () => add(g.constant(2147483647, [], 'int32'), 1), '2147483648', 'int32');
    refuses('', () => cast(g.constant(1e20), 'int64'), '100000000000000000000', 'int64');
    refuses('', () => div(g.constant(1, [], 'int64'), 0), 'int64');
    refuses('input', () => g.input('double', [2], 'float64' as never), 'float64', 'float32');
    refuses('cast', () => cast(t.three, 'float64' as never), 'float64', 'float32');
  });
});

describe('moving values', () => {
  it('reshape', () => {
    refuses('reshape: ', () => reshape(t.twoThree, [4]), '(2, 3) holds 6', '(4) holds 4');
    refuses('reshape: ', () => reshape(t.twoThree, [4, -1]), '(2, 3)', '(4, -1)', '6');
    refuses('reshape: ', () => reshape(t.twoThree, [-1, -1]), '(-1, -1)', 'more than one');
    refuses('reshape: ', () => reshape(t.twoThree, [-2, -3]), '-2');
    refuses('reshape: ', () => reshape(t.twoThree, [1.5, 4]), '1.5');
    refuses('reshape: ', () => reshape(t.empty, [0, -1]), '(0, 3)', '(0, -1)');
  });

  it('transpose', () => {
    refuses('transpose: ', () => transpose(t.three), '(3)', 'at least 2');
    refuses('transpose: ', () => transpose(t.cube, [0, 1]), '(0, 1)', '(2, 3, 4)');
    refuses('transpose: ', () => transpose(t.cube, [0, 1, 1]), '(0, 1, 1)', '(2, 3, 4)');
    refuses('transpose: ', () => transpose(t.cube, [0, 1, 3]), '3', '-3 to 2');
  });

  it('concat and split', () => {
    refuses('concat: ', () => concat([], 0), 'at least one');
    refuses('concat: ', () => concat([t.twoThree, t.fourThree], 1), '(2, 3)', '(4, 3)', 'axis 1');
    refuses('concat: ', () => concat([t.twoThree, t.three], 0), '(2, 3)', '(3)');
    refuses('concat: ', () => concat([t.twoThree], 2), '2', '-2 to 1');
    refuses('split: ', () => split(t.twoThree, [1, 1], 1), '1 + 1', '(2, 3)', '3');
    refuses('split: ', () => split(t.twoThree, [4, -1], 1), '4 + -1', '(2, 3)');
    refuses('split: ', () => split(t.twoThree, [1.5, 1.5], 1), '1.5 + 1.5');
    refuses('split: ', () => split(t.twoThree, [2], -3), '-3', '-2 to 1');
  });

  it('slice and pad', () => {
    refuses('slice: ', () => slice(t.twoThree, [0, 1], [2, 4]), '1 to 4', '(2, 3)', '3');
    refuses('slice: ', () => slice(t.twoThree, [2], [1], [1]), '2 to 1', '(2, 3)');
    refuses('slice: ', () => slice(t.twoThree, [-4], [3], [1]), '(2, 3)');
    refuses('slice: ', () => slice(t.twoThree, [0], [1, 2]), '1 starts, 2 ends');
    refuses('slice: ', () => slice(t.twoThree, [0, 0], [1, 1], [1, -1]), 'twice');
    refuses('slice: ', () => slice(t.twoThree, [0.5], [1.5]), '0.5');
    refuses('slice: ', () => slice(t.twoThree, [0, 0, 0], [1, 1, 1]), '2', '-2 to 1');
    refuses('pad: ', () => pad(t.twoThree, [1], [1]), '(1)', '(2, 3)');
    refuses('pad: ', () => pad(t.twoThree, [-1, 0], [1, 0]), '(-1, 0)', '(2, 3)');
    refuses('pad: ', () => pad(t.twoThree, [0.5, 0], [1, 0]), '0.5');
    refuses('pad: ', () => pad(t.twoThree, [0], [0, 0, 0]), '(0)', '(2, 3)');
  });
});

describe('products', () => {
  it('matmul', () => {
    refuses('matmul: ', () => matmul(t.twoThree, t.twoThree), '(2, 3) and (2, 3)', '3 and 2');
    refuses(
      'matmul: ',
      () => matmul(t.twoThree, t.fourThree, { transposeA: true, transposeB: true }),
      '(2, 3) transposed and (4, 3) transposed',
      '2 and 3',
    );
    refuses('matmul: ', () => matmul(t.three, t.twoThree), '(3)', '(2, 3)', 'at least 2 axes');
    // As they were written, not as the operator rearranges them.
    refuses('matmul: ', () => matmul(t.cube, t.twoThree), '(2, 3, 4)', '(2, 3)');
    refuses('matmul: ', () => matmul(t.cube, t.otherCube), '(2, 3, 4)', '(3, 4, 5)');
    refuses('matmul: ', () => matmul(t.cube, cast(t.twoThree, 'int32')), 'float32, not int32');
  });

  it('linear', () => {
    refuses('linear: ', () => linear(t.twoThree, t.twoThree, t.three), '(2, 3) and (2, 3)');
    refuses('linear: ', () => linear(t.cube, t.twoThree, t.three), '(2, 3, 4)', '(2, 3)');
    refuses(
      'linear: ',
      () => linear(t.twoThree, t.fourThree, t.three, { transposeW: true }),
      '(3)',
      '(4, 3)',
      '(4)',
    );
    refuses(
      'linear: ',
      () => linear(t.twoThree, t.fourThree, t.scalar, { transposeW: true }),
      '()',
      '(4, 3)',
    );
  });
});

describe('by index', () => {
  it('gather', () => {
    refuses('gather: ', () => gather(t.twoThree, t.int, 2), 'axis 2', '-2 to 1');
    refuses('gather: ', () => gather(t.scalar, t.int), 'axis 0', '0 axes');
    refuses(
      'gather: ',
      () => gather(g.constant([1, 2]), g.constant([2], [1], 'int64')),
      'index 2',
      '-2 to 1',
    );
  });

  it('takeAlong and the scatters', () => {
    refuses('takeAlong: ', () => takeAlong(t.twoThree, t.int, 1), '(3)', '(2, 3)');
    const wide = g.input('wide', [3, 1], 'int64');
    refuses('takeAlong: ', () => takeAlong(t.twoThree, wide, 1), '(3, 1)', '(2, 3)', 'axis 1');
    refuses('scatterRows: ', () => scatterRows(t.int, t.twoThree, [4, 3]), '(2, 3)', '(3)', '(4, 3)');
    refuses('scatterRows: ', () => scatterRows(t.int, t.three, [-1]), '-1');
    refuses('scatterAlong: ', () => scatterAlong(t.int, t.two, 0, [3]), '(3)', '(2)');
    refuses('scatterAlong: ', () => scatterAlong(t.int, t.three, 1, [3]), 'axis 1', '-1 to 0');
    refuses('scatterAlong: ', () => scatterAlong(wide, t.three, 1, [2, 3]), '(3, 1)', '(2, 3)');
  });
});

describe('reductions', () => {
  const reductions = { reduceSum, reduceMean, reduceMax, l2Norm };
  it.each(Object.entries(reductions))('%s', (name, op) => {
    refuses(`${name}: `, () => op(t.twoThree, { axes: [2] }), 'axis 2', '-2 to 1');
    refuses(`${name}: `, () => op(t.twoThree, { axes: [0, -2] }), '0, -2', 'twice');
    refuses(`${name}: `, () => op(t.twoThree, { axes: [0.5] }), '0.5');
    refuses(`${name}: `, () => op(t.scalar, { axes: [0] }), 'axis 0', '0 axes');
  });

  it('of nothing, where that has no value', () => {
    for (const [name, op] of Object.entries({ reduceMean, reduceMax })) {
      refuses(`${name}: `, () => op(t.empty, { axes: [0] }), '(0, 3)', 'at least 1');
      refuses(`${name}: `, () => op(t.empty), '(0, 3)');
      refuses(`${name}: `, () => op(expand(t.scalar, [0])), '(0)', 'at least 1');
      expect(op(t.empty, { axes: [1] }).shape).toEqual([0]);
    }
    refuses('argMax: ', () => argMax(t.empty, 0), '(0, 3)', 'at least 1');
    refuses('softmax: ', () => softmax(t.empty, 0), '(0, 3)', 'at least 1');
  });

  it('argMax, softmax, logSoftmax, layerNorm', () => {
    refuses('argMax: ', () => argMax(t.twoThree, 2), 'axis 2', '-2 to 1');
    refuses('softmax: ', () => softmax(t.twoThree, -3), 'axis -3', '-2 to 1');
    refuses('logSoftmax: ', () => logSoftmax(t.scalar), 'axis -1', '0 axes');
    refuses('layerNorm: ', () => layerNorm(t.twoThree, t.two, t.three), '(2, 3)', '(3)', '(2)');
    refuses('layerNorm: ', () => layerNorm(t.twoThree, t.three, t.scalar), '(2, 3)', '()');
    refuses('layerNorm: ', () => layerNorm(t.scalar, t.three, t.three), '()', 'last axis');
  });
});

describe('clip', () => {
  it('refuses bounds that cross or that are not scalars', () => {
    refuses('clip: ', () => clip(t.three, 2, 1), '2', '1', 'swap');
    refuses('clip: ', () => clip(t.three, t.three, 1), '(3)', 'min and max');
    refuses('clip: ', () => clip(t.three, 0, t.int), 'int64');
    expect(() => clip(t.three, 1, 1)).not.toThrow();
  });
});

describe('graphs', () => {
  it('refuse operands of two graphs', () => {
    const other = new Graph().input('other', [3]);
    refuses('add: ', () => add(t.three, other), 'different graphs');
    refuses('concat: ', () => concat([t.three, other], 0), 'different graphs');
    refuses('matmul: ', () => matmul(t.twoThree, new Graph().input('o', [3, 1])), 'different graphs');
  });

  it('refuse operators on numbers only', () => {
    for (const [name, op] of Object.entries({ add, mul, pow, less }))
      refuses(`${name}: `, () => op(1, 2), 'tensor');
  });

  it('refuse names that are empty or taken, and shapes that are none', () => {
    const h = new Graph();
    const x = h.input('x', [2]);
    refuses("input ''", () => h.input('', [2]));
    refuses("input 'x'", () => h.input('x', [3]), '(2)', 'another name');
    refuses("input 'y'", () => h.input('y', [2, -1]), '(2, -1)', '-1', 'at least 0');
    refuses("input 'y'", () => h.input('y', [0.5]), '0.5');
    refuses("input 'y'", () => h.input('y', [NaN]), 'NaN');
    refuses("input 'y'", () => h.input('y', [1e6, 1e6]), '1000000000000', '2147483647');
    h.output('out', x);
    refuses("output 'out'", () => h.output('out', x), 'another name');
    refuses("output ''", () => h.output('', x));
    refuses("output 'z'", () => h.output('z', t.three), 'another graph');
  });

  it('refuse constants of which there are too few or too many', () => {
    refuses('constant: ', () => g.constant([1, 2, 3], [2]), '(2) holds 2', '3 were given');
    refuses('constant: ', () => g.constant(1, [2]), '(2) holds 2', '1');
    refuses('constant: ', () => g.constant([1], [-1]), '-1');
  });

  it('are unharmed by a refusal: nothing was added', () => {
    const h = new Graph();
    const x = h.input('x', [2]);
    const y = h.input('y', [3]);
    const before = h.nodes.length;
    expect(() => add(x, y)).toThrow();
    expect(() => matmul(x, y)).toThrow();
    expect(h.nodes.length).toBe(before);
  });
});

describe('evaluate refuses', () => {
  const h = new Graph();
  h.output('y', exp(h.input('x', [2, 3])));

  it('a missing feed and one of another length', () => {
    refuses("feed 'x'", () => evaluate(h), '(2, 3)', 'missing');
    refuses("feed 'x'", () => evaluate(h, { x: f32(1, 2) }), '2 values', '(2, 3) holds 6');
  });

  it('an index out of range', () => {
    const k = new Graph();
    const [x, i] = [k.input('x', [3]), k.input('i', [1], 'int64')];
    const along: Tensor[] = [gather(x, i), takeAlong(x, i, 0), scatterRows(i, slice(x, [0], [1]), [3])];
    along.forEach((y, n) => {
      k.output(`y${n}`, y);
    });
    for (const bad of [3, -4])
      refuses('', () => evaluate(k, { x: [1, 2, 3], i: [bad] }), String(bad), '-3 to 2');
  });
});

describe('helpers', () => {
  it('showShape, sizeOf', () => {
    expect([showShape([]), showShape([3]), showShape([2, 3])]).toEqual(['()', '(3)', '(2, 3)']);
    expect([sizeOf([]), sizeOf([3]), sizeOf([2, 3]), sizeOf([0, 5])]).toEqual([1, 3, 6, 0]);
  });
});
