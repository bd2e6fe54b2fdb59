/**
 * What the page of a report draws: for each metric a line a run, and a line a group of runs that differ only in their seed. It
 * is bounded whatever the logs are, and no extreme value is lost: a point has the lowest and the highest of what it stands for.
 */
import { isOwn } from '../doctor/beside.ts';
import { merged, type Plot, type PlotPoint } from '../doctor/report/plot.ts';
import { presentable } from '../doctor/report/presentable.ts';
import type { RunReport } from '../doctor/report/run-report.ts';
import { axisMetrics } from '../metrics/objectives.ts';
import { aggregate, bootstrapInterval } from '../studies/statistics.ts';

/** Points of all lines together, about 30 bytes each, and of a line. */
const POINTS = { all: 120_000, most: 400, least: 40, group: 120 } as const;
/** It is drawn, not read to the last digit. */
const RESAMPLES = 200;

/** Columns of numbers; null where none was finite. `n` is how many runs there are, in a line of a group. */
export interface FigureLine {
  /** The place of its run, or of its group. */
  readonly of: number;
  readonly x: readonly number[];
  readonly mean: readonly (number | null)[];
  readonly min: readonly (number | null)[];
  readonly max: readonly (number | null)[];
  readonly n?: readonly number[];
  /** In a line of a group: the largest of all that its runs have there. */
  readonly peak?: readonly (number | null)[];
}

export interface Figure {
  readonly metric: string;
  readonly title: string;
  /** The names in the logs. */
  readonly theirs: readonly string[];
  readonly log: boolean;
  readonly levels: Plot['levels'];
  readonly bands: readonly { readonly from: number; readonly to: number | null; readonly tone: string }[];
  readonly runs: readonly FigureLine[];
  readonly groups: readonly FigureLine[];
}

/** A stretch to look at. */
export interface FigureFinding {
  readonly text: string;
  readonly severity: string;
  readonly metrics: readonly string[];
  readonly from: number;
  readonly to: number;
}

export interface FigureRun {
  readonly name: string;
  readonly group: number;
  readonly findings: readonly FigureFinding[];
  readonly events: readonly { readonly step: number; readonly text: string }[];
}

export interface Figures {
  readonly unit: string;
  readonly runs: readonly FigureRun[];
  readonly groups: readonly string[];
  readonly metrics: readonly Figure[];
}

export function figuresOf(raw: readonly RunReport[], names: readonly string[]): Figures {
  const reports = raw.map(report => presentable(report));
  const groups = groupsOf(reports);
  const ids = [...new Set(reports.flatMap(({ plots }) => plots.map(({ metric }) => metric)))].filter(
    id => !axisMetrics.includes(id),
  );
  const lines = reports.reduce((sum, { plots }) => sum + plots.length, 0);
  const points = Math.min(POINTS.most, Math.max(POINTS.least, Math.floor(POINTS.all / Math.max(1, lines))));
  const units = [...new Set(reports.map(({ unit }) => unit))];
  return {
    unit: units.length === 1 ? units[0] : 'each by its own count',
    runs: reports.map((report, i) =>
      figureRun(
        report,
        names[i],
        groups.findIndex(group => group.includes(i)),
      ),
    ),
    groups: groups.map(group => groupName(group.map(i => names[i]))),
    metrics: ids.map(id => figureOf(id, reports, groups, points)),
  };
}

function figureRun(report: RunReport, name: string, group: number): FigureRun {
  return {
    name,
    group,
    findings: report.diagnosis.findings.map(({ title, severity, from, to, marks }) => ({
      text: title,
      severity,
      metrics: [...new Set(marks.map(({ metric }) => metric))],
      from,
      to,
    })),
    events: (report.log?.events ?? []).map(({ step, kind, message }) => ({
      step,
      text: `${kind}: ${message}`,
    })),
  };
}

/** Places of runs that differ only in their seed; a run whose settings are not known stands alone. */
function groupsOf(reports: readonly RunReport[]): number[][] {
  const groups = new Map<string, number[]>();
  reports.forEach(({ diagnosis, log, unit }, i) => {
    const settings = (log?.settings ?? []).filter(([name]) => !isOwn(name));
    const key =
      settings.length === 0
        ? `alone ${i}`
        : JSON.stringify([diagnosis.trainer, unit, [...settings].sort(([a], [b]) => (a < b ? -1 : 1))]);
    groups.set(key, [...(groups.get(key) ?? []), i]);
  });
  return [...groups.values()];
}

