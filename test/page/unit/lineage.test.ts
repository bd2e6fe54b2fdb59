/** What the strip of a run and its parent says. */
import { expect, test } from 'vitest';
import { lineOf } from '../../../web/lib/envelope.ts';
import { changesBetween, endOf, extentOf, pathIn } from '../../../web/lib/lineage.ts';

const line = (x: number[], mean: (number | null)[]) =>
  lineOf({ metric: 'm', x, mean, min: mean, max: mean, count: x.map(() => 1), broken: [] });

test('what was changed: settings that differ, also those that one of them lacks, not versions', () => {
  expect(
    changesBetween(
      { learningRate: 0.02, guard: null, seed: 1, 'versions.node': '20' },
      { learningRate: 0.001, seed: 1, clip: 0.1, 'versions.node': '22' },
    ),
  ).toEqual([
    { name: 'learningRate', from: 0.02, to: 0.001 },
    { name: 'guard', from: null, to: undefined },
    { name: 'clip', from: undefined, to: 0.1 },
  ]);
});

test('a line ends at the mean of its last tenth', () => {
  const values = Array.from({ length: 20 }, (_, i) => (i < 18 ? 500 : i === 18 ? 60 : 70));
  expect(
    endOf(
      line(
        values.map((_, i) => i),
        values,
      ),
    ),
  ).toBe(65);
  expect(endOf(line([0, 1], [3, null]))).toBe(3);
  expect(endOf(line([], []))).toBeNull();
});

test('both are drawn on one scale, with holes where there is nothing', () => {
  const [before, after] = [line([0, 50], [20, 500]), line([50, 100], [null, 250])];
  const extent = extentOf([before, after])!;
  expect(extent).toEqual({ x: [0, 100], y: [0, 500] });
  expect(pathIn(before, extent, 200, 100)).toBe('M0.0 96.0L100.0 0.0');
  expect(pathIn(after, extent, 200, 100)).toBe('M200.0 50.0');
  expect(extentOf([line([], [])])).toBeNull();
});
