import fc from 'fast-check';
import { expect, it } from 'vitest';
import { recentReturn, scoreEpisodes } from '../../src/runs/index.ts';

const row = (mean: number | undefined, count: number) => ({
  'train/iteration': 1,
  'episode/count': count,
  ...(mean === undefined ? {} : { 'episode/return': mean }),
});

it('weighs each row by its episodes', () => {
  expect(recentReturn([row(10, 1), row(1, 9)])).toBeCloseTo(1.9, 12);
  expect(recentReturn([row(5, 3)])).toBe(5);
});

it('looks back over a hundred episodes and no further', () => {
  // 60 and 60 are enough: the lucky first row is left out.
  expect(recentReturn([row(1000, 60), row(2, 60), row(4, 60)])).toBeCloseTo(3, 12);
  expect(recentReturn([row(1000, 60), row(2, scoreEpisodes)])).toBe(2);
});

it('has no score without an episode, and passes over rows without one', () => {
  expect(recentReturn([])).toBeUndefined();
  expect(recentReturn([row(undefined, 0)])).toBeUndefined();
  expect(recentReturn([row(7, 2), row(undefined, 0)])).toBe(7);
});

it('lies between the least and the largest of what it looks at', () => {
  const rows = fc.array(
    fc.record({ mean: fc.integer({ min: -1000, max: 1000 }), count: fc.integer({ min: 1, max: 150 }) }),
    {
      minLength: 1,
    },
  );
  fc.assert(
    fc.property(rows, drawn => {
      const score = recentReturn(drawn.map(({ mean, count }) => row(mean, count)))!;
      const means = drawn.map(({ mean }) => mean);
      expect(score).toBeGreaterThanOrEqual(Math.min(...means) - 1e-9);
      expect(score).toBeLessThanOrEqual(Math.max(...means) + 1e-9);
    }),
  );
});
