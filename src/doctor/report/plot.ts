/**
 * What is drawn of a run: few series, few points, and the stretches that findings cite. A plot is bounded in size
 * however long the run is, so that a thousand reports fit in memory, and no spike is lost in it.
 */
import {
  dwarfsBands,
  findMetric,
  headlineMetrics,
  healthyEnds,
  heldTo,
  type KlBand,
  klBandsFor,
  klLevels,
  type Tone,
} from '../../metrics/registry.ts';
import { type CanonicalRun, type CanonicalSeries, objectiveOf } from '../canonical.ts';
import { contractOfRun, isBanded } from '../contract.ts';
import type { Diagnosis, Severity } from '../findings.ts';
import type { Series } from '../series.ts';

/** Points of a plot at most. */
export const PLOT_POINTS = 400;

/** Neighbouring points of a series taken together. */
export interface PlotPoint {
  readonly x: number;
  /** NaN where none of its values was finite. */
  readonly mean: number;
  readonly min: number;
  readonly max: number;
  /** How many of its values were not finite. */
  readonly broken: number;
}

export interface PlotMark {
  readonly from: number;
  readonly to: number;
  readonly severity: Severity;
}

export interface Plot {
  /** The registry's name. */
  readonly metric: string;
  /** The name in the log. */
  readonly theirs: string;
  /** In words: `KL of the update`. */
  readonly title: string;
  readonly unit: string;
  readonly points: readonly PlotPoint[];
  readonly marks: readonly PlotMark[];
  /** Values of more than three decades are drawn on a logarithmic scale. */
  readonly log: boolean;
  /** The ends of the scale; NaN if no value is finite. On a logarithmic scale `low` is above 0. */
  readonly low: number;
  readonly high: number;
  /** The lowest and the highest finite value; a logarithmic scale may have no room for the one, bands may reach beyond both. */
  readonly lowest: number;
  readonly highest: number;
  /** The bands of the run's own contract, where the scale of KL bands holds. */
  readonly bands?: readonly KlBand[];
  /** With bands: the run's target and its guard. */
  readonly levels: readonly PlotLevel[];
}

/** A line across a plot. */
export interface PlotLevel {
  readonly value: number;
  readonly label: string;
  readonly tone: Tone;
}

/** The series that the findings cite, those of the root cause first, then up to `context` that any reader asks for. */
export function plotsOf(
  diagnosis: Diagnosis,
  run: CanonicalRun,
  most = 6,
  context = 2,
  /** Metrics to draw after these. */
  more: readonly string[] = [],
): Plot[] {
  const cited = diagnosis.findings.flatMap(({ marks }) => marks.map(({ metric }) => metric));
  const told = [...new Set(cited)].filter(id => run.series.has(id));
  const room = told.length >= most - context ? most : told.length + context;
  const objective = objectiveOf(run)?.id;
  const headlines = [
    ...new Set(['kl/step', ...(objective === undefined ? [] : [objective]), ...headlineMetrics, ...more]),
  ];
  const others = headlines.filter(id => run.series.has(id) && !told.includes(id));
  return [...told.slice(0, most), ...others]
    .slice(0, room)
    .map(id => plotOf(run.series.get(id)!, diagnosis, run))
    .filter(plot => plot.points.length > 0);
}

function plotOf(canonical: CanonicalSeries, { findings }: Diagnosis, run: CanonicalRun): Plot {
  const { id, theirs, series, kl } = canonical;
  const metric = findMetric(id);
  const points = bucketed(series, PLOT_POINTS);
  const marks = joinedMarks(
    findings.flatMap(({ severity, marks }) =>
      marks
        .filter(mark => mark.metric === id && Number.isFinite(mark.from) && Number.isFinite(mark.to))
        .map(({ from, to }) => ({ from: Math.min(from, to), to: Math.max(from, to), severity })),
    ),
  );
  const contract = isBanded(kl) ? heldTo(id, contractOfRun(run)) : undefined;
  const bands = contract === undefined ? undefined : klBandsFor(contract);
  const asIs = ['episode', 'reward', 'eval'].includes(metric?.group ?? '');
  return {
    metric: id,
    theirs,
    title: metric?.title ?? id,
    unit: metric?.unit ?? '1',
    points,
    marks,
    ...scaleOf(points, asIs ? 'linear' : 'usual', bands),
    ...(bands === undefined ? {} : { bands }),
    levels: contract === undefined ? [] : klLevels(contract),
  };
}

