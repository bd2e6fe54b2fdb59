/** The guard's search step by step: what it accepts, how far it goes back, and when it gives up. */
import { expect, it } from 'vitest';
import { guardSearch } from '../../src/kl/guard-search.ts';

const bound = 0.01;
/** The bound less its margins, as docs/kl.md has them: one in ten thousand, and what float32 rounds. */
const limit = bound * (1 - 1e-4) - 5e-8;
const between = bound * (1 - 0.5e-4);

/** Near the old weights a KL is a square. */
const square =
  (raw: number) =>
  async (share: number): Promise<number> =>
    raw * share * share;

it('leaves what is within its limit as it is', async () => {
  for (const raw of [0, 0.005, limit])
    expect(await guardSearch(raw, bound, square(raw))).toEqual({ scale: 1, kl: raw, backtracks: 0 });
});

it('takes back what is between limit and bound, at the start and on the way', async () => {
  const { scale, kl, backtracks } = await guardSearch(between, bound, square(between));
  expect(backtracks).toBeGreaterThan(0);
  expect(kl).toBeLessThanOrEqual(limit);
  expect(scale).toBeLessThan(1);
  const looks = [between, 0.008];
  const found = await guardSearch(1, bound, async () => looks.shift()!);
  expect(found.kl).toBe(0.008);
  expect(found.backtracks).toBe(2);
});

it('uses at least half of the bound, in few looks, however far the update went', async () => {
  for (const [times, atMost] of [
    [1.0001, 2],
    [10, 2],
    [1000, 3],
    [1e6, 5],
  ]) {
    const raw = bound * times;
    const { scale, kl, backtracks } = await guardSearch(raw, bound, square(raw));
    expect(kl).toBeGreaterThan(limit / 2);
    expect(kl).toBeLessThanOrEqual(limit);
    expect(kl).toBe(raw * scale * scale);
    expect(backtracks, `${times} times the bound`).toBeLessThanOrEqual(atMost);
  }
});

it('goes on as long as a step of float32 can be too far, and ends at the old weights', async () => {
  // Beyond 1e-30 of the way nothing is finite.
  const found = await guardSearch(Number.POSITIVE_INFINITY, bound, async share =>
    share > 1e-30 ? Number.POSITIVE_INFINITY : 0.008,
  );
  expect(found.scale).toBeGreaterThan(1e-32);
  expect(found.kl).toBe(0.008);
  const none = await guardSearch(Number.NaN, bound, async () => Number.NaN);
  expect(none).toEqual({ scale: 0, kl: 0, backtracks: 40 });
});
