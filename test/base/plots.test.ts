/** Plots of block characters: no spike is lost, no column is too many. */
import { expect, it } from 'vitest';
import { bar, sparkline } from '../../src/base/plots.ts';

it('a sparkline shows the largest of what shares a column, at most so many columns', () => {
  expect(sparkline([0, 1, 2, 4], 4)).toBe(' ▂▄█');
  // A spike among many.
  expect(sparkline([0, 0, 0, 8, 0, 0, 0, 0], 2)).toBe('█ ');
  expect(sparkline([1, 1, 1], 10)).toBe('███');
  expect(sparkline([1], 4, 2)).toBe('▄');
  expect(sparkline([0, 0], 4)).toBe('  ');
});

it('a bar is as long as its share, to an eighth, and never longer than its columns', () => {
  expect(bar(0.5, 4)).toBe('██');
  expect(bar(0.5625, 2)).toBe('█▏');
  expect([bar(1, 3), bar(2, 3), bar(-1, 3)]).toEqual(['███', '███', '']);
});
