/** New series from read ones: moved along x, scaled, or made of other series. The read ones are never written. */
import type { Series } from '../series.ts';

/** A series of plain points, for what is computed rather than read. */
export function seriesOf(x: readonly number[], values: readonly number[]): Series {
  const points = Float64Array.from(values);
  return {
    length: points.length,
    count: points.length,
    x: Float64Array.from(x),
    values: points,
    min: points.slice(),
    max: points.slice(),
    broken: Uint32Array.from(values, value => (Number.isFinite(value) ? 0 : 1)),
    wallTime: new Float64Array(points.length).fill(Number.NaN),
  };
}

/** The series with every x replaced; a point whose new x is not finite is left out. */
export function moved(series: Series, to: (x: number) => number): Series {
  const keep: number[] = [];
  const x: number[] = [];
  for (let i = 0; i < series.length; i++) {
    const place = to(series.x[i]);
    if (!Number.isFinite(place)) continue;
    keep.push(i);
    x.push(place);
  }
  return {
    length: keep.length,
    count: keep.length === series.length ? series.count : keep.length,
    x: Float64Array.from(x),
    values: Float64Array.from(keep, i => series.values[i]),
    min: Float64Array.from(keep, i => series.min[i]),
    max: Float64Array.from(keep, i => series.max[i]),
    broken: Uint32Array.from(keep, i => series.broken[i]),
    wallTime: Float64Array.from(keep, i => series.wallTime[i]),
  };
}

/** The series with every value multiplied; a negative factor swaps smallest and largest. */
export function scaled(series: Series, factor: number): Series {
  if (factor === 1) return series;
  const times = (values: Float64Array): Float64Array =>
    Float64Array.from({ length: series.length }, (_, i) => values[i] * factor);
  const [low, high] = factor < 0 ? [series.max, series.min] : [series.min, series.max];
  return { ...copyOf(series), values: times(series.values), min: times(low), max: times(high) };
}

/** Plain fields: a reader's series may hold them behind getters. */
function copyOf(series: Series): Series {
  const { length, count, x, values, min, max, broken, wallTime } = series;
  return { length, count, x, values, min, max, broken, wallTime };
}

/** Whether all finite values are the same, and which; undefined if they differ or there is none. */
export function constantOf(series: Series): number | undefined {
  let found: number | undefined;
  for (let i = 0; i < series.length; i++) {
    for (const value of [series.min[i], series.max[i]]) {
      if (!Number.isFinite(value)) continue;
      if (found === undefined) found = value;
      else if (Math.abs(value - found) > 1e-6 * Math.abs(found)) return undefined;
    }
  }
  return found;
}

/** The first finite value. */
export function firstOf(series: Series): number | undefined {
  for (let i = 0; i < series.length; i++) if (Number.isFinite(series.values[i])) return series.values[i];
  return undefined;
}

/** Smallest and largest finite value; undefined if there is none. */
export function rangeOf(series: Series): readonly [number, number] | undefined {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < series.length; i++) {
    if (Number.isFinite(series.min[i])) low = Math.min(low, series.min[i]);
    if (Number.isFinite(series.max[i])) high = Math.max(high, series.max[i]);
  }
  return low <= high ? [low, high] : undefined;
}
