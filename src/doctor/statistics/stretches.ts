/** Stretches of a series that lie above a threshold. */
import type { Numbers } from './order.ts';

/** Indices of a stretch, both ends included. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly length: number;
}

/** Consecutive values above `threshold`; not finite ones end a stretch unless `Infinity`, which is above everything. */
export function stretchesAbove(values: Numbers, threshold: number): Stretch[] {
  const out: Stretch[] = [];
  let from = -1;
  for (let i = 0; i <= values.length; i++) {
    const above = i < values.length && values[i] > threshold;
    if (above && from < 0) from = i;
    if (!above && from >= 0) {
      out.push({ from, to: i - 1, length: i - from });
      from = -1;
    }
  }
  return out;
}

/** The longest stretch, or undefined if nothing is above the threshold. */
export function longestAbove(values: Numbers, threshold: number): Stretch | undefined {
  return stretchesAbove(values, threshold).reduce<Stretch | undefined>(
    (best, s) => (best === undefined || s.length > best.length ? s : best),
    undefined,
  );
}
