import { describe, expect, it } from 'vitest';
import { linePath, nearestMoment, niceTop } from '../../../web/lib/time-chart.ts';

describe('curves over time', () => {
  const box = { width: 100, height: 50, fromS: 10, toS: 20, top: 4 };

  it('goes through the values, time from left to right and 0 at the bottom', () => {
    expect(linePath([10, 15, 20], [0, 2, 4], box)).toBe('M0.0 50.0L50.0 25.0L100.0 0.0');
  });

  it('is broken where there is no value, and holds what is above the top on it', () => {
    expect(linePath([10, 12, 15, 20], [1, null, 9, 0], box)).toBe('M0.0 37.5M50.0 0.0L100.0 50.0');
    expect(linePath([], [], box)).toBe('');
    expect(linePath([10], [1], { ...box, toS: 10 })).toBe('M0.0 37.5');
  });

  it('the moment that is nearest to the pointer', () => {
    expect([0, 11, 13, 99].map(wantedS => nearestMoment([10, 12, 15], wantedS))).toEqual([0, 0, 1, 2]);
    expect(nearestMoment([], 3)).toBeNull();
  });

  it('a round top that no value is above', () => {
    expect(niceTop([[0.3, null], [0.7]])).toBe(1);
    expect(niceTop([[12], [17]])).toBe(20);
    expect(niceTop([[201]])).toBe(500);
    expect(niceTop([[null], [0]])).toBe(1);
  });
});
