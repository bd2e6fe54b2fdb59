/**
 * Several runs as one line: what they come to at each place, how far chance may have moved it, how many are there, and where
 * some of them end. Loaded by who compares groups.
 */
import { aggregate, bootstrapInterval } from '../../src/studies/statistics.ts';
import { valueAt } from './compare.ts';
import { type Line, lowerBound, upperBound } from './envelope.ts';
import type { GroupFigure } from './view-state.ts';

/** From this place on fewer runs are there. */
export interface GroupEnd {
  readonly x: number;
  /** How many go on. */
  readonly left: number;
}

export interface GroupLine {
  /** `min` and `max` are the interval, `count` is how many runs reach that far. */
  readonly line: Line;
  /** The largest value of any run between this place and the one before: what an average must not hide. */
  readonly peak: readonly (number | null)[];
  readonly ends: readonly GroupEnd[];
}

const places = 160;
/** It is drawn, not read to the last digit. */
const resamples = 200;

export function groupLine(lines: readonly Line[], of: GroupFigure): GroupLine {
  const line: Line = { x: [], min: [], max: [], mean: [], count: [], broken: lines.flatMap(l => l.broken) };
  const peak: (number | null)[] = [];
  const some = lines.filter(({ x }) => x.length > 0);
  if (some.length === 0) return { line, peak, ends: [] };
  const from = Math.min(...some.map(({ x }) => x[0]));
  const to = Math.max(...some.map(({ x }) => x.at(-1)!));
  const n = to > from ? places : 1;
  const step = n === 1 ? 0 : (to - from) / (n - 1);
  /** Runs do not begin and end at the very same step: within a place of it they are there. */
  const within = ({ x }: Line, at: number): number =>
    at < x[0] && at >= x[0] - step ? x[0] : at > x.at(-1)! && at <= x.at(-1)! + step ? x.at(-1)! : at;
  for (let i = 0; i < n; i++) {
    const x = i === n - 1 ? to : from + i * step;
    const values = some.map(l => valueAt(l.x, l.mean, within(l, x))).filter(v => v !== null);
    line.x.push(x);
    line.count.push(values.length);
    peak.push(highest(some, x - step, x));
    if (values.length === 0) {
      for (const part of [line.mean, line.min, line.max]) part.push(null);
      continue;
    }
    const figure = aggregate(of, values);
    const { low, high } =
      values.length === 1 ? { low: figure, high: figure } : bootstrapInterval(values, { resamples, of });
    line.mean.push(figure);
    line.min.push(low);
    line.max.push(high);
  }
  return { line, peak, ends: endsOf(some, step) };
}

function highest(lines: readonly Line[], after: number, to: number): number | null {
  let most: number | null = null;
  for (const { x, max } of lines)
    for (let i = lowerBound(x, after); i < upperBound(x, to); i++) {
      const value = max[i];
      if (value !== null && value !== undefined && (most === null || value > most)) most = value;
    }
  return most;
}

/** Where runs end before the last of them; those near each other are one. */
function endsOf(lines: readonly Line[], step: number): GroupEnd[] {
  const lasts = lines.map(({ x }) => x.at(-1)!).sort((a, b) => a - b);
  const end = lasts.at(-1)! - step;
  const ends: GroupEnd[] = [];
  lasts.forEach((x, i) => {
    if (x >= end) return;
    const last = ends.at(-1);
    if (last !== undefined && x - last.x <= 2 * step) ends.pop();
    ends.push({ x, left: lasts.length - i - 1 });
  });
  return ends;
}
