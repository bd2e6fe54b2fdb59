/** The rules that follow the KL: direction, size, bounds, and what they do with numbers that are none. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  COEFFICIENT_MAX,
  COEFFICIENT_MIN,
  type CoefficientRule,
  isNotableChange,
  nextCoefficient,
} from '../../src/kl/controllers/coefficient.ts';
import {
  fittingCut,
  isWorthAnotherAttempt,
  regainedFactor,
  slowerFactor,
} from '../../src/kl/controllers/guarded-rate.ts';
import { nextRate } from '../../src/kl/controllers/learning-rate.ts';
import { seed } from '../engine/support/check.ts';

fc.configureGlobal({ seed });

const samples = 2048;
const kl = fc.oneof(
  fc.double({ min: 0, max: 10, noNaN: true }),
  fc.constantFrom(0, 1e-12, 1e6, Number.POSITIVE_INFINITY, Number.NaN),
);
const target = fc.double({ min: 1e-4, max: 1, noNaN: true });

describe('nextCoefficient', () => {
  it('fixed stays, whatever the KL', () => {
    for (const k of [0, 0.01, 5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(nextCoefficient({ kind: 'fixed' }, 0.3, k, samples)).toBe(0.3);
  });

  it("adaptive is the paper's: double above 1.5 times the target, halve below target / 1.5", () => {
    const rule: CoefficientRule = { kind: 'adaptive', target: 0.02 };
    const next = (k: number): number => nextCoefficient(rule, 1, k, samples);
    expect(next(0.0301)).toBe(2);
    expect(next(0.03)).toBe(1);
    expect(next(0.02)).toBe(1);
    expect(next(0.02 / 1.5 + 1e-9)).toBe(1);
    expect(next(0.0133)).toBe(0.5);
    expect(next(0)).toBe(0.5);
    // How many samples there were does not matter.
    expect(nextCoefficient(rule, 1, 1, 1)).toBe(2);
  });

  it('changes of the horizon rule are news only at a bound, those of the others always', () => {
    const horizon: CoefficientRule = { kind: 'horizon', target: 0.1, horizon: 10_000 };
    const adaptive: CoefficientRule = { kind: 'adaptive', target: 0.1 };
    const bounds = { min: 0.01, max: 1 };
    expect(isNotableChange(horizon, 0.5, 0.51, bounds)).toBe(false);
    expect(isNotableChange(horizon, 0.99, 1, bounds)).toBe(true);
    expect(isNotableChange(horizon, 0.0101, 0.01, bounds)).toBe(true);
    expect(isNotableChange(horizon, 1, 1, bounds)).toBe(false);
    expect(isNotableChange(adaptive, 0.5, 0.25, bounds)).toBe(true);
    expect(isNotableChange(adaptive, 0.5, 0.5, bounds)).toBe(false);
  });

  it('horizon goes in proportion to the error, at most 20 % of n/horizon', () => {
    const rule: CoefficientRule = { kind: 'horizon', target: 0.1, horizon: 10_000 };
    const next = (k: number): number => nextCoefficient(rule, 1, k, 1000);
    expect(next(0.1)).toBe(1);
    expect(next(0.11)).toBeCloseTo(1 + 0.1 * 0.1, 12);
    expect(next(0.095)).toBeCloseTo(1 - 0.05 * 0.1, 12);
    expect(next(5)).toBeCloseTo(1.02, 12);
    expect(next(0)).toBeCloseTo(0.98, 12);
  });

  it('never leaves its bounds, never is NaN, and never goes against the KL', () => {
    const rule = fc.oneof(
      target.map((t): CoefficientRule => ({ kind: 'adaptive', target: t })),
      fc
        .tuple(target, fc.integer({ min: 100, max: 100_000 }))
        .map(([t, horizon]): CoefficientRule => ({ kind: 'horizon', target: t, horizon })),
    );
    fc.assert(
      fc.property(rule, fc.array(kl, { minLength: 1, maxLength: 200 }), (r, course) => {
        let coefficient = 0.2;
        for (const k of course) {
          const next = nextCoefficient(r, coefficient, k, samples, { max: 7 });
          expect(next).toBeGreaterThanOrEqual(COEFFICIENT_MIN);
          expect(next).toBeLessThanOrEqual(7);
          if (r.kind !== 'fixed' && k > r.target) expect(next).toBeGreaterThanOrEqual(coefficient);
          if (r.kind !== 'fixed' && k < r.target) expect(next).toBeLessThanOrEqual(coefficient);
          coefficient = next;
        }
      }),
    );
  });

  it('is capped: RLlib without a cap has gone to infinity', () => {
    let coefficient = 1;
    for (let i = 0; i < 2000; i++)
      coefficient = nextCoefficient({ kind: 'adaptive', target: 0.01 }, coefficient, 1, samples);
    expect(coefficient).toBe(COEFFICIENT_MAX);
    for (let i = 0; i < 2000; i++)
      coefficient = nextCoefficient({ kind: 'adaptive', target: 0.01 }, coefficient, 0, samples);
    expect(coefficient).toBe(COEFFICIENT_MIN);
    // And it comes back: it did not vanish for good.
    for (let i = 0; i < 40; i++)
      coefficient = nextCoefficient({ kind: 'adaptive', target: 0.01 }, coefficient, 1, samples);
    expect(coefficient).toBe(COEFFICIENT_MAX);
  });

  // A fault that was here: an infinite KL is as far above the target as there is, and leaves the weight as it was.
  it('raises the weight after an infinite KL', () => {
    expect(
      nextCoefficient({ kind: 'adaptive', target: 0.01 }, 1, Number.POSITIVE_INFINITY, samples),
    ).toBeGreaterThan(1);
  });

  // A fault that was here: with n of more than 5 horizons one update with a small KL takes the weight to its minimum,
  // 1e-6.
  it('horizon: a rollout longer than the horizon does not wipe the weight out', () => {
    const rule: CoefficientRule = { kind: 'horizon', target: 0.1, horizon: 10_000 };
    expect(nextCoefficient(rule, 1, 0, 65_536)).toBeGreaterThanOrEqual(0.5);
  });
});

describe('nextRate', () => {
  const rule = { target: 0.01, min: 1e-5, max: 1e-2 };

  it('goes down beyond twice the target, up below half of it, else stays', () => {
    expect(nextRate(rule, 3e-4, 0.0201)).toBeCloseTo(2e-4, 12);
    expect(nextRate(rule, 3e-4, 0.02)).toBe(3e-4);
    expect(nextRate(rule, 3e-4, 0.005)).toBe(3e-4);
    expect(nextRate(rule, 3e-4, 0.0049)).toBeCloseTo(4.5e-4, 12);
    expect(nextRate({ ...rule, factor: 2 }, 3e-4, 1)).toBeCloseTo(1.5e-4, 12);
  });

  it('goes down after a KL that is not finite', () => {
    for (const k of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(nextRate(rule, 3e-4, k)).toBeLessThan(3e-4);
  });

  it('stays within its bounds from a start within them', () => {
    fc.assert(
      fc.property(fc.array(kl, { minLength: 1, maxLength: 100 }), target, (course, t) => {
        let rate = 3e-4;
        for (const k of course) {
          rate = nextRate({ ...rule, target: t }, rate, k);
          expect(rate).toBeGreaterThanOrEqual(rule.min);
          expect(rate).toBeLessThanOrEqual(rule.max);
        }
      }),
    );
  });

  // A fault that was here: a start outside stays there while the KL is within its band.
  it('brings a start outside of its bounds inside', () => {
    expect(nextRate(rule, 0.1, 0.01)).toBe(rule.max);
    expect(nextRate(rule, 1e-7, 0.01)).toBe(rule.min);
  });
});

describe('what the guard makes of the rate', () => {
  it('an overshoot of a few percent at the end costs a few percent, and is not worth doing the update again', () => {
    for (const percent of [1, 3, 10]) {
      const cut = fittingCut({ klBegun: 0, shareWithin: 1, kl: 0.05 * (1 + percent / 100) }, 0.05);
      expect(1 - cut).toBeGreaterThan(percent / 200);
      expect(1 - cut).toBeLessThan(0.03 + percent / 100);
      expect(isWorthAnotherAttempt(cut)).toBe(false);
    }
  });

  it('a KL grows with the square of the rate, and over the first half of the steps: a cut is the root of both shares', () => {
    expect(fittingCut({ klBegun: 0, shareWithin: 1, kl: 0.2 }, 0.05)).toBeCloseTo(0.97 / 2, 12);
    expect(fittingCut({ klBegun: 0, shareWithin: 0.125, kl: 0.05 }, 0.05)).toBeCloseTo(0.97 / 2, 12);
    expect(fittingCut({ klBegun: 0, shareWithin: 0.125, kl: 0.2 }, 0.05)).toBeCloseTo(0.97 / 4, 12);
    // Where in the second half it was passed makes no difference: the clip holds it there.
    for (const shareWithin of [0.5, 0.75, 1])
      expect(fittingCut({ klBegun: 0, shareWithin, kl: 0.0512 }, 0.05)).toBeGreaterThan(0.95);
  });

  it('what had moved the policy before the first step is not the rate’s: only the rest is measured by it', () => {
    const moved = { klBegun: 0.02, kl: 0.14, shareWithin: 1 };
    expect(fittingCut(moved, 0.05)).toBeCloseTo(0.97 / 2, 12);
    expect(regainedFactor(0.5, { kl: 0.029, klBegun: 0.02 }, 0.05)).toBeCloseTo(0.525, 12);
    expect(regainedFactor(0.5, { kl: 0.0291, klBegun: 0.02 }, 0.05)).toBe(0.5);
  });

  it('one that was passed early is done again, whatever little its censored KL says', () => {
    expect(isWorthAnotherAttempt(fittingCut({ klBegun: 0, shareWithin: 0.25, kl: 0.0501 }, 0.05))).toBe(true);
    expect(isWorthAnotherAttempt(fittingCut({ klBegun: 0, shareWithin: 0.3, kl: 0.0501 }, 0.05))).toBe(false);
  });

  it('cuts to a tenth at most at once, what is no number too', () => {
    for (const kl of [1e6, Number.NaN, Number.POSITIVE_INFINITY])
      expect(fittingCut({ klBegun: 0, shareWithin: 1, kl }, 0.05)).toBe(0.1);
    for (const shareWithin of [0, Number.NaN])
      expect(fittingCut({ klBegun: 0, shareWithin, kl: 0.06 }, 0.05)).toBe(0.1);
  });

  it('never fails to cut', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 1, max: 1e9, noNaN: true }),
        (shareWithin, beyond) => {
          const cut = fittingCut({ klBegun: 0, shareWithin, kl: 0.05 * beyond }, 0.05);
          return cut >= 0.1 && cut <= 0.97;
        },
      ),
    );
  });

  it('ends at a ten-thousandth and stays there, so that it is seen that nothing more can be done', () => {
    let factor = 1;
    for (let i = 0; i < 10; i++) factor = slowerFactor(factor, 0.1);
    expect(factor).toBe(1e-4);
    expect(slowerFactor(factor, 0.1)).toBe(factor);
    expect(slowerFactor(0.2, 0.3)).toBeCloseTo(0.06, 12);
  });

  it('tens of calm updates win the largest cut back, up to the rate that was asked for', () => {
    let [factor, updates] = [0.1, 0];
    for (; factor < 1; updates++) factor = regainedFactor(factor, { kl: 0.01, klBegun: 0 }, 0.05);
    expect(factor).toBe(1);
    expect(updates).toBe(48);
    expect(regainedFactor(1, { kl: 0, klBegun: 0 }, 0.05)).toBe(1);
  });

  it('only calm ones do: those that use more than three tenths of the bound leave it as it is', () => {
    expect(regainedFactor(0.5, { kl: 0.015, klBegun: 0 }, 0.05)).toBeCloseTo(0.525, 12);
    expect(regainedFactor(0.5, { kl: 0.0151, klBegun: 0 }, 0.05)).toBe(0.5);
    expect(regainedFactor(0.5, { kl: 50, klBegun: 0 }, Number.POSITIVE_INFINITY)).toBeCloseTo(0.525, 12);
  });
});
