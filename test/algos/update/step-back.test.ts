/** Back along the line: to what holds, to the bit, for the mean and for single states. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holdStates, partway, stepBack } from '../../../src/algos/update/step-back.ts';
import type { KlOverStates } from '../../../src/kl/over-states.ts';

const same = (kl: number): number => kl;

describe('stepping back', () => {
  it('ends where it was found to hold, also where nothing was', async () => {
    const looked: number[] = [];
    // No number as often as it looks on the way; then it looks at where it began.
    const none = await stepBack(Number.NaN, 0.01, same, share => {
      looked.push(share);
      return share === 0 ? 0 : Number.NaN;
    });
    expect(none).toEqual({ seen: 0, scale: 0, backtracks: 40 });
    expect(looked.at(-1)).toBe(0);
  });

  it('has looked last where it ends', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 1e-4, max: 1e4, noNaN: true }),
        fc.double({ min: 0.3, max: 4, noNaN: true }),
        async (klRaw, power) => {
          let last = 1;
          const { seen, scale } = await stepBack(klRaw, 0.01, same, share => {
            last = share;
            return klRaw * share ** power;
          });
          expect(last).toBe(scale);
          expect(seen).toBeLessThanOrEqual(0.01);
        },
      ),
    );
  });

  it('a bound that was passed by a few percent costs a few percent', async () => {
    for (const percent of [1, 5, 10]) {
      const klRaw = 0.05 * (1 + percent / 100);
      const { scale, backtracks } = await stepBack(klRaw, 0.05, same, share => klRaw * share ** 2);
      expect(backtracks).toBe(1);
      expect(1 - scale).toBeLessThan(0.025 + percent / 200);
    }
  });
});

describe('single states', () => {
  /** Of an update whose states' KLs grow with the square of the share. */
  const at = (share: number): KlOverStates => ({
    kl: 0.04 * share ** 2,
    klP99: 0.4 * share ** 2,
    klMax: 2 * share ** 2,
  });
  const held = { seen: at(1), scale: 0.5, backtracks: 2 };

  it('are left alone where nobody bounds them, and where they are within their bounds', async () => {
    for (const bounds of [{}, { guardP99: null, guardMax: null }, { guardP99: 0.5, guardMax: 2.1 }]) {
      const found = await holdStates(held, bounds, () => {
        throw new Error('nobody should look');
      });
      expect(found).toEqual({ ...at(1), scale: 0.5, backtracks: 2, seen: at(1) });
    }
  });

  it('go back until every bound holds, at a share of what the guard has left; what they were is kept', async () => {
    const found = await holdStates(held, { guardP99: 0.1, guardMax: 1.9 }, at);
    expect(found.klP99).toBeLessThanOrEqual(0.1);
    expect(found.klP99).toBeGreaterThan(0.09);
    expect(found.klMax).toBeLessThanOrEqual(1.9);
    expect(found.scale).toBeCloseTo(0.5 * Math.sqrt(found.klP99 / 0.4), 6);
    expect(found.backtracks).toBe(3);
    expect(found.before).toEqual(at(1));
    const worst = await holdStates(held, { guardP99: 0.3, guardMax: 0.02 }, at);
    expect(worst.klMax).toBeLessThanOrEqual(0.02);
    expect(worst.klP99).toBeLessThan(0.3);
  });

  it('one that is no number takes all back', async () => {
    const none: KlOverStates = { kl: 0.01, klP99: 0.1, klMax: Number.NaN };
    const found = await holdStates({ ...held, seen: none }, { guardMax: 1 }, share =>
      share === 0 ? at(0) : none,
    );
    expect(found).toMatchObject({ scale: 0, klMax: 0 });
  });
});

it('a point on the way is the beginning, to the bit, at 0, even where the end is no number', () => {
  const out = new Float32Array(3);
  partway(Float32Array.of(1, 2, 0.1), Float32Array.of(3, Number.NaN, 0.2), 0, out);
  expect([...out]).toEqual([1, 2, Math.fround(0.1)]);
  partway(Float32Array.of(1, 2, 0.1), Float32Array.of(3, 4, 0.1), 0.25, out);
  expect([...out]).toEqual([1.5, 2.5, Math.fround(0.1)]);
});
