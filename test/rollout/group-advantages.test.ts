import fc from 'fast-check';
import { expect, test } from 'vitest';
import { guardSearch } from '../../src/kl/guard-search.ts';
import {
  type Aggregation,
  type Denominator,
  groupAdvantages,
  tokenWeights,
} from '../../src/rollout/group-advantages.ts';

type Kind = Parameters<typeof groupAdvantages>[2];

function advantages(rewards: number[], kind: Kind, floor = 0.01, size = rewards.length) {
  const out = new Float64Array(rewards.length);
  return {
    out: Array.from(out),
    stats: groupAdvantages(Float64Array.from(rewards), size, kind, floor, out),
    values: out,
  };
}

test('closed forms: by the std, only centred, against the others', () => {
  const { values: group } = advantages([0, 0, 0, 1], 'group');
  // Of one winner in n: (n - 1) / √(n - 1) and -1 / √(n - 1).
  expect(Array.from(group)).toEqual([-1, -1, -1, 3].map(v => expect.closeTo(v / Math.sqrt(3), 12)));
  expect(Array.from(advantages([1, 2, 6], 'mean').values)).toEqual([-2, -1, 3]);
  expect(Array.from(advantages([1, 2, 6], 'leave-one-out').values)).toEqual([1 - 4, 2 - 3.5, 6 - 1.5]);
});

test('groups of equal rewards teach nothing, of nearly equal ones little', () => {
  for (const kind of ['group', 'mean', 'leave-one-out'] as const) {
    const { values, stats } = advantages([0.1, 0.1, 0.1, 0.1, 1, 0, 0, 0], kind, 0.01, 4);
    expect(Array.from(values.slice(0, 4))).toEqual([0, 0, 0, 0]);
    expect(stats.zeroStdGroups).toBe(0.5);
    expect(stats.groupStd).toBeCloseTo(Math.sqrt(3) / 8, 12);
  }
  // A spread of 1e-6 is divided by the floor and not by itself.
  const { values } = advantages([0, 1e-6], 'group');
  expect(Math.max(...values)).toBeCloseTo(5e-5, 12);
});

test('what could not be graded takes no part', () => {
  const { values, stats } = advantages(
    [1, Number.NaN, 3, Number.NaN, Number.NaN, Number.NaN],
    'mean',
    0.01,
    3,
  );
  expect(Array.from(values)).toEqual([-1, 0, 1, 0, 0, 0]);
  expect(stats.zeroStdGroups).toBe(0);
  expect(Array.from(advantages([Number.NaN, 2], 'leave-one-out').values)).toEqual([0, 0]);
});

test('advantages sum to 0, do not depend on a constant, and have the bound of their std', () => {
  const reward = fc.double({ min: -100, max: 100, noNaN: true });
  fc.assert(
    fc.property(fc.array(reward, { minLength: 2, maxLength: 12 }), reward, (rewards, shift) => {
      const { values } = advantages(rewards, 'group');
      expect(Math.abs(values.reduce((a, b) => a + b))).toBeLessThan(1e-6);
      for (const value of values)
        expect(Math.abs(value)).toBeLessThanOrEqual(Math.sqrt(rewards.length - 1) + 1e-9);
      const spread = Math.max(...rewards) - Math.min(...rewards);
      if (spread > 1e-6) {
        const moved = advantages(
          rewards.map(r => r + shift),
          'group',
        ).values;
        moved.forEach((value, i) => {
          expect(Math.abs(value - values[i])).toBeLessThan(1e-4);
        });
      }
    }),
  );
});

test('weights of tokens: all tokens alike, all completions alike, or all by the length allowed', () => {
  const lengths = [4, 1, 0, 5];
  expect(Array.from(tokenWeights(lengths, 'token', 10))).toEqual([0.1, 0.1, 0, 0.1]);
  expect(Array.from(tokenWeights(lengths, 'sequence', 10))).toEqual([1 / 16, 1 / 4, 0, 1 / 20]);
  expect(Array.from(tokenWeights(lengths, 'constant', 10))).toEqual([1 / 40, 1 / 40, 0, 1 / 40]);
  for (const aggregation of ['token', 'sequence', 'constant'] as const)
    expect(Array.from(tokenWeights([0, 0], aggregation, 10))).toEqual([0, 0]);
});

test("with completions left out the weights are those of TRL's losses, by hand", () => {
  // Four completions, of which the second is masked; (loss · mask).sum(-1) / mask.sum(-1).clamp(1), then the mean over 4.
  const lengths = [2, 0, 8, 5];
  const weights = (how: Aggregation, most: number, denominator?: Denominator) =>
    Array.from(tokenWeights(lengths, how, most, denominator));
  expect(weights('sequence', 8)).toEqual([1 / 8, 0, 1 / 32, 1 / 20]); // grpo
  expect(weights('constant', 8)).toEqual([1 / 32, 0, 1 / 32, 1 / 32]); // dr_grpo: (4 · 8)
  expect(weights('token', 8)).toEqual([1 / 15, 0, 1 / 15, 1 / 15]); // dapo: 2 + 8 + 5 tokens
  expect(Array.from(tokenWeights([4, 0], 'constant', 8))).toEqual([1 / 16, 0]);
  expect(Array.from(tokenWeights([4, 0], 'sequence', 8))).toEqual([1 / 8, 0]);
  // As runs made before had it: the others pull more, the more are left out.
  expect(weights('sequence', 8, 'counted')).toEqual([1 / 6, 0, 1 / 24, 1 / 15]);
  expect(weights('constant', 8, 'counted')).toEqual([1 / 24, 0, 1 / 24, 1 / 24]);
  expect(weights('token', 8, 'counted')).toEqual(weights('token', 8));
});

test("the guard's search holds any bound on any curve, and uses half of it where it can", async () => {
  for (const power of [1, 2, 4]) {
    for (const raw of [0.06, 1, 50, Number.NaN, Number.POSITIVE_INFINITY]) {
      const size = Number.isFinite(raw) ? raw : 1e3;
      const kl = async (share: number): Promise<number> =>
        !Number.isFinite(raw) && share > 0.2 ? raw : size * share ** power;
      const { scale, kl: found, backtracks } = await guardSearch(raw, 0.05, kl);
      expect(found).toBeLessThanOrEqual(0.05);
      expect(found).toBeGreaterThan(0.02);
      expect(found).toBe(await kl(scale));
      expect(backtracks).toBeGreaterThan(0);
    }
  }
  expect(await guardSearch(0.04, 0.05, async () => 1)).toEqual({ scale: 1, kl: 0.04, backtracks: 0 });
  const never = await guardSearch(1, 0.05, async () => Number.NaN);
  expect(never).toMatchObject({ scale: 0, kl: 0 });
});
