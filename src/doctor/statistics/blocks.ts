/** Smoothing by blocks: a long noisy series becomes few medians, so that one outlier moves none of them. */
import { median, type Numbers } from './order.ts';

/** The ends of `count` blocks of nearly equal size: block i is from `ends[i]` to before `ends[i + 1]`. */
export function blockEnds(length: number, count: number): number[] {
  const blocks = Math.max(1, Math.min(count, length));
  return Array.from({ length: blocks + 1 }, (_, i) => Math.round((i * length) / blocks));
}

/** Medians of at most `count` consecutive blocks. A short series is returned as it is. */
export function blockMedians(values: Numbers, count: number): Float64Array {
  if (values.length <= count) return Float64Array.from(values);
  const ends = blockEnds(values.length, count);
  const out = new Float64Array(ends.length - 1);
  const all = values instanceof Float64Array ? values : Float64Array.from(values);
  for (let i = 0; i < out.length; i++) out[i] = median(all.subarray(ends[i], ends[i + 1]));
  return out;
}

/** Noise from one value to the next, comparable to a standard deviation: a slow trend does not count. */
export function jitter(values: Numbers): number {
  if (values.length < 2) return 0;
  const steps = new Float64Array(values.length - 1);
  for (let i = 0; i < steps.length; i++) steps[i] = Math.abs(values[i + 1] - values[i]);
  const middle = median(steps);
  return Number.isFinite(middle) ? (1.4826 * middle) / Math.SQRT2 : 0;
}
