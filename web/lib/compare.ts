/** Several runs in one plot: grouped by a setting, brought to one x, averaged with their spread. */
import { type Line, lowerBound } from './envelope.ts';

export type Config = Readonly<Record<string, string | number | boolean | null>>;

/** A setting as it is shown and compared. */
export function showSetting(value: string | number | boolean | null | undefined): string {
  return value === undefined ? '' : value === null ? 'none' : String(value);
}

export interface ConfigRow {
  readonly key: string;
  readonly values: readonly (string | number | boolean | null | undefined)[];
  readonly differs: boolean;
}

/** Every key that any run has, with all values; those that differ are marked. */
export function diffConfigs(configs: readonly Config[]): ConfigRow[] {
  const keys = [...new Set(configs.flatMap(config => Object.keys(config)))].sort();
  return keys.map(key => {
    const values = configs.map(config => (Object.hasOwn(config, key) ? config[key] : undefined));
    return {
      key,
      values,
      differs: new Set(values.map(v => (v === undefined ? ' ' : JSON.stringify(v)))).size > 1,
    };
  });
}

/** Runs by the value of a setting, in the order of the values; `seed` apart, that is what spread is taken over. */
export function groupRuns<T>(
  items: readonly { readonly item: T; readonly config: Config }[],
  key: string,
): { label: string; items: T[] }[] {
  const groups = new Map<string, { value: string | number | boolean | null | undefined; items: T[] }>();
  for (const { item, config } of items) {
    const value = Object.hasOwn(config, key) ? config[key] : undefined;
    const label = value === undefined ? `without ${key}` : `${key} ${showSetting(value)}`;
    const group = groups.get(label) ?? { value, items: [] };
    group.items.push(item);
    groups.set(label, group);
  }
  return [...groups]
    .sort(([, a], [, b]) =>
      typeof a.value === 'number' && typeof b.value === 'number'
        ? a.value - b.value
        : showSetting(a.value).localeCompare(showSetting(b.value), 'en', { numeric: true }),
    )
    .map(([label, { items }]) => ({ label, items }));
}

/** A run as far as it is known: without `detail` while it loads, and with a `problem` if it cannot. */
export interface Comparable {
  readonly name: string;
  readonly detail: { readonly config: Config } | null;
  readonly problem: string | null;
}

/** What the legend calls a run or a group, in the order of the colours; a run that cannot be shown is in no group. */
export function legendOf<T extends Comparable>(
  runs: readonly T[],
  by: string | null,
): { label: string; color: number; runs: readonly T[] }[] {
  if (by === null) return runs.map((run, color) => ({ label: run.name, color, runs: [run] }));
  const items = runs
    .filter(run => run.problem === null)
    .map(run => ({ item: run, config: run.detail?.config ?? {} }));
  return groupRuns(items, by).map(({ label, items }, color) => ({ label, color, runs: items }));
}

/** What of the grouping cannot be followed, as sentences: runs that are not there, and a setting that none has. */
export function groupProblems(runs: readonly Comparable[], by: string | null): string[] {
  if (by === null) return [];
  const problems = runs.filter(r => r.problem !== null).map(r => `“${r.name}” is left out: ${r.problem}.`);
  const there = runs.filter(run => run.problem === null);
  if (there.length > 0 && there.every(run => run.detail !== null && !Object.hasOwn(run.detail.config, by)))
    problems.push(`None of these runs has a setting “${by}” to group by.`);
  return problems;
}

/** A line's value between its points; null beyond its ends, so that a short run is not drawn on. */
export function valueAt(xs: readonly number[], values: readonly (number | null)[], x: number): number | null {
  const i = lowerBound(xs, x);
  if (i === xs.length) return null;
  if (xs[i] === x) return values[i] ?? null;
  if (i === 0) return null;
  const a = values[i - 1];
  const b = values[i];
  if (a === null || a === undefined || b === null || b === undefined) return null;
  return a + ((b - a) * (x - xs[i - 1])) / (xs[i] - xs[i - 1]);
}

export interface Spread {
  readonly x: number[];
  readonly mean: (number | null)[];
  /** Mean ± one standard deviation (of the sample) of the runs; equal to the mean where there is one run. */
  readonly low: (number | null)[];
  readonly high: (number | null)[];
  /** How many runs reach that far. */
  readonly runs: number[];
}

/** Mean and spread over runs, at `points` places from the first to the last x of any of them. */
export function spreadOver(lines: readonly Pick<Line, 'x' | 'mean'>[], points = 400): Spread {
  const spread: Spread = { x: [], mean: [], low: [], high: [], runs: [] };
  const some = lines.filter(line => line.x.length > 0);
  if (some.length === 0) return spread;
  const from = Math.min(...some.map(line => line.x[0]));
  const to = Math.max(...some.map(line => line.x.at(-1)!));
  const n = to > from ? points : 1;
  for (let i = 0; i < n; i++) {
    const x = n === 1 ? from : i === n - 1 ? to : from + ((to - from) * i) / (n - 1);
    const values = some.map(line => valueAt(line.x, line.mean, x)).filter(v => v !== null);
    spread.x.push(x);
    spread.runs.push(values.length);
    if (values.length === 0) {
      spread.mean.push(null);
      spread.low.push(null);
      spread.high.push(null);
      continue;
    }
    const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
    const variance =
      values.length < 2 ? 0 : values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1);
    spread.mean.push(mean);
    spread.low.push(mean - Math.sqrt(variance));
    spread.high.push(mean + Math.sqrt(variance));
  }
  return spread;
}
