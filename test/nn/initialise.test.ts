import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { constant, type Initialiser, normal, orthogonal, zeros } from '../../src/nn/initialise.ts';
import { Rng } from '../../src/random/index.ts';

/** A filled array; what an initialiser leaves out stays NaN. */
function fill(init: Initialiser, shape: readonly number[], rng: Rng | number): Float32Array {
  const out = new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(Number.NaN);
  init(typeof rng === 'number' ? new Rng(rng) : rng, shape, out);
  return out;
}

/** Inner products of the vectors along a matrix's shorter side. */
function gram(matrix: Float32Array, rows: number, columns: number): number[][] {
  const wide = rows <= columns;
  const [count, length] = wide ? [rows, columns] : [columns, rows];
  const at = (v: number, i: number): number => (wide ? matrix[v * columns + i] : matrix[i * columns + v]);
  return Array.from({ length: count }, (_, a) =>
    Array.from({ length: count }, (_, b) => {
      let sum = 0;
      for (let i = 0; i < length; i++) sum += at(a, i) * at(b, i);
      return sum;
    }),
  );
}

function expectOrthonormal(matrix: Float32Array, rows: number, columns: number, gain: number): void {
  gram(matrix, rows, columns).forEach((row, a) => {
    row.forEach((product, b) => {
      const wanted = a === b ? gain * gain : 0;
      expect(Math.abs(product - wanted), `(${a}, ${b}) of ${rows}x${columns}`).toBeLessThan(
        1e-6 * gain * gain,
      );
    });
  });
}

function moments(values: ArrayLike<number>, centre = 0): number[] {
  return [1, 2, 3, 4].map(
    power => Array.from(values, v => (v - centre) ** power).reduce((a, b) => a + b, 0) / values.length,
  );
}

const seeds = fc.integer({ min: 0, max: 2 ** 32 });

describe('orthogonal', () => {
  it('is orthonormal times the gain on its shorter side, whatever the shape', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 24 }),
        fc.constantFrom(1, Math.SQRT2, 0.01, 5 / 3, -2, 1000),
        seeds,
        (rows, columns, gain, seed) => {
          const matrix = fill(orthogonal(gain), [rows, columns], seed);
          expect(matrix.every(Number.isFinite)).toBe(true);
          expectOrthonormal(matrix, rows, columns, gain);
        },
      ),
      { numRuns: 150, seed: 1 },
    );
  });

  it.each([
    [1, 1],
    [1, 200],
    [200, 1],
    [64, 64],
    [27, 64],
    [64, 8],
    [96, 97],
  ])('is precise for (%i, %i)', (rows, columns) => {
    expectOrthonormal(fill(orthogonal(1), [rows, columns], 7), rows, columns, 1);
  });

  it('is the same for the same seed, another for another, and another at the next call', () => {
    fc.assert(
      fc.property(seeds, seed => {
        const first = fill(orthogonal(1), [3, 5], seed);
        expect(fill(orthogonal(1), [3, 5], seed)).toEqual(first);
        expect(fill(orthogonal(1), [3, 5], seed + 1)).not.toEqual(first);
        const rng = new Rng(seed);
        fill(orthogonal(1), [3, 5], rng);
        expect(fill(orthogonal(1), [3, 5], rng)).not.toEqual(first);
      }),
      { numRuns: 20, seed: 1 },
    );
  });

  it('takes the gain as a factor on the same directions', () => {
    const [one, two] = [1, 2].map(gain => fill(orthogonal(gain), [4, 3], 3));
    expect(Array.from(two)).toEqual(Array.from(one, v => 2 * v));
    expect(fill(orthogonal(0), [4, 3], 3).every(v => v === 0)).toBe(true);
  });

  it.each([{ shape: [3, 3] }, { shape: [2, 4] }, { shape: [4, 2] }])(
    'has the moments of uniformly distributed directions: $shape',
    ({ shape }) => {
      const draws = 4000;
      const rng = new Rng(11);
      const length = Math.max(...shape);
      const byPlace: number[][] = Array.from({ length: shape[0] * shape[1] }, () => []);
      for (let n = 0; n < draws; n++) {
        fill(orthogonal(1), shape, rng).forEach((v, i) => {
          byPlace[i].push(v);
        });
      }
      for (const values of byPlace) {
        // A coordinate of a point on the sphere: E x² = 1/n, E x⁴ = 3/(n(n + 2)).
        const [mean, square, , fourth] = moments(values);
        const spread = 4.5 / Math.sqrt(draws);
        expect(Math.abs(mean)).toBeLessThan(spread / Math.sqrt(length));
        expect(Math.abs(square - 1 / length)).toBeLessThan(spread * Math.sqrt(fourth));
        expect(Math.abs(fourth - 3 / (length * (length + 2)))).toBeLessThan(spread * 0.3);
        const positive = values.filter(v => v > 0).length;
        expect(Math.abs(positive / draws - 0.5)).toBeLessThan(spread / 2);
      }
    },
  );

  it('draws again what lies in the span of what it has', () => {
    const draws = [0, 0, 3, 4, -6, -8, 3, 4 + 1e-12, 1, 0];
    const rng = { normal: () => draws.shift() } as unknown as Rng;
    const matrix = fill(orthogonal(1), [2, 2], rng);
    expect(draws).toEqual([]);
    expectOrthonormal(matrix, 2, 2, 1);
    [0.6, 0.8, 0.8, -0.6].forEach((v, i) => {
      expect(matrix[i]).toBeCloseTo(v, 6);
    });
  });

  it('is a rotation as often as a reflection', () => {
    const rng = new Rng(5);
    const draws = 4000;
    let rotations = 0;
    for (let n = 0; n < draws; n++) {
      const [a, b, c, d] = fill(orthogonal(1), [2, 2], rng);
      if (a * d - b * c > 0) rotations++;
    }
    expect(Math.abs(rotations / draws - 0.5)).toBeLessThan(2.25 / Math.sqrt(draws));
  });

  it.each([{ shape: [] }, { shape: [3] }, { shape: [2, 3, 4] }])(
    'refuses $shape, with the shape and the remedy',
    ({ shape }) => {
      const out = new Float32Array(24).fill(7);
      expect(() => orthogonal(1)(new Rng(0), shape, out)).toThrow(RangeError);
      expect(() => orthogonal(1)(new Rng(0), shape, out)).toThrow(
        `orthogonal: shape (${shape.join(', ')}) has not two axes: give a matrix`,
      );
      expect(out.every(v => v === 7)).toBe(true);
    },
  );
});

