/** What one plot draws: curves on one x, with everything uPlot needs as plain arrays. */
import { type Line, positiveOnly } from './envelope.ts';
import type { GroupEnd } from './group-line.ts';
import { smooth } from './smoothing.ts';

/** One curve: a line, and a band around it. */
export interface Curve {
  readonly label: string;
  /** Index into the palette; 0 is the page's ink for a single run. */
  readonly color: number;
  readonly x: readonly number[];
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
  /** What was measured. */
  readonly raw: readonly (number | null)[];
  /** What is drawn full: smoothed, or the same as raw. */
  readonly line: readonly (number | null)[];
  /** Values that were not finite: where, and how many. */
  readonly broken: readonly { readonly x: number; readonly count: number }[];
  /** Up to where an extreme is drawn, where that is beyond the band: the largest value of any run of a group. */
  readonly peak: readonly (number | null)[];
  /** Its band is the interval of a group, not what was measured. */
  readonly grouped: boolean;
  /** Where runs of a group end. */
  readonly ends: readonly GroupEnd[];
  /** Points that a logarithmic axis has no place for. */
  readonly hidden: number;
}

/** On a logarithmic axis, what is not above 0 but must be drawn: beyond the foot of any axis, so that it ends there. */
export const FOOT = 1e-30;

const footed = (values: readonly (number | null)[], where: (i: number) => boolean = () => true) =>
  values.map((v, i) => (v === null || v > 0 ? v : where(i) ? FOOT : null));

/**
 * A curve of a line. On a logarithmic axis a bucket that reaches from 0 up to a spike reaches from the foot of the axis:
 * without its low end it would not be drawn at all. `floored` where 0 itself is a value to show, as of a KL.
 */
export function curveOf(
  line: Line,
  options: {
    label: string;
    color: number;
    smooth: number;
    log: boolean;
    floored?: boolean;
    peak?: readonly (number | null)[];
    ends?: readonly GroupEnd[];
  },
): Curve {
  const smoothed = options.smooth > 0 ? smooth(line.mean, line.count, options.smooth) : line.mean;
  const { label, color, ends = [] } = options;
  const peaks = options.peak ?? line.max;
  const base = { label, color, ends, grouped: options.ends !== undefined, x: line.x, broken: line.broken };
  if (!options.log)
    return { ...base, low: line.min, high: line.max, peak: peaks, raw: line.mean, line: smoothed, hidden: 0 };
  const { hidden } = positiveOnly(line.min);
  if (options.floored)
    return {
      ...base,
      low: footed(line.min),
      high: footed(line.max),
      peak: footed(peaks),
      raw: footed(line.mean),
      line: footed(smoothed),
      hidden,
    };
  return {
    ...base,
    low: footed(line.min, i => (line.max[i] ?? 0) > 0),
    high: positiveOnly(line.max).values,
    peak: positiveOnly(peaks).values,
    raw: positiveOnly(line.mean).values,
    line: positiveOnly(smoothed).values,
    hidden,
  };
}

/** The largest value of some lines, or of what they stand for; 0 of none. */
export function largestOf(
  lines: readonly { readonly line: Pick<Line, 'max'>; readonly peak?: readonly (number | null)[] }[],
): number {
  let largest = 0;
  for (const { line, peak = line.max } of lines)
    for (const v of peak) if (v !== null && v > largest) largest = v;
  return largest;
}

/** Whether a logarithmic axis has anything to show. */
export function hasPositive(lines: readonly Pick<Line, 'max'>[]): boolean {
  return lines.some(line => line.max.some(v => v !== null && v > 0));
}

/** A range on a logarithmic axis, from the lowest edge of the bands on: a KL of 1e-12 must not take all their room. */
export function aboveFloor(
  range: [number, number] | null,
  bands: readonly { readonly from: number }[],
): [number, number] | null {
  const floor = Math.min(...bands.filter(band => band.from > 0).map(band => band.from));
  return range === null || range[1] <= floor ? range : [Math.max(range[0], floor), range[1]];
}

