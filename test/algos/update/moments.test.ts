import { expect, it } from 'vitest';
import { meansOf, moments, summaryOf } from '../../../src/algos/update/moments.ts';

it('means and standard deviations are those of the population', () => {
  expect(moments([1, 3])).toEqual({ mean: 2, std: 1 });
  expect(moments(Float32Array.of(5))).toEqual({ mean: 5, std: 0 });
  expect(moments([])).toEqual({ mean: Number.NaN, std: Number.NaN });
  expect(meansOf({ kl: 3, ratio: 6 }, 3)).toEqual({ kl: 1, ratio: 2 });
});

it('the standard error is that of a mean of a sample', () => {
  // 2, 4, 4, 4, 5, 5, 7, 9: squares about 5 sum to 32, so the sample's variance is 32/7 and the error √(32/7/8).
  const { mean, std, standardError } = summaryOf([2, 4, 4, 4, 5, 5, 7, 9]);
  expect([mean, std]).toEqual([5, 2]);
  expect(standardError).toBeCloseTo(Math.sqrt(32 / 7 / 8), 12);
  // Two values: half of what they differ by.
  expect(summaryOf([1, 7])).toEqual({ mean: 4, std: 3, standardError: 3 });
  expect(summaryOf([5])).toEqual({ mean: 5, std: 0, standardError: Number.NaN });
  // Their mean is not .1 in floating point, and they have no spread all the same.
  expect(summaryOf(Array<number>(10).fill(0.1))).toMatchObject({ std: 0, standardError: 0 });
});
