import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Schedule, scheduleFactor } from '../../../src/algos/update/schedule.ts';
import { seed } from '../../engine/support/check.ts';

fc.configureGlobal({ seed });

const share = fc.double({ min: 0, max: 1, noNaN: true });
const schedule = fc.constantFrom<Schedule>('constant', 'linear', 'cosine');

describe('scheduleFactor', () => {
  it('starts at 1 and ends at `end`, where it stays', () => {
    for (const kind of ['linear', 'cosine'] as const) {
      expect(scheduleFactor({ schedule: kind, end: 0.2 }, 0)).toBe(1);
      for (const done of [1, 1.5, 100])
        expect(scheduleFactor({ schedule: kind, end: 0.2 }, done)).toBeCloseTo(0.2, 12);
      expect(scheduleFactor({ schedule: kind, end: 0.2 }, 0.5)).toBeCloseTo(0.6, 12);
    }
    expect(scheduleFactor({ schedule: 'linear', end: 0 }, 0.25)).toBeCloseTo(0.75, 12);
    expect(scheduleFactor({ schedule: 'cosine', end: 0 }, 0.25)).toBeCloseTo(0.5 + Math.SQRT1_2 / 2, 12);
  });

  it('constant is 1, whatever its end', () => {
    for (const done of [0, 0.3, 1, 2])
      expect(scheduleFactor({ schedule: 'constant', end: 0.1 }, done)).toBe(1);
  });

  it('rises from 0 through the warm-up to 1, and only then falls, over the rest', () => {
    for (const kind of ['constant', 'linear', 'cosine'] as const) {
      const at = (done: number): number => scheduleFactor({ schedule: kind, end: 0, warmup: 0.2 }, done);
      expect(at(0)).toBe(0);
      expect(at(0.1)).toBeCloseTo(0.5, 12);
      expect(at(0.2)).toBeCloseTo(1, 12);
    }
    const linear = (done: number): number =>
      scheduleFactor({ schedule: 'linear', end: 0, warmup: 0.2 }, done);
    expect(linear(0.6)).toBeCloseTo(0.5, 12);
    expect(linear(1)).toBeCloseTo(0, 12);
  });

  it('stays between 0 and 1, never is NaN, and after the warm-up never rises', () => {
    fc.assert(
      fc.property(schedule, share, share, share, share, (kind, end, warmup, a, b) => {
        const at = (done: number): number => scheduleFactor({ schedule: kind, end, warmup }, done);
        const [first, then] = [Math.min(a, b), Math.max(a, b)];
        for (const value of [at(first), at(then)]) {
          expect(value).toBeGreaterThanOrEqual(0);
          expect(value).toBeLessThanOrEqual(1 + 1e-12);
        }
        if (first >= warmup) expect(at(then)).toBeLessThanOrEqual(at(first) + 1e-12);
        if (then < warmup) expect(at(then)).toBeGreaterThanOrEqual(at(first));
      }),
    );
  });
});
