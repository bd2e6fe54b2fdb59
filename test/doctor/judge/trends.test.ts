/** What is said of a series: right on made ones, seldom wrong on noise, and without regard to zero and unit. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { courseOf, falls, rises, trendLimits } from '../../../src/doctor/judge/trends.ts';
import { Rng } from '../../../src/random/index.ts';

const made = (
  n: number,
  at: (t: number, i: number) => number,
  noise: number,
  seed = 1,
  memory = 0,
): number[] => {
  const rng = new Rng(seed);
  let past = 0;
  return Array.from({ length: n }, (_, i) => {
    past = memory * past + Math.sqrt(1 - memory * memory) * rng.normal();
    return at(i / (n - 1), i) + noise * past;
  });
};

describe('the shape of a series', () => {
  it.each([
    ['rising', made(100, t => 5 * t, 1)],
    ['falling', made(100, t => -5 * t, 1)],
    ['flat', made(200, () => 3, 1)],
    ['flat', made(50, () => 7, 0)],
    ['peak-then-fall', made(100, t => 20 * (1 - Math.abs(2 * t - 1)), 1)],
    ['step', made(100, t => (t < 0.5 ? 0 : 30), 1)],
    ['spikes', made(60, (_, i) => (i % 17 === 9 ? 400 : 0), 1, 3, 0.9)],
    ['cannot-tell', made(5, t => t, 0)],
    ['cannot-tell', made(8, () => 0, 1)],
  ])('is %s', (shape, values) => {
    expect(courseOf(values).shape).toBe(shape);
  });

  it('of noise without a trend is seldom called a trend, whatever its memory', () => {
    for (const memory of [0, 0.5, 0.8]) {
      let wrong = 0;
      for (let seed = 0; seed < 300; seed++) {
        const course = courseOf(made(120, () => 0, 1, seed, memory));
        if (rises(course) || falls(course)) wrong++;
      }
      expect(wrong / 300, `memory ${memory}`).toBeLessThan(0.06);
    }
  });

  it('does not depend on the zero or on the unit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.constantFrom(-6, -1, 0, 1, 6),
        fc.integer({ min: -1000, max: 1000 }),
        // Powers of two change no digit.
        fc.integer({ min: -8, max: 8 }),
        (seed, slope, shift, power) => {
          const values = made(64, t => slope * t, 1, seed, 0.3).map(v => Math.round(v * 1024) / 1024);
          const other = values.map(v => 2 ** power * (v + shift));
          expect(courseOf(other).shape).toBe(courseOf(values).shape);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('with fewer rows is the same or weaker, never the opposite', () => {
    for (let seed = 0; seed < 100; seed++) {
      const values = made(160, t => 4 * t, 1, seed, 0.4);
      for (const every of [2, 4, 8, 16])
        expect(falls(courseOf(values.filter((_, i) => i % every === 0)))).toBe(false);
    }
  });

  it('is told from the number of points on that it says', () => {
    const rising = (n: number): string => courseOf(made(n, t => 100 * t, 0.01)).shape;
    expect(rising(trendLimits.points - 1)).toBe('cannot-tell');
    expect(rising(trendLimits.points + 1)).toBe('rising');
  });
});
