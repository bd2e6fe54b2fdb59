/** One series as the rules see it: its finite points, and what was not finite apart from them. */
import type { BlankEnd, CanonicalSeries, KlMeaning } from '../canonical.ts';
import type { Series } from '../series.ts';
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

/** Whether each point is one finite value, as nearly always. */
function isPlain({ length, count, values, broken }: Series): boolean {
  if (count > length) return false;
  for (let i = 0; i < length; i++) if (broken[i] > 0 || !Number.isFinite(values[i])) return false;
  return true;
}

export function trackOf(entry: CanonicalSeries): Track {
  const { series } = entry;
  const broken = { points: 0, from: Number.NaN, to: Number.NaN, leading: 0, trailing: 0, infinite: 0 };
  if (isPlain(series)) return new FiniteTrack(entry, broken, series.x, series.values, series.values);
  const x = new Float64Array(series.length);
  const v = new Float64Array(series.length);
  const peak = new Float64Array(series.length);
  let n = 0;
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
      if (n === 0) broken.leading++;
      broken.trailing++;
      continue;
    }
    broken.trailing = 0;
    x[n] = at;
    v[n] = value;
    peak[n++] = Number.isFinite(series.max[i]) ? Math.max(value, series.max[i]) : value;
  }
  if (n === 0) broken.trailing = broken.points;
  return new FiniteTrack(entry, broken, x.subarray(0, n), v.subarray(0, n), peak.subarray(0, n));
}

/** A class, and no literal with spreads: a thousand small runs make half a million of them. */
class FiniteTrack implements Track {
  readonly id: string;
  readonly theirs: string;
  declare readonly kl?: KlMeaning;
  readonly n: number;
  readonly x: Float64Array;
  readonly v: Float64Array;
  readonly peak: Float64Array;
  readonly merged: boolean;
  readonly rows: number;
  readonly broken: Track['broken'];
  declare readonly blank?: BlankEnd;
  readonly first: number;
  readonly last: number;
  #ascending: Float64Array | undefined;

  constructor(
    { id, theirs, kl, series, blank }: CanonicalSeries,
    broken: Track['broken'],
    x: Float64Array,
    v: Float64Array,
    peak: Float64Array,
  ) {
    const n = v.length;
    this.id = id;
    this.theirs = theirs;
    if (kl !== undefined) this.kl = kl;
    this.n = n;
    this.x = x;
    this.v = v;
    this.peak = peak;
    this.merged = series.count > series.length;
    this.rows = series.length;
    this.broken = broken;
    if (blank !== undefined) this.blank = blank;
    this.first = v[0] ?? Number.NaN;
    this.last = v[n - 1] ?? Number.NaN;
  }

  q(p: number): number {
    this.#ascending ??= sorted(this.v);
    return quantileOfSorted(this.#ascending, p);
  }

  get median(): number {
    return this.q(0.5);
  }
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
