import { expect, test } from 'vitest';
import { rewardPath } from '../../../web/robot/reward-path.ts';

const points = (line: string): number[][] =>
  line
    .slice(1)
    .split('L')
    .map(point => point.split(' ').map(Number));

test('each reward is a point, from the first action to the last', () => {
  const { line, zero } = rewardPath([0, -1, 0, 1], 300, 44);
  expect(points(line)).toEqual([
    [100, 42],
    [200, 22],
    [300, 2],
  ]);
  expect(zero).toBe(22);
});

test('many rewards share points, each their mean', () => {
  const rewards = Array.from({ length: 10_001 }, (_, i) => i % 2);
  const { line } = rewardPath(rewards, 100, 44);
  expect(points(line)).toHaveLength(100);
  for (const [, y] of points(line)) expect(y).toBe(22);
});

test('nothing happened yet: nothing is drawn; all alike: a flat line', () => {
  expect(rewardPath([0], 100, 40)).toEqual({ line: '', area: '', zero: null });
  const { line, zero } = rewardPath([0, 5, 5], 100, 40);
  expect(points(line).every(([, y]) => y === 38)).toBe(true);
  expect(zero).toBeNull();
});
