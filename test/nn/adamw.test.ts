import { describe, expect, it, test } from 'vitest';
import { type AdamWState, type AdamWStep, adamW, addInto, norm, parameters } from '../../src/nn/index.ts';
import { adamWRange } from '../../src/nn/vector-kernels.ts';
import { Rng } from '../../src/random/index.ts';
import { largestError, normals, ReferenceAdam } from './support/reference.ts';

/** Around the lengths of vectors, of turns of loops and of chunks, and over several chunks. */
const lengths = [1, 3, 4, 5, 15, 16, 17, 4095, 4096, 4097, 40_000];

const layoutOf = (...shapes: readonly (readonly number[])[]) =>
  parameters(shapes.map((shape, i) => ({ name: `p${i}`, shape, init: () => {}, group: 'all' })));

const floats = (rng: Rng, count: number, scale = 1) => Float32Array.from(normals(rng, count, scale));

/** Weights and moments as they are in the middle of training. */
const stateOf = (rng: Rng, size: number): AdamWState => ({
  weights: floats(rng, size),
  m: floats(rng, size, 0.1),
  v: floats(rng, size, 0.1).map(value => value * value),
});

const copyOf = ({ weights, m, v }: AdamWState): AdamWState => ({
  weights: weights.slice(),
  m: m.slice(),
  v: v.slice(),
});

const bitsOf = (values: Float32Array) =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');

const stateBits = ({ weights, m, v }: AdamWState) => [weights, m, v].map(bitsOf);

/** Several steps beside the textbook's in float64. */
function compare(
  shapes: readonly (readonly number[])[],
  seed: number,
  options: Omit<AdamWStep, 'gradient' | 'learningRate' | 'step'>,
  steps = 3,
): void {
  const layout = layoutOf(...shapes);
  const rng = new Rng(seed);
  const state = stateOf(rng, layout.size);
  const { gradientScale = 1, weightDecay = 0, ...settings } = options;
  const reference = new ReferenceAdam(state.weights, settings, { m: state.m, v: state.v, t: 6 });
  const decays = shapes.flatMap(shape =>
    Array<number>(shape.reduce((a, b) => a * b, 1)).fill(shape.length > 1 ? weightDecay : 0),
  );
  for (let step = 7; step < 7 + steps; step++) {
    const gradient = floats(rng, layout.size);
    adamW(layout, state, { ...options, gradient, learningRate: 0.01, step });
    const scaled = Float64Array.from(gradient, value => value * gradientScale);
    reference.step(scaled, 0.01, decays);
    // Where two terms cancel, the error is relative to them and not to what is left.
    expect(largestError(state.m, reference.m, 0.1)).toBeLessThan(1e-6);
    expect(largestError(state.v, reference.v)).toBeLessThan(1e-6);
    expect(largestError(state.weights, reference.weights, 0.1)).toBeLessThan(1e-6);
  }
}

