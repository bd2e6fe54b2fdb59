/** What a strength is worth. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitted } from '../../../bench/doctor/calibrate.ts';
import { calibrated, claimOf, claims, curves } from '../../../src/doctor/judge/calibration.ts';

describe.each(claims)('the curve of %s', claim => {
  it('never falls, and is a probability', () => {
    const knots = curves[claim];
    expect(knots.length).toBeGreaterThan(0);
    for (const [i, [strength, right]] of knots.entries()) {
      expect(right).toBeGreaterThan(0);
      expect(right).toBeLessThan(1);
      if (i === 0) continue;
      expect(strength).toBeGreaterThan(knots[i - 1][0]);
      expect(right).toBeGreaterThanOrEqual(knots[i - 1][1]);
    }
  });

  it('goes through its knots, straight between them and level beyond', () => {
    const knots = curves[claim];
    for (const [strength, right] of knots) expect(calibrated(claim, strength)).toBeCloseTo(right, 12);
    expect(calibrated(claim, 0)).toBe(knots[0][1]);
    expect(calibrated(claim, 1)).toBe(knots.at(-1)![1]);
    for (let i = 1; i < knots.length; i++) {
      const [[x1, y1], [x2, y2]] = [knots[i - 1], knots[i]];
      expect(calibrated(claim, (x1 + x2) / 2)).toBeCloseTo((y1 + y2) / 2, 12);
    }
  });
});

it('a cause is a claim whatever the verdict; without one the verdict is what is claimed', () => {
  expect(claimOf('watch', 'learning-rate-too-high')).toBe('cause');
  expect(claimOf('sick', null)).toBe('no cause');
  expect(claimOf('watch', null)).toBe('no cause');
  expect(claimOf('healthy', null)).toBe('healthy');
  expect(claimOf('cannot-tell', null)).toBe('cannot tell');
});

it('a fit never falls, and says of each bin what share of it was right where they rise by themselves', () => {
  const answers = (strength: number, n: number, right: number) =>
    Array.from({ length: n }, (_, i) => ({ strength, right: i < right }));
  expect(fitted([...answers(0.5, 98, 9), ...answers(0.9, 98, 89)])).toEqual([
    [0.5, 0.1],
    [0.9, 0.9],
  ]);
  // Two that fall are one.
  expect(fitted([...answers(0.5, 49, 40), ...answers(0.9, 49, 9)])).toEqual([[0.7, 0.5]]);
  fc.assert(
    fc.property(
      fc.array(fc.record({ strength: fc.double({ min: 0, max: 1, noNaN: true }), right: fc.boolean() }), {
        minLength: 1,
      }),
      of => {
        const knots = fitted(of);
        for (let i = 1; i < knots.length; i++) expect(knots[i][1]).toBeGreaterThanOrEqual(knots[i - 1][1]);
      },
    ),
  );
});
