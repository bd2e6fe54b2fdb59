/** What a plot of a series needs: of every bucket along x the smallest, largest and mean value. Never a sample. */
import type { Envelope } from '../api.ts';
import { type Column, meanOf, newStretch } from './column.ts';

export interface Window {
  readonly from: number;
  readonly to: number;
  readonly buckets: number;
}

/** The first index in `0..length` at which x is at least (or, `after`, above) a value; x ascends. */
export function firstAt(x: Float64Array, length: number, value: number, after = false, from = 0): number {
  let [low, high] = [from, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (after ? x[middle] <= value : x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where buckets begin in a table of rows: the same for all its columns, and so found once. */
export interface Edges {
  readonly first: number;
  readonly last: number;
  /** The first row after each bucket. */
  readonly ends: Int32Array;
}

export function edgesOf(x: Float64Array, length: number, { from, to, buckets }: Window): Edges {
  const first = firstAt(x, length, from);
  const last = firstAt(x, length, to, true, first);
  const width = (to - from) / buckets;
  const ends = new Int32Array(buckets);
  let at = first;
  for (let bucket = 0; bucket < buckets; bucket++) {
    at = bucket === buckets - 1 ? last : firstAt(x, last, from + (bucket + 1) * width, false, at);
    ends[bucket] = at;
  }
  return { first, last, ends };
}

/**
 * The envelope of a column over `x` (its first `length` entries ascend). Buckets have equal width; where there are no more
 * points than buckets, each point is a bucket of its own.
 */
export function envelopeOf(
  metric: string,
  column: Column,
  x: Float64Array,
  length: number,
  window: Window,
  edges: Edges = edgesOf(x, length, window),
): Envelope {
  const out = {
    metric,
    x: [] as number[],
    min: [] as (number | null)[],
    max: [] as (number | null)[],
    mean: [] as (number | null)[],
    count: [] as number[],
    broken: [] as [number, number][],
  };
  const last = Math.min(edges.last, column.length);
  const { first, ends } = edges;
  const stretch = newStretch();
  let lastX = Number.NEGATIVE_INFINITY;
  const push = (a: number, b: number): void => {
    stretch.count = 0;
    stretch.broken = 0;
    stretch.min = Number.POSITIVE_INFINITY;
    stretch.max = Number.NEGATIVE_INFINITY;
    stretch.sum = 0;
    column.add(a, b, stretch);
    if (stretch.count === 0) return;
    const at = x[column.lastBefore(b, a)];
    // NaN: a time that is not known.
    if (!(at > lastX)) return;
    lastX = at;
    const finite = stretch.count > stretch.broken;
    if (stretch.broken > 0) out.broken.push([out.x.length, stretch.broken]);
    out.x.push(at);
    out.min.push(finite ? rounded(stretch.min) : null);
    out.max.push(finite ? rounded(stretch.max) : null);
    out.mean.push(finite ? rounded(meanOf(stretch)) : null);
    out.count.push(stretch.count);
  };
  column.add(first, last, stretch);
  if (stretch.count <= window.buckets && last - first <= 16 * window.buckets) {
    // Rows at one x are one point: x must ascend.
    for (let a = first; a < last; ) {
      let b = a + 1;
      while (b < last && x[b] === x[a]) b++;
      push(a, b);
      a = b;
    }
    return out;
  }
  let a = first;
  for (let bucket = 0; bucket < ends.length && a < last; bucket++) {
    const b = Math.min(last, ends[bucket]);
    if (b > a) push(a, b);
    a = b;
  }
  return out;
}

const powers = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);

/** Seven digits, which is more than a screen shows; the JSON is half as long. */
export function rounded(value: number): number | null {
  if (value === 0) return 0;
  if (!Number.isFinite(value)) return null;
  const digits = 6 - Math.floor(Math.log10(Math.abs(value)));
  if (digits > 22 || digits < -22) return Number(value.toPrecision(7));
  return digits >= 0
    ? Math.round(value * powers[digits]) / powers[digits]
    : Math.round(value / powers[-digits]) * powers[-digits];
}