/** A box in pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The first box that no trace runs through; if there is none, the one with the least in it. A trace ascends in x. */
export function freeBox(
  boxes: readonly Box[],
  traces: readonly (readonly (readonly [number, number, number])[])[],
): Box {
  let best = boxes[0];
  let least = Number.POSITIVE_INFINITY;
  for (const box of boxes) {
    let inside = 0;
    for (const trace of traces) {
      for (let i = 0; i < trace.length; i++) {
        // From a point to the next, with what is between their heights.
        const [x, top, bottom] = trace[i];
        const [nextX, nextTop, nextBottom] = trace[i + 1] ?? trace[i];
        if (nextX < box.left || x > box.right) continue;
        if (Math.max(bottom, nextBottom) >= box.top && Math.min(top, nextTop) <= box.bottom) inside++;
      }
    }
    if (inside < least) {
      least = inside;
      best = box;
    }
    if (inside === 0) break;
  }
  return best;
}

/** Smallest and largest of what is drawn between two places; what lies at the foot takes no room. */
export function rangeOf(curves: readonly Curve[], from: number, to: number): [number, number] | null {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const { x, low, peak } of curves) {
    for (let i = 0; i < x.length; i++) {
      if (x[i] < from || x[i] > to) continue;
      const a = low[i];
      const b = peak[i];
      // Where the low end is at the foot, the high one is the lowest that has a place.
      const c = a === FOOT ? b : a;
      if (c !== null && c !== undefined && c !== FOOT && c < min) min = c;
      if (b !== null && b !== undefined && b !== FOOT && b > max) max = b;
    }
  }
  return min <= max ? [min, max] : null;
}

/**
 * The ends of a y axis around values: with air, never of height 0, and with what must be seen (such as the target line)
 * inside. On a logarithmic axis the air is a share of the decades. `strip` is the share of the height to keep free at the
 * bottom, for pins.
 */
export function paddedRange(
  range: [number, number] | null,
  log: boolean,
  include: readonly number[] = [],
  strip = 0,
): [number, number] {
  const [low, high] = paddedEnds(range, log, include);
  const below = strip / (1 - strip);
  return log ? [low / (high / low) ** below, high] : [low - (high - low) * below, high];
}

function paddedEnds(
  range: [number, number] | null,
  log: boolean,
  include: readonly number[],
): [number, number] {
  const seen = include.filter(v => Number.isFinite(v) && (!log || v > 0));
  const all = range === null ? seen : [...range, ...seen];
  if (all.length === 0) return log ? [0.001, 1] : [0, 1];
  let min = Math.min(...all);
  let max = Math.max(...all);
  if (log) {
    const air = Math.max(0.06 * Math.log10(max / min), 0.08);
    return [min / 10 ** air, max * 10 ** air];
  }
  if (min === max) {
    const half = Math.abs(min) * 0.05 || 0.5;
    min -= half;
    max += half;
  }
  const air = (max - min) * 0.06;
  // What is never negative keeps its floor at 0.
  return [min >= 0 && min - air < 0 ? 0 : min - air, max + air];
}

/** A sentence for those who do not see the plot. */
export function summarise(
  title: string,
  unit: string,
  line: Line,
  say: { value: (v: number | null) => string; place: (x: number) => string },
): string {
  const n = line.count.reduce((sum, c) => sum + c, 0);
  if (n === 0) return `${title}: no values yet.`;
  let min: number | null = null;
  let max: number | null = null;
  let last: number | null = null;
  let at = line.x[0];
  line.mean.forEach((mean, i) => {
    const low = line.min[i] ?? null;
    const high = line.max[i] ?? null;
    if (low !== null && (min === null || low < min)) min = low;
    if (high !== null && (max === null || high > max)) {
      max = high;
      at = line.x[i];
    }
    if (mean !== null) last = mean;
  });
  const broken = line.broken.reduce((sum, b) => sum + b.count, 0);
  const of = unit === '1' ? '' : ` ${unit}`;
  return (
    `${title}: ${n} values from ${say.place(line.x[0])} to ${say.place(line.x.at(-1)!)}. ` +
    `Last ${say.value(last)}${of}, smallest ${say.value(min)}, largest ${say.value(max)} at ${say.place(at)}.` +
    (broken > 0 ? ` ${broken} values were not finite.` : '')
  );
}