describe('the others', () => {
  it('zeros clears what was there', () => {
    expect(fill(zeros, [3, 4], 1).every(v => Object.is(v, 0))).toBe(true);
    expect(fill(zeros, [], 1)).toEqual(Float32Array.of(0));
  });

  it('constant fills with the value as float32 has it', () => {
    expect(fill(constant(0.1), [5], 1)).toEqual(new Float32Array(5).fill(0.1));
    expect(fill(constant(-3), [2, 2, 2], 1).every(v => v === -3)).toBe(true);
  });

  it.each([0.01, 1, 30])('normal(%d) has the moments of the normal distribution', std => {
    const count = 40_000;
    const values = Array.from(fill(normal(std), [200, 200], 9), v => v / std);
    expect(values.every(Number.isFinite)).toBe(true);
    const [mean, square, cube, fourth] = moments(values);
    const spread = 4.5 / Math.sqrt(count);
    expect(Math.abs(mean)).toBeLessThan(spread);
    expect(Math.abs(square - 1)).toBeLessThan(spread * Math.sqrt(2));
    expect(Math.abs(cube)).toBeLessThan(spread * Math.sqrt(15));
    expect(Math.abs(fourth - 3)).toBeLessThan(spread * Math.sqrt(96));
  });

  it('normal has neighbours that are not correlated', () => {
    const values = fill(normal(1), [20_000], 4);
    let sum = 0;
    for (let i = 1; i < values.length; i++) sum += values[i] * values[i - 1];
    expect(Math.abs(sum / values.length)).toBeLessThan(4.5 / Math.sqrt(values.length));
  });

  it('normal(0) is zero, and a seed decides the values', () => {
    expect(fill(normal(0), [10], 1).every(v => v === 0)).toBe(true);
    expect(fill(normal(1), [10], 1)).toEqual(fill(normal(1), [10], 1));
    expect(fill(normal(1), [10], 1)).not.toEqual(fill(normal(1), [10], 2));
  });

  it.each([
    ['zeros', zeros],
    ['constant', constant(2)],
    ['normal', normal(1)],
    ['orthogonal', orthogonal(1)],
  ])('%s stays inside of a view', (_, init) => {
    const whole = new Float32Array(14).fill(7);
    init(new Rng(1), [3, 4], whole.subarray(1, 13));
    expect([whole[0], whole[13]]).toEqual([7, 7]);
    expect(whole.subarray(1, 13).every(v => v !== 7)).toBe(true);
  });
});
