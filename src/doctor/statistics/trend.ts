/** Slopes and trends by pairs of points, so that a fifth of the points may be wrong. */
import { blockMedians } from './blocks.ts';
import { median, type Numbers } from './order.ts';

/** Longer series are cut to so many block medians: all pairs of them are 20,000, whatever the length was. */
const MAX_POINTS = 200;

/** The median slope over all pairs of points (Theil 1950, Sen 1968), per unit of x; 0 with fewer than two points. */
export function theilSen(x: Numbers, y: Numbers): number {
  const xs = blockMedians(x, MAX_POINTS);
  const ys = blockMedians(y, MAX_POINTS);
  const slopes = new Float64Array((xs.length * (xs.length - 1)) / 2);
  let n = 0;
  for (let i = 0; i < xs.length; i++) {
    for (let j = i + 1; j < xs.length; j++) {
      const run = xs[j] - xs[i];
      const slope = (ys[j] - ys[i]) / run;
      if (run !== 0 && Number.isFinite(slope)) slopes[n++] = slope;
    }
  }
  return n === 0 ? 0 : median(slopes.subarray(0, n));
}

/** How a series moves over time. */
export interface Trend {
  /** Medians of the first and the last fifth. */
  readonly start: number;
  readonly end: number;
  /** Kendall's tau with time, -1 to 1: how surely it goes one way, whatever the size of the steps. */
  readonly tau: number;
  /** Standard scores of tau: beyond ±2 is seldom chance (Mann 1945). Smoothed logs are not independent: ask for more. */
  readonly z: number;
}

const flat: Trend = { start: Number.NaN, end: Number.NaN, tau: 0, z: 0 };

/** The trend of the finite values, in their order. */
export function trend(values: Numbers): Trend {
  const finite = Array.from(values).filter(Number.isFinite);
  const n = finite.length;
  if (n === 0) return flat;
  const part = Math.max(1, Math.floor(n / 5));
  const start = median(finite.slice(0, part));
  const end = median(finite.slice(n - part));
  if (n < 3) return { start, end, tau: 0, z: 0 };
  const points = blockMedians(finite, MAX_POINTS);
  const m = points.length;
  let score = 0;
  for (let i = 0; i < m; i++) for (let j = i + 1; j < m; j++) score += Math.sign(points[j] - points[i]);
  const pairs = (m * (m - 1)) / 2;
  const std = Math.sqrt((m * (m - 1) * (2 * m + 5)) / 18);
  return { start, end, tau: score / pairs, z: score / std };
}
