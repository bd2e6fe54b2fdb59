import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SeriesBuilder } from '../../../src/doctor/series.ts';

function fill(capacity: number, values: readonly number[]): SeriesBuilder {
  const builder = new SeriesBuilder(capacity);
  values.forEach((value, i) => {
    builder.append(i, value, 1000 + i);
  });
  return builder;
}

const anyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
);

describe('SeriesBuilder', () => {
  it('keeps every point up to its capacity', () => {
    const series = fill(8, [1, 2, 3, 4, 5, 6, 7, 8]).build();
    expect(series.length).toBe(8);
    expect([...series.values]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect([...series.x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect([...series.min]).toEqual([...series.values]);
    expect([...series.wallTime]).toEqual([1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]);
  });

  it('merges in pairs beyond it, and goes on at that width', () => {
    const series = fill(4, [1, 3, 10, 20, 5, 7, 9]).build();
    expect([...series.values]).toEqual([2, 15, 6, 9]);
    expect([...series.min]).toEqual([1, 10, 5, 9]);
    expect([...series.max]).toEqual([3, 20, 7, 9]);
    expect([...series.x]).toEqual([1, 3, 5, 6]);
    expect(series.count).toBe(7);
  });

  it('keeps a spike and a NaN through twenty doublings', () => {
    const builder = new SeriesBuilder(16);
    for (let i = 0; i < 2 ** 20; i++) {
      builder.append(i, i === 777_777 ? 1e6 : i === 123_456 ? Number.NaN : 1);
    }
    const series = builder.build();
    expect(Math.max(...series.max)).toBe(1e6);
    expect(series.broken.reduce((a, b) => a + b)).toBe(1);
    expect(series.length).toBeLessThanOrEqual(16);
    // Away from the spike the mean of ones is one, exactly.
    expect(series.values.filter(value => value !== 1)).toHaveLength(1);
  });

  it('says of what kind broken values are', () => {
    const [inf, nan] = [Number.POSITIVE_INFINITY, Number.NaN];
    const series = fill(2, [inf, inf, inf, nan]).build();
    expect([...series.values]).toEqual([inf, nan]);
    expect([...series.broken]).toEqual([2, 2]);
    expect([...fill(2, [nan, 3, 4, inf]).build().values]).toEqual([3, 4]);
  });

  it('does not overflow near the largest double', () => {
    const series = fill(2, [1.7e308, 1.7e308, -1.7e308, 1.7e308]).build();
    expect([...series.values]).toEqual([1.7e308, 0]);
  });

  it('is bounded, and keeps count, extremes, mean, brokenness and order whatever comes', () => {
    fc.assert(
      fc.property(
        fc.array(anyNumber, { maxLength: 300 }),
        fc.integer({ min: 2, max: 40 }),
        (given, capacity) => {
          const series = fill(capacity, given).build();
          const finite = given.filter(Number.isFinite);
          expect(series.length).toBeLessThanOrEqual(capacity);
          expect(series.count).toBe(given.length);
          expect(series.broken.reduce((a, b) => a + b, 0)).toBe(given.length - finite.length);
          const [mins, maxs] = [
            [...series.min].filter(Number.isFinite),
            [...series.max].filter(Number.isFinite),
          ];
          expect(Math.min(...mins)).toBe(Math.min(...finite));
          expect(Math.max(...maxs)).toBe(Math.max(...finite));
          for (let i = 0; i < series.length; i++) {
            if (i > 0) expect(series.x[i]).toBeGreaterThan(series.x[i - 1]);
            if (!Number.isFinite(series.values[i])) continue;
            expect(series.values[i]).toBeGreaterThanOrEqual(series.min[i]);
            expect(series.values[i]).toBeLessThanOrEqual(series.max[i]);
          }
          if (given.length > 0) expect(series.x[series.length - 1]).toBe(given.length - 1);
        },
      ),
    );
  });

  it('has the same mean over all points as the values have', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1, maxLength: 200 }),
        given => {
          const builder = fill(8, given);
          const { values, length, count } = builder.build();
          // All points but the last stand for equally many values.
          const width = length === count ? 1 : 2 ** Math.ceil(Math.log2(count / 8));
          const last = count - width * (length - 1);
          const sum = values.reduce((total, value, i) => total + value * (i < length - 1 ? width : last), 0);
          expect(sum / count).toBeCloseTo(given.reduce((a, b) => a + b) / given.length, 9);
        },
      ),
    );
  });

  it('removes by position and by index, and sorts by position', () => {
    const builder = fill(64, [0, 1, 2, 3, 4, 5]);
    expect(builder.remove(2, 4)).toBe(2);
    expect([...builder.build().x]).toEqual([0, 1, 4, 5]);
    expect(builder.removeAt([{ from: 0, to: 1 }])).toBe(1);
    expect([...builder.build().values]).toEqual([1, 4, 5]);
    builder.append(2, 2);
    builder.append(4, 44);
    builder.sort();
    expect([...builder.build().x]).toEqual([1, 2, 4, 4, 5]);
    expect([...builder.build().values]).toEqual([1, 2, 4, 44, 5]);
    expect(builder.count).toBe(5);
  });

  it('gives up memory when its capacity is lowered', () => {
    const builder = fill(
      1024,
      Array.from({ length: 1000 }, (_, i) => i),
    );
    builder.limit(100);
    const series = builder.build();
    expect(builder.size).toBe(100);
    expect(series.length).toBeLessThanOrEqual(100);
    expect(series.count).toBe(1000);
    expect(Math.max(...series.max)).toBe(999);
    builder.append(1000, 5000);
    expect(Math.max(...builder.build().max)).toBe(5000);
  });
});
