/** The KL of an update over single states: ranks, and how far beyond bounds they are. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { beyondStateBounds, highestOf } from '../../src/kl/over-states.ts';

it('at most one state in a hundred is above the 99th percentile, and it is the lowest such', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ min: 0, noNaN: true }), { minLength: 1, maxLength: 450 }), values => {
      const { klP99, klMax } = highestOf(Float32Array.from(values));
      const above = (limit: number): number => values.filter(value => value > limit).length / values.length;
      expect(values).toContain(klP99);
      expect(klMax).toBe(Math.max(...values));
      expect(above(klP99)).toBeLessThanOrEqual(0.01);
      const lower = values.filter(value => value < klP99);
      if (lower.length > 0) expect(above(Math.max(...lower))).toBeGreaterThan(0.01);
    }),
  );
});

it('looks at the first so many alone; none have none; what is no number is the highest', () => {
  expect(highestOf(Float32Array.of(0.5, 0.25, 9, 9), 2)).toEqual({ klP99: 0.5, klMax: 0.5 });
  expect(highestOf(new Float32Array(4), 0)).toEqual({ klP99: 0, klMax: 0 });
  expect(highestOf(Float32Array.of(1, Number.NaN, 2)).klMax).toBeNaN();
});

it('the worse of two bounds counts; without any nothing is beyond', () => {
  const seen = { kl: 0.01, klP99: 0.2, klMax: 0.5 };
  expect(beyondStateBounds(seen, {})).toBe(0);
  expect(beyondStateBounds(seen, { guardP99: null, guardMax: 0.25 })).toBeCloseTo(2, 6);
  expect(beyondStateBounds(seen, { guardP99: 0.05, guardMax: 0.25 })).toBeCloseTo(4, 5);
  // The rounding of single precision is not given away.
  expect(beyondStateBounds({ ...seen, klMax: 0.25 }, { guardMax: 0.25 })).toBeGreaterThan(1);
  expect(beyondStateBounds({ ...seen, klMax: Number.NaN }, { guardP99: 1, guardMax: 1 })).toBeNaN();
});
