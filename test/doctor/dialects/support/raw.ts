/** Makes a read run out of plain rows, as a reader would, without any reader. */
import type { RawRun } from '../../../../src/doctor/raw-run.ts';
import type { Series } from '../../../../src/doctor/series.ts';

function points(x: readonly number[], values: readonly number[]): Series {
  return {
    length: x.length,
    count: x.length,
    x: Float64Array.from(x),
    values: Float64Array.from(values),
    min: Float64Array.from(values),
    max: Float64Array.from(values),
    broken: Uint32Array.from(values, value => (Number.isFinite(value) ? 0 : 1)),
    wallTime: new Float64Array(x.length).fill(Number.NaN),
  };
}

type Row = Readonly<Record<string, number | undefined>>;

const empty: Omit<RawRun, 'series' | 'axis' | 'format'> = {
  path: 'run',
  files: [],
  config: new Map(),
  texts: new Map(),
  restarts: [],
  notes: [],
  unfinished: false,
};

/** A table: x is the row, a cell that is left out is missing. */
export function table(rows: readonly Row[], more: Partial<RawRun> = {}): RawRun {
  const columns = new Map<string, [number[], number[]]>();
  rows.forEach((row, i) => {
    for (const [name, value] of Object.entries(row)) {
      if (value === undefined) continue;
      if (!columns.has(name)) columns.set(name, [[], []]);
      columns.get(name)![0].push(i);
      columns.get(name)![1].push(value);
    }
  });
  const series = new Map([...columns].map(([name, [x, values]]) => [name, points(x, values)]));
  return { ...empty, format: 'csv', axis: 'row', series, ...more };
}

/** An event file: for each tag its steps and values. */
export function events(
  tags: Readonly<Record<string, readonly (readonly [step: number, value: number])[]>>,
  more: Partial<RawRun> = {},
): RawRun {
  const series = new Map(
    Object.entries(tags).map(([name, list]) => [
      name,
      points(
        list.map(([step]) => step),
        list.map(([, value]) => value),
      ),
    ]),
  );
  return { ...empty, format: 'tensorboard', axis: 'step', series, ...more };
}

/** The same names in every row, with values that differ a little, for tests that only look where names land. */
export function named(names: readonly string[], rows = 3): RawRun {
  return table(
    Array.from({ length: rows }, (_, i) => Object.fromEntries(names.map(name => [name, 0.5 + 0.01 * i]))),
  );
}
