/** Smoothing, envelopes and what plots make of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dwarfsBands, healthyEnds, klBandsFor } from '../../../src/metrics/registry.ts';
import {
  appendPoint,
  emptyLine,
  extremes,
  joinLines,
  type Line,
  lineOf,
  nearestIndex,
  positiveOnly,
  stepToAxis,
} from '../../../web/lib/envelope.ts';
import {
  aboveFloor,
  curveOf,
  FOOT,
  freeBox,
  hasPositive,
  largestOf,
  paddedRange,
  rangeOf,
  summarise,
} from '../../../web/lib/plot-data.ts';
import { factorOfSlider, sliderOfFactor, smooth } from '../../../web/lib/smoothing.ts';

const line = (xs: number[], values: (number | null)[], count = 1): Line => ({
  x: xs,
  min: values.slice(),
  max: values.slice(),
  mean: values.slice(),
  count: xs.map(() => count),
  broken: [],
});

describe('smoothing', () => {
  test('a constant stays what it is, from the first point on', () => {
    for (const v of smooth([3, 3, 3, 3], [1, 5, 1, 2], 0.97)) expect(v).toBeCloseTo(3, 12);
  });
  test('follows the closed form, and holes stay holes', () => {
    const [a, b, c] = [2, 6, 4];
    const f = 0.5;
    const out = smooth([a, b, null, c], [1, 1, 1, 1], f);
    expect(out[0]).toBeCloseTo(a, 12);
    expect(out[1]).toBeCloseTo((a * f + b) / (f + 1), 12);
    expect(out[2]).toBeNull();
    expect(out[3]).toBeCloseTo((a * f * f + b * f + c) / (f * f + f + 1), 12);
  });
  test('a bucket of n equal points smooths as those points would', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ min: -1e3, max: 1e3, noNaN: true }), fc.integer({ min: 1, max: 20 })), {
          minLength: 1,
          maxLength: 20,
        }),
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        (buckets, factor) => {
          const single = buckets.flatMap(([v, n]) => Array<number>(n).fill(v));
          const whole = smooth(
            buckets.map(b => b[0]),
            buckets.map(b => b[1]),
            factor,
          );
          const apart = smooth(
            single,
            single.map(() => 1),
            factor,
          );
          let at = -1;
          buckets.forEach(([, n], i) => {
            at += n;
            expect(whole[i]).toBeCloseTo(apart[at]!, 6);
          });
        },
      ),
    );
  });
  test('no smoothing is no change, and the slider goes there and back', () => {
    expect(smooth([1, null, 2], [1, 1, 1], 0)).toEqual([1, null, 2]);
    expect(factorOfSlider(0)).toBe(0);
    expect(factorOfSlider(1)).toBe(0.999);
    for (const place of [0.1, 0.4, 0.7, 0.95])
      expect(sliderOfFactor(factorOfSlider(place))).toBeCloseTo(place, 2);
  });
});

describe('envelopes', () => {
  const envelope = {
    metric: 'm',
    x: [1, 2, 3],
    min: [0, 1, null],
    max: [5, 9, null],
    mean: [2, 4, null],
    count: [3, 3, 2],
    broken: [[2, 2]] as [number, number][],
  };

  test('an answer becomes a line; buckets out of order are left out', () => {
    expect(lineOf(envelope).broken).toEqual([{ x: 3, count: 2 }]);
    expect(lineOf({ ...envelope, x: [1, 1, 3] }).x).toEqual([1, 3]);
    expect(lineOf({ ...envelope, mean: [1] }).x).toEqual([1]);
  });
  test('points are added at the end only, and what is not finite is a hole that is counted', () => {
    const own = line([1, 2], [5, 6]);
    expect(appendPoint(own, 2, 7)).toBe(false);
    expect(appendPoint(own, Number.NaN, 7)).toBe(false);
    expect(appendPoint(own, 3, Number.POSITIVE_INFINITY)).toBe(true);
    expect(own.mean).toEqual([5, 6, null]);
    expect(own.broken).toEqual([{ x: 3, count: 1 }]);
  });
  test('joined, x ascends, nothing of the fine line is lost, and no spike on either side is', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 40 }),
        fc.uniqueArray(fc.integer({ min: 50, max: 120 }), { minLength: 1, maxLength: 40 }),
        (a, b) => {
          const coarse = line(
            a.sort((x, y) => x - y),
            a.map((_, i) => i),
          );
          const fine = line(
            b.sort((x, y) => x - y),
            b.map((_, i) => 1000 + i),
          );
          const joined = joinLines(coarse, fine, 50, 120);
          for (let i = 1; i < joined.x.length; i++) expect(joined.x[i]).toBeGreaterThan(joined.x[i - 1]);
          expect(joined.mean.filter(v => v! >= 1000)).toEqual(fine.mean);
          for (const x of coarse.x) if (x < 50 || x > 120) expect(joined.x).toContain(x);
        },
      ),
    );
  });
  test('a place that both have, at either end of the fine line, is taken once, from the fine one', () => {
    const coarse = line([40, 50, 120, 130], [1, 2, 3, 4]);
    const joined = joinLines(coarse, line([50, 80, 120], [20, 30, 40]), 50, 120);
    expect(joined.x).toEqual([40, 50, 80, 120, 130]);
    expect(joined.mean).toEqual([1, 20, 30, 40, 4]);
    // What was asked for is the fine line's, also where it has no point there.
    expect(joinLines(coarse, line([60, 80], [20, 30]), 50, 120).x).toEqual([40, 60, 80, 130]);
    const holes = (x: number) => ({ x, count: 1 });
    const broken = [40, 50, 120, 130].map(holes);
    const kept = joinLines(
      { ...coarse, broken },
      { ...line([50, 120], [1, 2]), broken: [holes(120)] },
      50,
      120,
    );
    expect(kept.broken).toEqual([40, 120, 130].map(holes));
  });
  test('the nearest point, the extremes and where the largest is', () => {
    expect(nearestIndex([], 3)).toBe(-1);
    expect([0, 4, 6, 9, 100].map(x => nearestIndex([1, 5, 9], x))).toEqual([0, 1, 1, 2, 2]);
    expect(extremes(lineOf(envelope))).toEqual({ min: 0, max: 9, at: 2 });
    expect(extremes(lineOf(envelope), 3, 3)).toBeNull();
  });
  test('a logarithmic axis hides what is not above 0 and says how much', () => {
    expect(positiveOnly([1, 0, -2, null, 3])).toEqual({ values: [1, null, null, null, 3], hidden: 2 });
  });
  test('a step is placed on another axis between the points that have both', () => {
    const steps = line([10, 20, 30], [100, 200, 400]);
    expect(stepToAxis(steps, 150)).toBe(15);
    expect(stepToAxis(steps, 300)).toBe(25);
    expect(stepToAxis(steps, 5)).toBe(10);
    expect(stepToAxis(steps, 400)).toBe(30);
    expect(stepToAxis(steps, 9000)).toBeNull();
    expect(stepToAxis(null, 1)).toBeNull();
    expect(stepToAxis(emptyLine(), 1)).toBeNull();
  });
});

describe('the range of a plot', () => {
  test('holds all values that are seen and none that are not', () => {
    const curve = curveOf(
      { ...line([1, 2, 3], [5, 6, 7]), max: [5, 60, 7] },
      { label: '', color: 0, smooth: 0, log: false },
    );
    expect(rangeOf([curve], 2, 3)).toEqual([6, 60]);
    expect(rangeOf([curve], 10, 20)).toBeNull();
  });
  test('has air, is never flat, keeps 0 as the floor, and shows what must be seen', () => {
    expect(paddedRange([0.001, 0.02], false)[0]).toBe(0);
    expect(paddedRange([5, 5], false)[1]).toBeGreaterThan(5);
    expect(paddedRange(null, false)).toEqual([0, 1]);
    expect(paddedRange([0, 1], false, [3])[1]).toBeGreaterThan(3);
    const [low, high] = paddedRange([0.001, 0.1], true, [-1]);
    expect(low).toBeGreaterThan(0);
    expect(low).toBeLessThan(0.001);
    expect(high).toBeGreaterThan(0.1);
  });
  test('of a logarithmic plot keeps a spike whose neighbours are 0, from the foot of the axis up', () => {
    const spiky = { ...line([1, 2, 3], [0.008, 0.0086, 0]), min: [0.005, 0, 0], max: [0.01, 1, 0] };
    const options = { label: '', color: 0, smooth: 0, log: true };
    const plain = curveOf(spiky, options);
    expect([plain.low, plain.high]).toEqual([
      [0.005, FOOT, null],
      [0.01, 1, null],
    ]);
    expect(plain.line).toEqual([0.008, 0.0086, null]);
    expect(plain.hidden).toBe(2);
    // What lies at the foot takes no room on the axis.
    expect(rangeOf([plain], 0, 9)).toEqual([0.005, 1]);
    const kl = curveOf(spiky, { ...options, floored: true });
    expect(kl.line).toEqual([0.008, 0.0086, FOOT]);
    expect(kl.low).toEqual([0.005, FOOT, FOOT]);
    expect(rangeOf([kl], 0, 9)).toEqual([0.005, 1]);
    expect(rangeOf([kl], 3, 9)).toBeNull();
    // Every bucket reaches down to 0: the axis is that of what they reach up to.
    expect(rangeOf([kl], 2, 2)).toEqual([1, 1]);
  });
  test('of a KL has 0 and the healthy band on it, however small or large the values', () => {
    const ends = healthyEnds(klBandsFor({ target: 0.02, guard: 0.05 }))!;
    for (const range of [[0.03, 0.05], [1e-5, 2e-5], [0.3, 5], null] as ([number, number] | null)[]) {
      const [low, high] = paddedRange(range, false, [0, ...ends], 0.1);
      expect(low).toBeLessThanOrEqual(0);
      expect(high).toBeGreaterThan(ends[1]);
      const [foot, top] = paddedRange(range, true, [0, ...ends], 0.1);
      expect(foot).toBeLessThan(ends[0]);
      expect(top).toBeGreaterThan(ends[1]);
    }
  });
  test('keeps the strip at the bottom free of values', () => {
    const [low, high] = paddedRange([2, 10], false, [], 0.1);
    expect((2 - low) / (high - low)).toBeGreaterThanOrEqual(0.1);
    const [a, b] = paddedRange([0.01, 1], true, [], 0.1);
    expect(Math.log(0.01 / a) / Math.log(b / a)).toBeGreaterThanOrEqual(0.1);
  });
  test('is logarithmic by itself where a spike would dwarf the bands, and never where nothing is above 0', () => {
    const bands = [{ from: 0 }, { from: 0.01 }, { from: 0.05 }];
    expect(largestOf([{ line: line([1, 2, 3], [0.01, 0.51, null]) }, { line: line([1], [0.02]) }])).toBe(
      0.51,
    );
    // What a group's average hides.
    expect(largestOf([{ line: line([1], [0.02]), peak: [0.9] }])).toBe(0.9);
    expect(largestOf([])).toBe(0);
    expect(dwarfsBands(0.51, bands)).toBe(true);
    expect(dwarfsBands(0.49, bands)).toBe(false);
    expect(dwarfsBands(18, [])).toBe(false);
    expect(aboveFloor([1e-12, 18], bands)).toEqual([0.01, 18]);
    expect(aboveFloor([1e-12, 1e-9], bands)).toEqual([1e-12, 1e-9]);
    expect(aboveFloor([1e-12, 18], [])).toEqual([1e-12, 18]);
    expect(aboveFloor(null, bands)).toBeNull();
    expect(hasPositive([line([1, 2, 3], [-200, null, 0])])).toBe(false);
    expect(hasPositive([line([1], [-3]), line([1, 2], [-3, 1e-9])])).toBe(true);
  });
  test('a label is put where no curve runs, not even between two points', () => {
    const box = (left: number) => ({ left, top: 40, right: left + 30, bottom: 54 });
    const boxes = [box(0), box(100), box(200)];
    // Through the first one only by its steep middle; through the second by its band.
    const steep = [
      [10, 0, 0],
      [20, 100, 100],
      [110, 30, 100],
      [150, 90, 90],
      [300, 90, 90],
    ] as const;
    expect(freeBox(boxes, [steep])).toBe(boxes[2]);
    expect(freeBox(boxes, [])).toBe(boxes[0]);
    expect(freeBox(boxes.slice(0, 1), [steep])).toBe(boxes[0]);
  });
  test('is told in words', () => {
    const say = { value: (v: number | null) => String(v), place: (x: number) => `step ${x}` };
    const told = summarise(
      'KL',
      'nats',
      { ...line([1, 2, 3], [0.1, 0.9, 0.2], 4), broken: [{ x: 2, count: 3 }] },
      say,
    );
    expect(told).toBe(
      'KL: 12 values from step 1 to step 3. Last 0.2 nats, smallest 0.1, largest 0.9 at step 2. 3 values were not finite.',
    );
    expect(summarise('KL', '1', emptyLine(), say)).toBe('KL: no values yet.');
  });
});
