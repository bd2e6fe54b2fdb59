/** Runs of agents, and how their series go. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { KnownConfig } from '../../../../src/doctor/known-settings.ts';
import { type More, rows, run } from './build.ts';

export const level = (n: number, value: number): number[] => rows(n, () => value);
/** The first tenth is low; so large a share of the others is high, one after another at the end, or spread over all. */
export const partly = (n: number, share: number, high: number, low: number): number[] =>
  rows(n, i => {
    const [at, of] = [i - Math.floor(n / 10), n - Math.floor(n / 10)];
    return at >= 0 && Math.floor((at + 1) * share + 1e-9) > Math.floor(at * share + 1e-9) && at < of
      ? high
      : low;
  });
/** Level for the first fifth, a line, level for the last fifth. */
export const bend = (n: number, from: number, to: number): number[] =>
  rows(n, (_, t) => from + (to - from) * Math.min(1, Math.max(0, (t - 0.2) / 0.6)));

/** Returns by what they do: 0 stands still, 1 rises, 2 fell back, 3 slips a little from its best, 4 never moves at all. */
export const returns = (n: number, going: number, slip = 0): number[] =>
  rows(n, (i, t) => {
    const noise = Math.sin(7.1 * i);
    if (going === 1) return 10 + 400 * t + noise;
    if (going === 2) return (t < 0.5 ? 400 * t : 20) + noise;
    if (going === 3) return (t < 0.3 ? 1400 * t : 420 - slip * Math.max(0, t - 0.7)) + noise;
    if (going === 4) return 20;
    return 20 + noise;
  });

export const agent = (
  values: Readonly<Record<string, readonly number[]>>,
  config: KnownConfig = {},
  more: More = {},
): CanonicalRun => run(values, { actions: 'discrete', maxEntropy: Math.LN2, config, ...more });

/** Ten rows that go up all the way but for so many pairs that are in the wrong order, far from both ends. */
export function disordered(pairs: number): number[] {
  const middle = [2, 3, 4, 5, 6, 7];
  let left = pairs;
  for (let end = 5; end > 0; end--)
    for (let i = 0; i < end && left > 0; i++, left--) [middle[i], middle[i + 1]] = [middle[i + 1], middle[i]];
  return [0, 1, ...middle, 8, 9];
}
