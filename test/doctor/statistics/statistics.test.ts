import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockMedians, jitter } from '../../../src/doctor/statistics/blocks.ts';
import { abruptStep, changePoint } from '../../../src/doctor/statistics/change-point.ts';
import { median, quantile, share, spread } from '../../../src/doctor/statistics/order.ts';
import { spikes } from '../../../src/doctor/statistics/spikes.ts';
import { longestAbove, stretchesAbove } from '../../../src/doctor/statistics/stretches.ts';
import { theilSen, trend } from '../../../src/doctor/statistics/trend.ts';
import { Rng } from '../../../src/random/index.ts';
import { processorMs } from '../../support/processor-time.ts';

const finite = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 });
const anything = fc.double();

const noise = (n: number, seed = 1): number[] => {
  const rng = new Rng(seed);
  return Array.from({ length: n }, () => rng.normal());
};

describe('order statistics', () => {
  it('agrees with closed forms', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(quantile([0, 10], 0.25)).toBe(2.5);
    expect(quantile([5], 0.9)).toBe(5);
    expect(spread([1, 2, 3, 4, 5])).toBeCloseTo(1.4826, 10);
    expect(share([1, 2, 3, 4], v => v > 2)).toBe(0.5);
  });

  it('leaves out what is not finite, and says NaN of nothing', () => {
    expect(median([Number.NaN, 1, Number.POSITIVE_INFINITY, 3])).toBe(2);
    expect(median([])).toBeNaN();
    expect(spread([])).toBeNaN();
    expect(share([], () => true)).toBe(0);
  });

  it('is the middle of what a sort by hand gives', () => {
    fc.assert(
      fc.property(fc.array(finite, { minLength: 1, maxLength: 60 }), values => {
        const sorted = [...values].sort((a, b) => a - b);
        const n = sorted.length;
        const expected = n % 2 === 1 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
        expect(median(values)).toBeCloseTo(expected, 4);
        expect(quantile(values, 0)).toBe(sorted[0]);
        expect(quantile(values, 1)).toBe(sorted[n - 1]);
      }),
    );
  });

  it('estimates the deviation of normal noise through a fifth of outliers', () => {
    const values = noise(5000).map((v, i) => (i % 5 === 0 ? 1e6 : v));
    expect(spread(values)).toBeGreaterThan(0.9);
    expect(spread(values)).toBeLessThan(1.6);
  });
});