const groupName = (names: readonly string[]): string =>
  names.length === 1
    ? names[0]
    : `${names[0]} and ${names.length - 1} other ${names.length === 2 ? 'seed' : 'seeds'}`;

function figureOf(
  id: string,
  reports: readonly RunReport[],
  groups: readonly (readonly number[])[],
  points: number,
): Figure {
  const plots = reports.map(({ plots }) => plots.find(({ metric }) => metric === id));
  const there = plots.filter(plot => plot !== undefined);
  const [first] = there;
  return {
    metric: id,
    title: first.title,
    theirs: [...new Set(there.map(({ theirs }) => theirs))].slice(0, 5),
    log: there.some(({ log }) => log),
    // A bound of one run says nothing of another.
    levels: there.length === 1 ? first.levels : [],
    bands: (first.bands ?? []).map(({ from, to, tone }) => ({
      from,
      to: Number.isFinite(to) ? to : null,
      tone,
    })),
    runs: plots.flatMap((plot, i) => (plot === undefined ? [] : [lineOf(merged(plot.points, points), i)])),
    groups: groups.flatMap((group, i) => {
      const members = group.flatMap(at => plots[at] ?? []);
      return group.length < 2 || members.length === 0 ? [] : [groupLine(members, i)];
    }),
  };
}

/** Six digits are more than any screen shows. */
const short = (value: number): number | null =>
  Number.isFinite(value) ? Number(value.toPrecision(6)) : null;

const lineOf = (points: readonly PlotPoint[], of: number): FigureLine => ({
  of,
  x: points.map(({ x }) => Number(x.toPrecision(12))),
  mean: points.map(({ mean }) => short(mean)),
  min: points.map(({ min }) => short(min)),
  max: points.map(({ max }) => short(max)),
});

/** The interquartile mean at each place, its bootstrapped interval, and how many runs reach so far. */
function groupLine(members: readonly Plot[], of: number): FigureLine {
  const some = members.map(({ points }) => points.filter(({ mean }) => Number.isFinite(mean)));
  const reaching = some.filter(points => points.length > 0);
  const line = {
    of,
    x: [] as number[],
    mean: [] as (number | null)[],
    min: [] as (number | null)[],
    max: [] as (number | null)[],
    n: [] as number[],
    peak: [] as (number | null)[],
  };
  if (reaching.length === 0) return line;
  const from = Math.min(...reaching.map(points => points[0].x));
  const to = Math.max(...reaching.map(points => points.at(-1)!.x));
  const step = (to - from) / (POINTS.group - 1);
  for (let i = 0; i < (step > 0 ? POINTS.group : 1); i++) {
    const x = from + i * step;
    const values = reaching.map(points => valueAt(points, x, step)).filter(value => value !== undefined);
    const figure = aggregate('iqm', values);
    const interval =
      values.length < 2
        ? { low: figure, high: figure }
        : bootstrapInterval(values, { resamples: RESAMPLES, of: 'iqm' });
    line.x.push(Number(x.toPrecision(12)));
    line.mean.push(short(figure));
    line.min.push(short(interval.low));
    line.max.push(short(interval.high));
    line.n.push(values.length);
    line.peak.push(short(peakAt(reaching, x, step)));
  }
  return line;
}

/** The largest value of all points that are nearer to this place than to the next ones; -infinity where there is none. */
function peakAt(lines: readonly (readonly PlotPoint[])[], x: number, step: number): number {
  let peak = Number.NEGATIVE_INFINITY;
  for (const points of lines) {
    for (const point of points) if (Math.abs(point.x - x) <= step / 2) peak = Math.max(peak, point.max);
  }
  return peak;
}

/** Between two points, on the line that joins them; outside of all, within a step, the nearest one. */
function valueAt(points: readonly PlotPoint[], x: number, step: number): number | undefined {
  const [first, last] = [points[0], points.at(-1)!];
  if (x < first.x) return first.x - x <= step ? first.mean : undefined;
  if (x > last.x) return x - last.x <= step ? last.mean : undefined;
  const after = points.findIndex(point => point.x >= x);
  const [left, right] = [points[Math.max(0, after - 1)], points[after]];
  if (right.x === left.x) return right.mean;
  const share = (x - left.x) / (right.x - left.x);
  return left.mean * (1 - share) + right.mean * share;
}
