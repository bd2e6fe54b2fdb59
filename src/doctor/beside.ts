/** A run beside one that is well: which settings differ, and from which step on the series do. */
import { wayOf } from './fixes.ts';
import type { Beside, Parting, SettingApart } from './report/beside-words.ts';
import { settingValue } from './report/figures.ts';
import type { Plot, PlotPoint } from './report/plot.ts';
import { presentable } from './report/presentable.ts';
import type { RunReport } from './report/run-report.ts';
import { median } from './statistics/order.ts';

/** How it is told whether two series have parted. */
const limits = {
  /** Places at which both are compared. */
  places: 120,
  /** Neighbours that a value is the median of. */
  window: 5,
  /** Apart by so many times the noise of both together … */
  noises: 4,
  /** … and by this share of all the room that both take … */
  share: 0.05,
  /** … at so many places on end. */
  run: 4,
} as const;

/** What tells runs of one setting apart, and says nothing of what they do. */
const own = /(?:^|[/._])(?:seed|name|id|(?:log|output|save)_?dir|tensorboard_log|path|device)$/i;
export const isOwn = (name: string): boolean => own.test(name);

/** Both reports are of whole logs. */
export function besideOf(raw: RunReport, other: RunReport): Beside {
  const [a, b] = [presentable(raw), presentable(other)];
  const isOneAxis = a.unit === b.unit;
  const pairs = isOneAxis
    ? a.plots.flatMap(plot => {
        const to = b.plots.find(({ metric }) => metric === plot.metric);
        return to === undefined || plot.metric.startsWith('time/') ? [] : [[plot, to] as const];
      })
    : [];
  return {
    path: b.diagnosis.path,
    verdict: b.diagnosis.verdict,
    settings: settingsApart(a, b),
    partings: pairs
      .flatMap(([one, two]) => partingOf(one, two) ?? [])
      .sort((one, two) => one.step - two.step),
    compared: pairs.map(([{ metric }]) => metric),
  };
}

/** By the names that Keel knows, and of one trainer by all that its logs have. */
function settingsApart(a: RunReport, b: RunReport): SettingApart[] {
  const [mine, theirs] = [a.diagnosis.understood.settings, b.diagnosis.understood.settings];
  const out: SettingApart[] = [];
  const advised = (a.diagnosis.findings[0]?.fixes ?? []).flatMap(fix =>
    fix.kind === 'setting' ? fix.changes : [],
  );
  for (const { setting, name, value } of mine) {
    const to = theirs.find(one => one.setting === setting);
    if (to === undefined || to.value === value || isOwn(name)) continue;
    const change = advised.find(one => one.setting === setting);
    const isAgainst = change !== undefined && wayOf(value, change.value) * wayOf(value, to.value) < 0;
    out.push({
      name,
      value: settingValue(value),
      otherName: to.name,
      other: settingValue(to.value),
      ...(setting === 'task' && { isTask: true }),
      ...(isAgainst && { isAdvisedAgainst: true }),
    });
  }
  if (a.diagnosis.trainer !== b.diagnosis.trainer) return out;
  const others = new Map(b.log?.settings ?? []);
  const known = new Set(mine.map(({ name }) => name));
  for (const [name, value] of a.log?.settings ?? []) {
    const to = others.get(name);
    if (to !== undefined && to !== value && !known.has(name) && !isOwn(name))
      out.push({ name, value, otherName: name, other: to });
  }
  return out;
}

/** The first place from which on two series differ by more than the noise of both. */
function partingOf(a: Plot, b: Plot): Parting | undefined {
  const isLog = a.log && b.log;
  const place = (points: readonly PlotPoint[]): PlotPoint[] =>
    points
      .filter(({ mean }) => Number.isFinite(mean) && !(isLog && mean <= 0))
      .map(point => (isLog ? { ...point, mean: Math.log(point.mean) } : point))
      .sort((one, two) => one.x - two.x);
  const [one, two] = [place(a.points), place(b.points)];
  if (one.length < 2 * limits.window || two.length < 2 * limits.window) return undefined;
  const from = Math.max(one[0].x, two[0].x);
  const to = Math.min(one.at(-1)!.x, two.at(-1)!.x);
  if (!(to > from)) return undefined;
  const noise = Math.hypot(noiseOf(one), noiseOf(two));
  const values = [...one, ...two].map(({ mean }) => mean);
  const room =
    values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY) -
    values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const least = Math.max(limits.noises * noise, limits.share * room);
  const back = (value: number): number => Number((isLog ? Math.exp(value) : value).toPrecision(6));
  let [apart, first] = [0, undefined as Parting | undefined];
  for (let i = 0; i < limits.places; i++) {
    const x = from + ((to - from) * i) / (limits.places - 1);
    const [value, other] = [around(one, x), around(two, x)];
    if (!(Math.abs(value - other) > least)) {
      [apart, first] = [0, undefined];
      continue;
    }
    first ??= {
      metric: a.metric,
      theirs: a.theirs,
      step: Math.round(x),
      value: back(value),
      other: back(other),
    };
    if (++apart >= limits.run) return first;
  }
  return undefined;
}

/** How far a value lies from the one before, without what the series does as a whole. */
function noiseOf(points: readonly PlotPoint[]): number {
  const steps = points.slice(1).map(({ mean }, i) => mean - points[i].mean);
  const middle = median(steps);
  return (1.4826 * median(steps.map(step => Math.abs(step - middle)))) / Math.SQRT2;
}

/** The median of the points that are nearest. */
function around(points: readonly PlotPoint[], x: number): number {
  const after = points.findIndex(point => point.x >= x);
  const at = after < 0 ? points.length - 1 : after;
  const start = Math.min(Math.max(0, at - Math.floor(limits.window / 2)), points.length - limits.window);
  return median(points.slice(start, start + limits.window).map(({ mean }) => mean));
}

/** Of a whole log, what is drawn: the first to part, then what the findings cite and anyone asks for. */
export function plotsBeside({ plots }: RunReport, { partings }: Beside): readonly Plot[] {
  const first = partings
    .slice(0, 2)
    .flatMap(({ metric }) => plots.find(plot => plot.metric === metric) ?? []);
  return [...first, ...plots.filter(plot => !first.includes(plot))].slice(0, 6);
}