describe('theilSen and trend', () => {
  it('finds the slope of a line exactly, outliers or not', () => {
    const x = Array.from({ length: 50 }, (_, i) => 10 * i);
    const y = x.map((v, i) => (i % 7 === 3 ? 1e5 : 3 * v - 4));
    expect(theilSen(x, y)).toBeCloseTo(3, 9);
    expect(theilSen([1], [2])).toBe(0);
    expect(theilSen([], [])).toBe(0);
  });

  it('has tau 1 for what only rises, -1 for what only falls, and about 0 for noise', () => {
    const up = Array.from({ length: 30 }, (_, i) => i ** 3);
    // Mann's standard score, by hand: of ten rising values 45 / √(10 · 9 · 25 / 18).
    expect(trend([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).z).toBeCloseTo(45 / Math.sqrt(125), 9);
    expect(trend(up).tau).toBe(1);
    expect(trend(up.toReversed()).tau).toBe(-1);
    for (let seed = 0; seed < 20; seed++) expect(Math.abs(trend(noise(400, seed)).z)).toBeLessThan(4);
  });

  it('gives the levels of both ends', () => {
    expect(trend([1, 1, 1, 5, 5, 5, 9, 9, 9, 9])).toMatchObject({ start: 1, end: 9 });
    expect(trend([])).toMatchObject({ tau: 0, z: 0 });
    expect(trend([7, Number.NaN])).toMatchObject({ start: 7, end: 7, tau: 0 });
  });
});

describe('blocks', () => {
  it('returns a short series as it is and a long one as medians', () => {
    expect([...blockMedians([3, 1, 2], 5)]).toEqual([3, 1, 2]);
    expect([...blockMedians([1, 2, 3, 10, 11, 12], 2)]).toEqual([2, 11]);
    expect(blockMedians(noise(1000), 40)).toHaveLength(40);
  });

  it('measures noise and not a slope', () => {
    expect(jitter(new Array<number>(100).fill(5))).toBe(0);
    const sloped = noise(4000).map((v, i) => v + 0.01 * i);
    expect(jitter(sloped)).toBeGreaterThan(0.85);
    expect(jitter(sloped)).toBeLessThan(1.15);
  });
});

describe('changePoint', () => {
  it('finds the row of a step, whatever the noise looks like', () => {
    for (const cubed of [false, true]) {
      const values = noise(200).map((v, i) => (cubed ? v ** 3 : v) + (i >= 120 ? 8 : 0));
      const found = changePoint(values)!;
      expect(Math.abs(found.index - 120)).toBeLessThanOrEqual(3);
      expect(found.p).toBeLessThan(1e-6);
      expect(found.after - found.before).toBeGreaterThan(6);
    }
  });

  it('is rarely sure of one in noise', () => {
    let sure = 0;
    for (let seed = 0; seed < 200; seed++) if (changePoint(noise(80, seed))!.p < 0.01) sure++;
    expect(sure).toBeLessThanOrEqual(5);
  });

  it('keeps its index on the values with gaps, and needs enough of them', () => {
    const values = [1, Number.NaN, 1, 1, 1, Number.NaN, 9, 9, 9, 9];
    expect(changePoint(values, 2)!.index).toBe(6);
    // Equal values share their rank: 2, 2, 2, 5, 5 give |2 · 6 - 3 · 6| = 6, and Pettitt's chance of that.
    expect(changePoint([0, 0, 0, 1, 1], 1)).toMatchObject({
      index: 3,
      p: Math.min(1, 2 * Math.exp((-6 * 36) / 150)),
    });
    expect(changePoint([1, 2, 3], 3)).toBeUndefined();
    expect(changePoint([], 3)).toBeUndefined();
  });

  it('calls a climb no abrupt step', () => {
    const climb = Array.from({ length: 100 }, (_, i) => i / 100);
    const step = Array.from({ length: 100 }, (_, i) => (i < 60 ? 0 : 1));
    expect(abruptStep(climb, 5)!.size).toBeLessThan(0.1);
    expect(abruptStep(step, 5)).toMatchObject({ index: 60, before: 0, after: 1, size: 1 });
    expect(abruptStep([1, 2], 5)).toBeUndefined();
  });
});

describe('stretches', () => {
  it('lists runs above a threshold', () => {
    expect(stretchesAbove([0, 2, 3, 0, 5], 1)).toEqual([
      { from: 1, to: 2, length: 2 },
      { from: 4, to: 4, length: 1 },
    ]);
    expect(longestAbove([0, 2, 3, 0, 5], 1)).toEqual({ from: 1, to: 2, length: 2 });
    expect(longestAbove([Number.NaN, 0], 1)).toBeUndefined();
    expect(longestAbove([Number.POSITIVE_INFINITY], 1)).toMatchObject({ length: 1 });
  });
});

describe('spikes', () => {
  it('needs the level, the spread and the multiple: twice the median is none', () => {
    const calm = noise(200).map(v => 0.01 + 0.001 * v);
    calm[50] = 0.02;
    calm[120] = 0.3;
    expect(spikes(calm, { level: 0.05 }).map(s => s.index)).toEqual([120]);
    expect(spikes(calm, { level: 0.5 })).toEqual([]);
    const wild = noise(200).map(v => Math.abs(0.1 * v));
    expect(spikes(wild, { level: 0.05 })).toEqual([]);
  });

  it('looks at the peak of merged points', () => {
    const means = new Array<number>(100).fill(0.01).map((v, i) => v + 1e-4 * (i % 3));
    const peaks = means.map((v, i) => (i === 40 ? 1 : v));
    expect(spikes(means, { level: 0.05 })).toEqual([]);
    expect(spikes(means, { level: 0.05 }, peaks)).toMatchObject([{ index: 40, value: 1 }]);
  });
});

describe('all of them', () => {
  it('never throw, whatever the numbers, and never change them', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 80 }), values => {
        const copy = [...values];
        for (const f of [median, spread, jitter, trend, changePoint]) f(values);
        theilSen(values, values);
        spikes(values, { level: 0.1 });
        abruptStep(values, 4);
        blockMedians(values, 7);
        stretchesAbove(values, 0);
        expect(values).toEqual(copy);
      }),
    );
  });

  it('take 32,000 points in a blink', () => {
    const values = noise(32_000);
    const began = processorMs();
    trend(values);
    theilSen(values, values);
    changePoint(values);
    abruptStep(values, 300);
    spikes(values, { level: 3 });
    expect(processorMs() - began).toBeLessThan(5000);
  });
});