/** Stretches of one severity that overlap are one. */
function joinedMarks(marks: readonly PlotMark[]): PlotMark[] {
  const joined: PlotMark[] = [];
  for (const mark of [...marks].sort((a, b) => a.from - b.from)) {
    const at = joined.findIndex(other => other.severity === mark.severity && other.to >= mark.from);
    const other = joined[at];
    if (other === undefined) joined.push(mark);
    else joined[at] = { ...other, to: Math.max(other.to, mark.to) };
  }
  return joined;
}

/** Points of a series put together until there are at most `most`, by their place on the x axis. */
export function bucketed(series: Series, most: number): PlotPoint[] {
  const points: PlotPoint[] = [];
  for (let i = 0; i < series.length; i++) {
    if (!Number.isFinite(series.x[i])) continue;
    const mean = series.values[i];
    const finite = Number.isFinite(mean);
    points.push({
      x: series.x[i],
      mean: finite ? mean : Number.NaN,
      min: finite ? series.min[i] : Number.NaN,
      max: finite ? series.max[i] : Number.NaN,
      broken: finite ? series.broken[i] : Math.max(1, series.broken[i]),
    });
  }
  return merged(points, most);
}

/** The same for points, so that a plot can be drawn narrower than it was made. */
export function merged(points: readonly PlotPoint[], most: number): PlotPoint[] {
  if (points.length <= most) return [...points];
  const [from, to] = rangeOf(points);
  const buckets: PlotPoint[][] = Array.from({ length: most }, () => []);
  for (const point of points) buckets[placeOf(point.x, from, to, most)].push(point);
  return buckets.filter(bucket => bucket.length > 0).map(together);
}

/** The number of the bucket that `x` falls into. */
export function placeOf(x: number, from: number, to: number, buckets: number): number {
  if (!(to > from)) return 0;
  const share = (x / 2 - from / 2) / (to / 2 - from / 2);
  return Math.min(buckets - 1, Math.max(0, Math.floor(share * buckets)));
}

export function rangeOf(points: readonly PlotPoint[]): [number, number] {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { x } of points) [from, to] = [Math.min(from, x), Math.max(to, x)];
  return [from, to];
}

export function together(points: readonly PlotPoint[]): PlotPoint {
  let [min, max, mean, broken, count] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (const point of points) {
    broken += point.broken;
    if (Number.isNaN(point.mean)) continue;
    count++;
    mean += (point.mean - mean) / count;
    [min, max] = [Math.min(min, point.min), Math.max(max, point.max)];
  }
  const x = points.at(-1)!.x;
  return count === 0
    ? { x, mean: Number.NaN, min: Number.NaN, max: Number.NaN, broken }
    : { x, mean, min, max, broken };
}

/** Decades beyond which a scale without bands is logarithmic. */
const DECADES = 3;

/**
 * Returns and rewards are shown as they are: a logarithm would make much of their first steps. With bands, 0 and the
 * healthy band are always there, so that a KL is seen against them and not against itself.
 */
function scaleOf(
  points: readonly PlotPoint[],
  kind: 'linear' | 'usual',
  bands: readonly KlBand[] | undefined,
): Pick<Plot, 'log' | 'low' | 'high' | 'lowest' | 'highest'> {
  let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const positive: number[] = [];
  for (const { mean, min, max } of points) {
    if (!Number.isFinite(min) || !Number.isFinite(max)) continue;
    [lowest, highest] = [Math.min(lowest, min), Math.max(highest, max)];
    // A KL of 0 among those that share a point is at the foot of the scale; it does not stand in the way of a logarithm.
    const least = min > 0 || bands === undefined ? min : mean;
    if (least > 0) positive.push(least);
  }
  if (lowest > highest) {
    const none = Number.NaN;
    return { log: false, low: none, high: none, lowest: none, highest: none };
  }
  const seen = bands === undefined ? undefined : healthyEnds(bands);
  const found = { lowest, highest };
  const linear = {
    log: false,
    low: seen === undefined ? lowest : Math.min(0, lowest),
    high: seen === undefined ? highest : Math.max(seen[1], highest),
    ...found,
  };
  if (kind === 'linear' || lowest < 0 || positive.length < 0.9 * points.length) return linear;
  positive.sort((a, b) => a - b);
  const isLog = bands === undefined ? highest / positive[0] > 10 ** DECADES : dwarfsBands(highest, bands);
  if (!isLog) return linear;
  // A few zeros or a single tiny value at the start must not stretch the scale: they are drawn at its foot.
  const most = positive[Math.floor(positive.length * 0.02)];
  const foot = most / positive[0] < 30 ? positive[0] : most;
  const [low, high] =
    seen === undefined ? [foot, highest] : [Math.min(foot, seen[0]), Math.max(seen[1], highest)];
  return low < high ? { log: true, low, high, ...found } : linear;
}
