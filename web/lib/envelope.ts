/** Envelopes as the page holds them: joined from a coarse and a fine answer, grown by live rows, asked for values. */
import type { Envelope } from '../../src/server/api.ts';

/** One series along x; all arrays have one length, and x ascends. */
export interface Line {
  readonly x: number[];
  readonly min: (number | null)[];
  readonly max: (number | null)[];
  readonly mean: (number | null)[];
  readonly count: number[];
  /** Places where values were not finite. */
  readonly broken: { readonly x: number; readonly count: number }[];
}

export const emptyLine = (): Line => ({ x: [], min: [], max: [], mean: [], count: [], broken: [] });

/** A line of its own from an answer; a bucket that breaks the rules (x that does not ascend) is left out. */
export function lineOf(envelope: Envelope): Line {
  const line = emptyLine();
  const n = Math.min(
    envelope.x.length,
    envelope.min.length,
    envelope.max.length,
    envelope.mean.length,
    envelope.count.length,
  );
  let last = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) {
    const x = envelope.x[i];
    if (!(x > last)) continue;
    last = x;
    line.x.push(x);
    line.min.push(envelope.min[i]!);
    line.max.push(envelope.max[i]!);
    line.mean.push(envelope.mean[i]!);
    line.count.push(envelope.count[i]);
  }
  for (const [bucket, count] of envelope.broken) {
    const x = envelope.x[bucket];
    if (x !== undefined) line.broken.push({ x, count });
  }
  return line;
}

/** Adds a point at the end; one that is not beyond the last is refused, and false says so. */
export function appendPoint(line: Line, x: number, value: number | null): boolean {
  const last = line.x.at(-1);
  if (!Number.isFinite(x) || (last !== undefined && x <= last)) return false;
  const finite = value !== null && Number.isFinite(value) ? value : null;
  line.x.push(x);
  line.min.push(finite);
  line.max.push(finite);
  line.mean.push(finite);
  line.count.push(1);
  if (finite === null) line.broken.push({ x, count: 1 });
  return true;
}

/** The fine line where there is one, the coarse one on both sides of it. */
export function joinLines(coarse: Line, fine: Line | null, from: number, to: number): Line {
  if (fine === null || fine.x.length === 0) return coarse;
  const lo = Math.min(from, fine.x[0]);
  const hi = Math.max(to, fine.x.at(-1)!);
  const before = lowerBound(coarse.x, lo);
  const after = upperBound(coarse.x, hi);
  const join = <T>(c: readonly T[], f: readonly T[]): T[] => [...c.slice(0, before), ...f, ...c.slice(after)];
  return {
    x: join(coarse.x, fine.x),
    min: join(coarse.min, fine.min),
    max: join(coarse.max, fine.max),
    mean: join(coarse.mean, fine.mean),
    count: join(coarse.count, fine.count),
    broken: [...coarse.broken.filter(b => b.x < lo), ...fine.broken, ...coarse.broken.filter(b => b.x > hi)],
  };
}

/** The first index whose x is at least the given one. */
export function lowerBound(xs: readonly number[], x: number): number {
  let lo = 0;
  let hi = xs.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (xs[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** The first index whose x is beyond the given one. */
export function upperBound(xs: readonly number[], x: number): number {
  let lo = 0;
  let hi = xs.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (xs[mid] <= x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** The index of the nearest point, or -1 of an empty line. */
export function nearestIndex(xs: readonly number[], x: number): number {
  if (xs.length === 0) return -1;
  const i = lowerBound(xs, x);
  if (i === 0) return 0;
  if (i === xs.length) return i - 1;
  return x - xs[i - 1] <= xs[i] - x ? i - 1 : i;
}

/** Smallest and largest value between two places, and where the largest is. */
export function extremes(
  line: Line,
  from = Number.NEGATIVE_INFINITY,
  to = Number.POSITIVE_INFINITY,
): { min: number; max: number; at: number } | null {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let at = Number.NaN;
  for (let i = lowerBound(line.x, from); i < line.x.length && line.x[i] <= to; i++) {
    const low = line.min[i];
    const high = line.max[i];
    if (low !== null && low !== undefined && low < min) min = low;
    if (high !== null && high !== undefined && high > max) {
      max = high;
      at = line.x[i];
    }
  }
  return min <= max ? { min, max, at } : null;
}

/** For a logarithmic axis: what is not above 0 has no place on it. Says how many points lost theirs. */
export function positiveOnly(values: readonly (number | null)[]): {
  values: (number | null)[];
  hidden: number;
} {
  let hidden = 0;
  const kept = values.map(v => {
    if (v === null || v > 0) return v;
    hidden++;
    return null;
  });
  return { values: kept, hidden };
}

/** Maps a step to another axis with the points that have both; straight between them, null beyond them. */
export function stepToAxis(steps: Line | null, step: number): number | null {
  if (steps === null || steps.x.length === 0) return null;
  // `steps` has steps as values (never falling) and the other axis as x.
  const values = steps.max as number[];
  const i = lowerBound(values, step);
  if (i === values.length) return step <= values.at(-1)! * 1.000001 ? steps.x.at(-1)! : null;
  if (i === 0) return steps.x[0];
  const a = values[i - 1];
  const b = values[i];
  const share = b === a ? 1 : (step - a) / (b - a);
  return steps.x[i - 1] + share * (steps.x[i] - steps.x[i - 1]);
}