describe('AdamW', () => {
  it.each(lengths)('is the textbook over %i values', length => {
    compare([[length]], length, {});
    compare([[length, 1]], length, { weightDecay: 0.3, gradientScale: 0.25, beta1: 0.8, beta2: 0.95 });
  });

  it('takes decay of matrices alone, wherever they begin', () => {
    compare([[3], [5, 7], [], [65, 63], [1], [2, 2049], [4097], [1, 1]], 1, { weightDecay: 0.5 }, 5);
  });

  it('is the textbook with an epsilon that matters', () => {
    compare([[1000]], 2, { epsilon: 0.5, gradientScale: 1e-3 });
  });

  it('is the textbook with an epsilon that float32 does not hold', () => {
    compare([[1000]], 2, { epsilon: 1e-50 });
    const state = { weights: Float32Array.of(1, 1), m: Float32Array.of(0, 1e-20), v: new Float32Array(2) };
    const gradient = new Float32Array(2);
    adamW(layoutOf([2]), state, { gradient, learningRate: 0.1, step: 1000, epsilon: 1e-50 });
    expect(state.weights[0]).toBe(1);
    // A root that became 0 counts as 2^-63.
    expect(state.weights[1]).toBeCloseTo(1 - (0.1 * 0.9e-20) / (2 ** -63 / Math.sqrt(1 - 0.999 ** 1000)), 6);
  });

  it('keeps a decay that 1 - decay could not hold in float32', () => {
    const layout = layoutOf([1, 1]);
    const weight = Math.fround(1.6);
    const state = { weights: Float32Array.of(weight), m: new Float32Array(1), v: new Float32Array(1) };
    const gradient = new Float32Array(1);
    // There are steps of 2^-23 at the weight, and it loses 1.28 of them. 1 - decay would be 1 - 2 · 2^-24, and take 2.
    adamW(layout, state, { gradient, learningRate: 1.6 * 2 ** -24, step: 1, weightDecay: 1 });
    expect(state.weights[0]).toBe(weight - 2 ** -23);
  });

  it('gives the same bits however the values are split', () => {
    const rng = new Rng(3);
    const size = 40_000;
    const [begin, gradient] = [stateOf(rng, size), floats(rng, size)];
    const step = { gradient, learningRate: 0.01, step: 3, gradientScale: 0.7 };
    const whole = copyOf(begin);
    adamW(layoutOf([size]), whole, step);
    for (const sizes of [
      [1, 39_999],
      [4095, 2, 31_806, 4097],
      [13, 4096, 4096, 31_795],
    ]) {
      const split = copyOf(begin);
      adamW(layoutOf(...sizes.map(count => [count])), split, step);
      expect(stateBits(split)).toEqual(stateBits(whole));
    }
  });

  it('works on views that begin anywhere, and writes to nothing but its range', () => {
    const rng = new Rng(4);
    const factors = { scale: 1, beta1: 0.9, beta2: 0.99, rate: 0.1, root: 2, epsilon: 1e-8, decay: 0.1 };
    for (const length of lengths) {
      const before = stateOf(rng, length + 20);
      const gradient = floats(rng, length + 20);
      const [after, copied] = [copyOf(before), copyOf(before)];
      const cut = (values: Float32Array) => values.subarray(3, length + 10);
      adamWRange(cut(after.weights), cut(after.m), cut(after.v), cut(gradient), 2, 2 + length, factors);
      const range = [copied.weights, copied.m, copied.v, gradient].map(a => a.slice(5, 5 + length));
      adamWRange(range[0], range[1], range[2], range[3], 0, length, factors);
      for (const [i, name] of (['weights', 'm', 'v'] as const).entries()) {
        const expected = before[name].slice();
        expected.set(range[i], 5);
        expect(bitsOf(after[name])).toBe(bitsOf(expected));
      }
    }
  });

  it('does nothing over no values', () => {
    const none = new Float32Array(0);
    const factors = { scale: 1, beta1: 0.9, beta2: 0.99, rate: 0.1, root: 2, epsilon: 1e-8, decay: 0 };
    expect(() => adamWRange(none, none, none, none, 0, 0, factors)).not.toThrow();
  });

  it('passes on what is not finite, to its own value alone', () => {
    const size = 4100;
    const rng = new Rng(5);
    const begin = stateOf(rng, size);
    const gradient = floats(rng, size);
    const step = { gradient, learningRate: 0.01, step: 2 };
    const sound = copyOf(begin);
    adamW(layoutOf([size]), sound, step);
    const state = copyOf(begin);
    gradient[1] = Number.NaN;
    gradient[4097] = Number.POSITIVE_INFINITY;
    gradient[6] = Number.NEGATIVE_INFINITY;
    state.m[9] = Number.NaN;
    state.v[10] = Number.NaN;
    state.v[11] = Number.POSITIVE_INFINITY;
    state.weights[12] = Number.NaN;
    adamW(layoutOf([size]), state, step);
    const { weights, m, v } = state;
    expect([weights[1], m[1], v[1]]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    // An infinite gradient over the root of its square.
    const infinity = Number.POSITIVE_INFINITY;
    expect([weights[4097], m[4097], v[4097]]).toEqual([Number.NaN, infinity, infinity]);
    expect([weights[6], m[6], v[6]]).toEqual([Number.NaN, -infinity, infinity]);
    expect([weights[9], m[9], weights[10], v[10], weights[12]]).toEqual(Array(5).fill(Number.NaN));
    expect([weights[11], v[11]]).toEqual([begin.weights[11], infinity]);
    const odd = [1, 4097, 6, 9, 10, 11, 12];
    for (const [values, expected] of [
      [weights, sound.weights],
      [m, sound.m],
      [v, sound.v],
    ]) {
      for (const i of odd) values[i] = expected[i];
      expect(bitsOf(values)).toBe(bitsOf(expected));
    }
    // What is left of it in the chunk does not reach the next call.
    const small = { weights: Float32Array.of(1), m: Float32Array.of(0), v: Float32Array.of(0) };
    adamW(layoutOf([1]), small, { gradient: Float32Array.of(2), learningRate: 0.5, step: 1 });
    expect(small.weights[0]).toBeCloseTo(0.5, 6);
  });

  it('makes 0 of moments below the normal numbers, and of gradients whose squares are', () => {
    const layout = layoutOf([4]);
    const state = {
      weights: Float32Array.of(1, 1, 1, 1),
      m: Float32Array.of(1e-38, 1, -1e-44, 0),
      v: Float32Array.of(1e-10, 1e-40, 1e-38, 0),
    };
    const gradient = Float32Array.of(0, 0, 0, -1e-19);
    adamW(layout, state, { gradient, learningRate: 0.1, step: 1000, beta1: 0.5 });
    expect(Array.from(state.m)).toEqual([0, 0.5, 0, 0]);
    expect(state.v[0]).toBeCloseTo(1e-10, 12);
    expect(Array.from(state.v.subarray(1))).toEqual([0, 0, 0]);
    expect(state.weights[3]).toBe(1);
    // A hundred times as large, its square is normal.
    adamW(layout, state, { gradient: gradient.map(g => 100 * g), learningRate: 0.1, step: 1001, beta1: 0.5 });
    expect(state.m[3]).toBeCloseTo(-5e-18, 24);
    expect(state.v[3] / 1e-37).toBeCloseTo(1, 5);
  });

  it('names an array that is too short', () => {
    const state = stateOf(new Rng(6), 5);
    const gradient = new Float32Array(4);
    expect(() => adamW(layoutOf([5]), state, { gradient, learningRate: 1, step: 1 })).toThrow(
      'adamW: gradient has 4 values, the layout at least 5: give as many',
    );
  });
});

describe('norm', () => {
  it.each([0, ...lengths])('is the root of the sum of squares of %i values', length => {
    const values = floats(new Rng(length), length, 3);
    const expected = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
    expect(Math.abs(norm(values) - expected)).toBeLessThanOrEqual(1e-13 * expected);
  });

  it('gives the same bits wherever a view begins, and with zeros behind it', () => {
    const values = floats(new Rng(1), 9001);
    const longer = new Float32Array(13_000);
    longer.set(values, 7);
    expect(norm(longer.subarray(7, 9008))).toBe(norm(values));
    expect(norm(longer.subarray(7))).toBe(norm(values));
  });

  it('adds up in float64', () => {
    // The largest square of float32 is 3.4e38, and 2^24 + 1 is 2^24 there.
    expect(norm(Float32Array.of(3e38, 3e38)) / 3e38).toBeCloseTo(Math.SQRT2, 6);
    expect(norm(Float32Array.of(4096, 1))).toBe(Math.sqrt(2 ** 24 + 1));
    expect(norm(Float32Array.of(1e-40)) / 1e-40).toBeCloseTo(1, 4);
  });

  it('passes on what is not finite, and forgets it', () => {
    for (const at of [0, 17, 4096, 4100]) {
      const values = new Float32Array(4101).fill(1);
      values[at] = Number.NEGATIVE_INFINITY;
      expect(norm(values)).toBe(Number.POSITIVE_INFINITY);
      values[at] = Number.NaN;
      expect(norm(values)).toBeNaN();
      expect(norm(values.subarray(at, at))).toBe(0);
      expect(norm(Float32Array.of(3, 4))).toBe(5);
    }
  });
});

describe('addInto', () => {
  test.each([0, ...lengths])('adds %i values to a sum', length => {
    const rng = new Rng(length);
    const [around, values] = [floats(rng, length + 2), floats(rng, length)];
    if (length > 4) {
      values[2] = Number.NaN;
      values[3] = Number.POSITIVE_INFINITY;
    }
    const expected = around.map((value, i) => (i === 0 || i > length ? value : value + values[i - 1]));
    const given = values.slice();
    addInto(around.subarray(1, length + 1), values);
    expect(Array.from(around)).toEqual(Array.from(expected));
    expect(bitsOf(values)).toBe(bitsOf(given));
  });

  it('refuses other lengths', () => {
    expect(() => addInto(new Float32Array(3), new Float32Array(4))).toThrow(
      'addInto: 4 values to a sum of 3: give as many',
    );
  });
});
