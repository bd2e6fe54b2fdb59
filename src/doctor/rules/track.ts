/** One series as the rules see it: its finite points, and what was not finite apart from them. */
import type { BlankEnd, CanonicalSeries, KlMeaning } from '../canonical.ts';
import { quantileOfSorted, sorted } from '../statistics/order.ts';

export interface Track {
  readonly id: string;
  readonly theirs: string;
  readonly kl?: KlMeaning;
  /** Finite points only, in their order. */
  readonly n: number;
  readonly x: Float64Array;
  readonly v: Float64Array;
  /** Largest value of a point that stands for several. */
  readonly peak: Float64Array;
  /** Whether points stand for several values each. */
  readonly merged: boolean;
  /** All points, the broken ones too. */
  readonly rows: number;
  /** Points that hold values which are not finite. */
  readonly broken: {
    readonly points: number;
    readonly from: number;
    readonly to: number;
    /** Whether no finite value came before, or none after. */
    readonly leading: number;
    readonly trailing: number;
    /** Infinite rather than not a number. */
    readonly infinite: number;
  };
  /** Where a table goes on without it. */
  readonly blank?: BlankEnd;
  readonly first: number;
  readonly last: number;
  /** Quantile of all finite values. */
  q(p: number): number;
  readonly median: number;
}

export function trackOf(entry: CanonicalSeries): Track {
  const { series } = entry;
  const x: number[] = [];
  const v: number[] = [];
  const peak: number[] = [];
  const broken = { points: 0, from: Number.NaN, to: Number.NaN, leading: 0, trailing: 0, infinite: 0 };
  for (let i = 0; i < series.length; i++) {
    const value = series.values[i];
    const at = series.x[i];
    const finite = Number.isFinite(value);
    if (series.broken[i] > 0 || !finite) {
      broken.points++;
      if (Number.isNaN(broken.from)) broken.from = at;
      broken.to = at;
      if (!finite && !Number.isNaN(value)) broken.infinite++;
    }
    if (!finite) {
      if (x.length === 0) broken.leading++;
      broken.trailing++;
      continue;
    }
    broken.trailing = 0;
    x.push(at);
    v.push(value);
    peak.push(Number.isFinite(series.max[i]) ? Math.max(value, series.max[i]) : value);
  }
  if (v.length === 0) broken.trailing = broken.points;
  const values = Float64Array.from(v);
  const ascending = sorted(values);
  return {
    id: entry.id,
    theirs: entry.theirs,
    ...(entry.kl === undefined ? {} : { kl: entry.kl }),
    n: values.length,
    x: Float64Array.from(x),
    v: values,
    peak: Float64Array.from(peak),
    merged: series.count > series.length,
    rows: series.length,
    broken,
    ...(entry.blank === undefined ? {} : { blank: entry.blank }),
    first: v[0] ?? Number.NaN,
    last: v.at(-1) ?? Number.NaN,
    q: p => quantileOfSorted(ascending, p),
    median: quantileOfSorted(ascending, 0.5),
  };
}

/** The values from share `from` to share `to` of the points: `part(t, 0.5)` is the second half. At least one point. */
export function part(track: Track, from: number, to = 1): Float64Array {
  const a = Math.min(Math.floor(track.n * from), Math.max(0, track.n - 1));
  return track.v.subarray(a, Math.max(a + 1, Math.ceil(track.n * to)));
}

/** The values at or after a step, and those before it. */
export function split(track: Track, x: number): readonly [before: Float64Array, after: Float64Array] {
  let i = 0;
  while (i < track.n && track.x[i] < x) i++;
  return [track.v.subarray(0, i), track.v.subarray(i)];
}
