import fc from 'fast-check';
import { expect, it } from 'vitest';
import { recentReturn, scoreEpisodes } from '../../src/runs/index.ts';
import { bestScored, recentEpisodes } from '../../src/runs/score.ts';

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

it('says how many episodes it is of', () => {
  expect(recentEpisodes([row(1, 30), row(3, 10)])).toEqual({ mean: 1.5, episodes: 40 });
  expect(recentEpisodes([row(undefined, 0)])).toEqual({ mean: Number.NaN, episodes: 0 });
});

it('the best is the highest, of equal ones the earliest, and those without a score are none', () => {
  const list = [1, 3, null, 3, 2, undefined].map((score, at) => ({ score, at }));
  expect(bestScored(list)?.at).toBe(1);
  expect(bestScored([{ score: null }])).toBeUndefined();
  expect(bestScored([])).toBeUndefined();
});

it('scores of training and of evaluations are never compared: the newest says which count', () => {
  const list = [
    { score: 9, at: 0 },
    { score: 8, scoredBy: 'training' as const, at: 1 },
    { score: 2, scoredBy: 'evaluation' as const, at: 2 },
    { score: 5, scoredBy: 'evaluation' as const, at: 3 },
    { score: null, at: 4 },
    { score: 3, at: 5 },
  ];
  expect(list.map((_, i) => bestScored(list.slice(0, i + 1))?.at)).toEqual([0, 0, 2, 3, 3, 0]);
});
