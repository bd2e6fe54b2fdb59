import { describe, expect, it, test } from 'vitest';
import { Rng } from '../../src/random/rng.ts';
import {
  aggregate,
  bootstrapInterval,
  interquartileMean,
  probabilityOfImprovement,
} from '../../src/studies/statistics.ts';

describe('interquartile mean', () => {
  test('drops a quarter at each end, rounded down', () => {
    // scipy.stats.trim_mean(x, .25), which rliable uses.
    expect(interquartileMean([1, 2, 3])).toBe(2);
    expect(interquartileMean([-1000, 2, 3, 4])).toBe(2.5);
    expect(interquartileMean([5, 1, 4, 1000, 3])).toBe(4);
    expect(interquartileMean([0, 1, 2, 3, 4, 5, 6, 70])).toBe(3.5);
  });

  test('one wild seed does not move it, whichever way', () => {
    const scores = [10, 11, 12, 13, 14];
    expect(interquartileMean([...scores.slice(0, 4), 1e6])).toBe(12);
    expect(interquartileMean([-1e6, ...scores.slice(1)])).toBe(12);
  });
});

describe('bootstrapped interval', () => {
  test('of equal scores it has no width', () => {
    expect(bootstrapInterval([7, 7, 7])).toEqual({ low: 7, high: 7 });
  });

  test('holds the true value in about 95 of 100 cases', () => {
    const rng = new Rng(3);
    let held = 0;
    for (let i = 0; i < 100; i++) {
      const { low, high } = bootstrapInterval(
        Array.from({ length: 40 }, () => 5 + rng.normal()),
        { rng: new Rng(i), resamples: 400 },
      );
      if (low <= 5 && high >= 5) held++;
    }
    expect(held).toBeGreaterThanOrEqual(88);
    expect(held).toBeLessThan(100);
  });

  test('is the same each time', () => {
    expect(bootstrapInterval([1, 5, 2, 8])).toEqual(bootstrapInterval([1, 5, 2, 8]));
  });
});

describe('what values come to', () => {
  it('is in closed form', () => {
    const values = [9, 1, 4, 2, 100];
    expect(aggregate('iqm', values)).toBe(5);
    expect(aggregate('mean', values)).toBe(23.2);
    expect(aggregate('median', values)).toBe(4);
    expect(aggregate('median', [4, 1, 3, 2])).toBe(2.5);
    expect(aggregate('min', values)).toBe(1);
    expect(aggregate('max', values)).toBe(100);
  });

  it('is nothing of nothing, and of what is no number', () => {
    for (const kind of ['iqm', 'mean', 'median', 'min', 'max'] as const) {
      expect(aggregate(kind, [])).toBeNaN();
      expect(aggregate(kind, [1, Number.NaN, 3, 4, 5])).toBeNaN();
      expect(aggregate(kind, [7])).toBe(7);
    }
  });

  it('does not change the values', () => {
    const values = [3, 1, 2];
    aggregate('iqm', values);
    aggregate('median', values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('the probability of improvement', () => {
  const of = (a: readonly number[], b: readonly number[]) => probabilityOfImprovement(a, b).probability;

  it('is the share of pairs in which the first is larger, equal ones half', () => {
    expect(of([3, 4], [1, 2])).toBe(1);
    expect(of([1, 2], [3, 4])).toBe(0);
    expect(of([1, 2], [1, 2])).toBe(0.5);
    expect(of([5, 5, 5], [5])).toBe(0.5);
    // scipy.stats.mannwhitneyu([1, 3, 5], [2, 3]).statistic is 3.5, of 6 pairs.
    expect(of([1, 3, 5], [2, 3])).toBeCloseTo(3.5 / 6, 15);
  });

  it('of two turned round is one less', () => {
    const rng = new Rng(4);
    const draw = (n: number) => Array.from({ length: n }, () => rng.integer(6));
    for (let i = 0; i < 50; i++) {
      const [a, b] = [draw(7), draw(5)];
      expect(of(a, b) + of(b, a)).toBeCloseTo(1, 12);
    }
  });

  it('has an interval around it, without width where there is no doubt', () => {
    expect(probabilityOfImprovement([3, 4], [1, 2]).interval).toEqual({ low: 1, high: 1 });
    const { probability, interval } = probabilityOfImprovement([1, 3, 5, 7], [2, 3, 4, 6]);
    expect(interval.low).toBeLessThan(probability);
    expect(interval.high).toBeGreaterThan(probability);
    expect(probabilityOfImprovement([1, 3], [2])).toEqual(probabilityOfImprovement([1, 3], [2]));
  });

  it('of normal draws one deviation apart is that of theory', () => {
    const rng = new Rng(5);
    const a = Array.from({ length: 400 }, () => 1 + rng.normal());
    const b = Array.from({ length: 400 }, () => rng.normal());
    // The normal distribution at 1 / sqrt(2).
    expect(probabilityOfImprovement(a, b, { resamples: 10 }).probability).toBeCloseTo(0.76, 1);
  });
});
