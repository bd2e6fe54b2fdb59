/** Several runs in one plot: which are one line, and in which settings they differ. */
import { differencesOf } from './differing.ts';
import { lowerBound } from './envelope.ts';
import { nameOfGroup } from './overview.ts';
import { eachRun } from './view-state.ts';

export type Config = Readonly<Record<string, string | number | boolean | null>>;

/** A setting as it is shown and compared. */
export function showSetting(value: string | number | boolean | null | undefined): string {
  return value === undefined ? '' : value === null ? 'none' : String(value);
}

export interface ConfigRow {
  readonly key: string;
  /** Of each column the values that its runs have, each once; none where they do not say. */
  readonly cells: readonly (readonly (string | number | boolean | null)[])[];
  readonly differs: boolean;
}

/** Every key that any run has, with the values of each column's runs; a log that does not have a setting does not differ in it. */
export function diffConfigs(columns: readonly (readonly Config[])[]): ConfigRow[] {
  const keys = [
    ...new Set(columns.flatMap(configs => configs.flatMap(config => Object.keys(config)))),
  ].sort();
  return keys.map(key => {
    const cells = columns.map(configs => [
      ...new Set(configs.flatMap(config => (Object.hasOwn(config, key) ? [config[key]] : []))),
    ]);
    const said = new Set(cells.filter(cell => cell.length > 0).map(cell => JSON.stringify(cell)));
    return { key, cells, differs: said.size > 1 || (columns.length === 1 && cells[0].length > 1) };
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
  readonly detail: { readonly config: Config; readonly run: { readonly group: string | null } } | null;
  readonly problem: string | null;
}

/** One line of a plot: a run, or several as one. */
export interface LegendItem<T> {
  readonly label: string;
  readonly color: number;
  readonly runs: readonly T[];
}

/**
 * What the legend calls a run or a group, in the order of the colours; a run that cannot be shown is in no group. Grouped
 * by a setting; by nothing, as `*`; or, where nobody said, those together that differ only in their seed.
 */
export function legendOf<T extends Comparable>(runs: readonly T[], by: string | null): LegendItem<T>[] {
  if (by === eachRun) return runs.map((run, color) => ({ label: run.name, color, runs: [run] }));
  if (by === null) {
    const groups = new Map<string, T[]>();
    for (const [i, run] of runs.entries()) {
      const key = run.detail?.run.group ?? `run ${i}`;
      groups.set(key, [...(groups.get(key) ?? []), run]);
    }
    const named = [...groups.values()].map(members => ({
      members,
      name: members.length === 1 ? members[0].name : nameOfGroup(members.map(run => run.name)),
      settings: settingsOf(members),
    }));
    const differences = differencesOf(named);
    const labels = new Set<string>();
    return named.map(({ members, name }, color) => {
      const whole = differences[color] === null ? name : `${name}: ${differences[color]}`;
      let label = whole;
      for (let n = 2; labels.has(label); n++) label = `${whole} (${n})`;
      labels.add(label);
      return { label, color, runs: members };
    });
  }
  const items = runs
    .filter(run => run.problem === null)
    .map(run => ({ item: run, config: run.detail?.config ?? {} }));
  return groupRuns(items, by).map(({ label, items }, color) => ({ label, color, runs: items }));
}

/** What runs that differ only in their seed have in common. */
const settingsOf = ([run]: readonly Comparable[]): ReadonlyMap<string, string> =>
  new Map(Object.entries(run?.detail?.config ?? {}).map(([key, value]) => [key, showSetting(value)]));

/** What of the grouping cannot be followed, as sentences: runs that are not there, and a setting that none has. */
export function groupProblems(runs: readonly Comparable[], by: string | null): string[] {
  if (by === null || by === eachRun) return [];
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
