import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  constant,
  formula,
  inverse,
  lawOf,
  leastSquares,
  linear,
  type Point,
  quadratic,
  valueAt,
} from '../../bench/scaling/law.ts';

const powers = [1, 4, 16, 64, 256, 1024];
const pointsOf = (value: (n: number) => number, ns = powers): Point[] =>
  ns.map(n => ({ n, value: value(n) }));

describe('least squares', () => {
  test('finds the coefficients of points that follow a law exactly, whatever their sizes', () => {
    fc.assert(
      fc.property(
        fc.tuple(
          ...[1, 1, 1].map(() => fc.double({ min: -6, max: 6, noNaN: true }).map(power => 10 ** power)),
        ),
        ([a, b, c]) => {
          const terms = [constant, linear, quadratic];
          const law = { terms, coefficients: [a, b, c] };
          const found = leastSquares(
            pointsOf(n => valueAt(law, n)),
            terms,
          );
          // A share that is lost in the others' last digits cannot be found: the values can.
          for (const n of powers)
            expect(valueAt({ terms, coefficients: found }, n) / valueAt(law, n)).toBeCloseTo(1, 4);
        },
      ),
    );
  });

  test('weighs errors by the values: a small point counts as much as a large one', () => {
    // The mean of relative errors of 10 and 1000 under one constant is least near the small one: Σ(c/y - 1)² has its least at Σ1/y / Σ1/y².
    const [c] = leastSquares(
      [
        { n: 1, value: 10 },
        { n: 2, value: 1000 },
      ],
      [constant],
    );
    expect(c).toBeCloseTo((1 / 10 + 1 / 1000) / (1 / 100 + 1 / 1e6), 9);
  });

  test('has no coefficient below 0: time that falls with n has a share of 1/n, not of -n', () => {
    const falling = pointsOf(n => 100 - n / 20);
    expect(Math.min(...leastSquares(falling, [constant, linear]))).toBe(0);
    const [a, b] = leastSquares(
      pointsOf(n => 3 + 40 / n),
      [constant, inverse],
    );
    expect([a, b].map(value => Number(value.toFixed(6)))).toEqual([3, 40]);
  });

  test('terms that are the same on all points share nothing out at random', () => {
    const coefficients = leastSquares(
      pointsOf(() => 5),
      [constant, { name: 'also 1', at: () => 1 }],
    );
    expect(coefficients).toEqual([expect.closeTo(5, 9), 0]);
  });
});

describe('a law', () => {
  const terms = [constant, linear];

  test('of all points, with the largest deviation', () => {
    const noise = [1.02, 0.97, 1.04, 0.99, 1.01, 0.98];
    const law = lawOf(
      powers.map((n, i) => ({ n, value: (20 + 3 * n) * noise[i] })),
      terms,
    )!;
    expect(law).toMatchObject({ from: 1, to: 1024, breaks: [] });
    expect(law.largestDeviation).toBeGreaterThan(0.02);
    expect(law.largestDeviation).toBeLessThan(0.06);
    expect(law.coefficients[1]).toBeCloseTo(3, 0);
  });

  test('breaks where points leave it, and says by how much', () => {
    const law = lawOf(
      pointsOf(n => (20 + 3 * n) * (n > 100 ? n / 100 : 1)),
      terms,
    )!;
    expect(law).toMatchObject({ from: 1, to: 64 });
    expect(law.breaks.map(({ n }) => n)).toEqual([256, 1024]);
    expect(law.breaks[1].ratio).toBeCloseTo(10.24, 6);
  });

  test('may hold for the later points alone', () => {
    const law = lawOf(
      pointsOf(n => (n < 10 ? 500 : 2 * n)),
      terms,
    )!;
    expect(law).toMatchObject({ from: 16, to: 1024 });
    expect(law.breaks.map(({ n }) => n)).toEqual([1, 4]);
  });

  test('is none where no three neighbours follow one, or there are too few points', () => {
    expect(lawOf(pointsOf(n => (n < 10 || n > 500 ? 1 : 1000)).slice(0, 2), terms)).toBeUndefined();
    expect(
      lawOf(
        [10, 1000, 10, 1000].map((value, n) => ({ n: n + 1, value })),
        terms,
      ),
    ).toBeUndefined();
  });

  test('does not depend on the order of the points', () => {
    const points = pointsOf(n => 7 + n);
    expect(lawOf([...points].reverse(), terms)).toEqual(lawOf(points, terms));
  });

  test('reads as a formula, without the terms that have no share', () => {
    const law = { terms: [constant, linear, quadratic], coefficients: [41.3, 0, 0.00123] };
    expect(formula(law)).toBe('41 + 0.0012·n²');
    expect(formula({ terms, coefficients: [0, 0] })).toBe('0');
  });
});
