/** Runs that a tracker keeps in an SQLite database: MLflow's (`mlflow.db`) and trackio's (one file a project). */
import type { Reading } from './bytes.ts';
import { ReadError } from './errors.ts';
import { addSettings, forEachLeaf, isObject, parseJson } from './json.ts';
import { typed } from './markdown-table.ts';
import { renumberUnstepped } from './mlflow.ts';
import { jsonCell } from './numbers.ts';
import { replaceRepeated } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';
import { Database, type Tree, type Value } from './sqlite.ts';

/** Which run of which kind of store. */
export interface StoredRun {
  readonly store: 'mlflow' | 'trackio';
  /** What the store finds it by, and what a user calls it. */
  readonly id: string;
  readonly name: string;
}

const mostRuns = 10_000;

type Row = (name: string) => Value | undefined;

const reader = ({ columns }: Tree) => {
  const places = new Map(columns.map((name, i) => [name, i]));
  return (values: readonly Value[]): Row =>
    name => {
      const at = places.get(name);
      return at === undefined ? undefined : (values[at] ?? null);
    };
};

const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : '');

/** Whose table `metrics` it is. */
function storeOf(metrics: Tree | undefined): StoredRun['store'] | undefined {
  if (metrics === undefined) return undefined;
  const has = (...names: readonly string[]): boolean => names.every(name => metrics.columns.includes(name));
  if (has('key', 'value', 'run_uuid', 'step')) return 'mlflow';
  return has('run_name', 'step', 'metrics') ? 'trackio' : undefined;
}

/** The runs in a database; a {@link ReadError} where it keeps something else. */
export function storedRuns(path: string): StoredRun[] {
  const database = new Database(path);
  try {
    const metrics = database.table('metrics');
    const store = storeOf(metrics);
    if (metrics === undefined || store === undefined) {
      const tables = database.tableNames.slice(0, 5).join(', ');
      throw new ReadError(
        path,
        `looked for the runs of MLflow or trackio, and found an SQLite database with the tables ${tables === '' ? '(none)' : tables}: export the log as CSV or JSON lines`,
        { isNoLog: true },
      );
    }
    return unique(store === 'mlflow' ? mlflowRuns(database) : trackioRuns(database, metrics));
  } finally {
    database.close();
  }
}

function mlflowRuns(database: Database): StoredRun[] {
  const table = database.table('runs');
  const runs: StoredRun[] = [];
  if (table === undefined) return runs;
  const read = reader(table);
  for (const values of database.rows(table)) {
    const row = read(values);
    const id = textOf(row('run_uuid'));
    if (id !== '' && row('lifecycle_stage') !== 'deleted')
      runs.push({ store: 'mlflow', id, name: textOf(row('name')) || id });
    if (runs.length >= mostRuns) break;
  }
  return runs;
}

function trackioRuns(database: Database, metrics: Tree): StoredRun[] {
  const names = new Set<string>();
  const read = reader(metrics);
  for (const values of database.rows(metrics)) {
    const name = textOf(read(values)('run_name'));
    if (name !== '' && names.size < mostRuns) names.add(name);
  }
  return [...names].map(name => ({ store: 'trackio', id: name, name }));
}

/** MLflow names two runs alike if asked to: those are called by their ids. */
function unique(runs: readonly StoredRun[]): StoredRun[] {
  const counts = new Map<string, number>();
  for (const { name } of runs) counts.set(name, (counts.get(name) ?? 0) + 1);
  return runs.map(run => (counts.get(run.name) === 1 ? run : { ...run, name: `${run.name} ${run.id}` }));
}

/** Reads one run of a database. */
export async function readStoredRun(
  path: string,
  { store, id }: StoredRun,
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  const database = new Database(path);
  try {
    const metrics = database.table('metrics');
    if (metrics === undefined) throw new ReadError(path, 'its metrics are gone: search again');
    let rows = 0;
    const each = async (table: Tree | undefined, column: string, use: (row: Row) => void): Promise<void> => {
      if (table === undefined || !table.columns.includes(column)) return;
      const read = reader(table);
      for (const values of database.rowsWith(table, column, id)) {
        use(read(values));
        if (++rows % 1024 === 0) await reading.breathe();
      }
    };
    if (store === 'mlflow') {
      await each(metrics, 'run_uuid', row => addPoint(run, row));
      renumberUnstepped(run);
      await each(database.table('params'), 'run_uuid', row =>
        run.setting(textOf(row('key')), typed(textOf(row('value')).trim())),
      );
    } else {
      await each(metrics, 'run_name', row => addMetrics(run, row));
      await each(database.table('configs'), 'run_name', row => {
        const config = parseJson(textOf(row('config')));
        if (isObject(config)) addSettings(run, config);
      });
    }
  } finally {
    database.close();
  }
  replaceRepeated(run);
}

/** A row of MLflow: one value. */
function addPoint(run: RunBuilder, row: Row): void {
  const [key, step, time] = [textOf(row('key')), row('step'), row('timestamp')];
  const value = row('is_nan') === 1 ? Number.NaN : row('value');
  if (key !== '' && typeof value === 'number' && typeof step === 'number')
    run.number(key, step, value, typeof time === 'number' ? time / 1000 : Number.NaN);
}

/** A row of trackio: what was logged at once, as JSON. */
function addMetrics(run: RunBuilder, row: Row): void {
  const [step, metrics] = [row('step'), parseJson(textOf(row('metrics')))];
  if (typeof step !== 'number' || !isObject(metrics)) return;
  const time = Date.parse(textOf(row('timestamp'))) / 1000;
  forEachLeaf(metrics, (name, value) => {
    const cell = jsonCell(value);
    if (typeof cell === 'number') run.number(name, step, cell, time);
  });
}
