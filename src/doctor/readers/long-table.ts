/** Long tables: `step,metric,value`, one point a row, perhaps of several runs. */
import { basename } from 'node:path';
import type { Reading } from './bytes.ts';
import { headerDelimiter, splitFields } from './csv.ts';
import { noNumber, readNumber } from './numbers.ts';
import { replaceRepeated } from './restarts.ts';
import { clockOf } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';

/** What a column is, by the names that people give it. */
const columns: Readonly<Record<'step' | 'metric' | 'value' | 'time' | 'run', RegExp>> = {
  step: /^(?:global_?)?(?:step|timestep|iteration|iter|epoch|update|episode)s?$/i,
  metric: /^(?:metric|metric_?name|name|tag|key|variable)$/i,
  value: /^(?:value|val|metric_?value|y)$/i,
  time: /^(?:wall_?time|timestamp|time)$/i,
  run: /^(?:run|run_?(?:id|name|uuid)|experiment|trial|seed|algo|algorithm|env|env_id)$/i,
};

const mostRuns = 1024;

interface Layout {
  readonly delimiter: string;
  readonly width: number;
  readonly step: number;
  readonly metric: number;
  readonly value: number;
  readonly time: number;
  readonly runs: readonly number[];
}

function layoutOf(header: string): Layout | undefined {
  const delimiter = headerDelimiter(header);
  if (delimiter === undefined) return undefined;
  const names = splitFields(header, delimiter).map(name => name.trim());
  const only = (pattern: RegExp): number => names.findIndex(name => pattern.test(name));
  const [step, metric, value] = [only(columns.step), only(columns.metric), only(columns.value)];
  if (step < 0 || metric < 0 || value < 0) return undefined;
  const runs = names.flatMap((name, i) => (columns.run.test(name) && i !== metric ? [i] : []));
  const time = only(columns.time);
  // Another column would be another thing that a row says.
  if (
    3 + runs.length + (time < 0 ? 0 : 1) + names.filter((name, i) => i === 0 && name === '').length <
    names.length
  )
    return undefined;
  return { delimiter, width: names.length, step, metric, value, time, runs };
}

/** Whether a text begins as such a table does: its metrics are names. */
export function isLongTable(lines: readonly string[]): boolean {
  const layout = layoutOf(lines[0] ?? '');
  if (layout === undefined) return false;
  const rows = lines
    .slice(1, 50)
    .filter(line => line !== '')
    .map(line => splitFields(line, layout.delimiter));
  return (
    rows.length > 1 &&
    rows[0].length === layout.width &&
    readNumber(rows[0][layout.metric]) === noNumber &&
    typeof readNumber(rows[0][layout.step]) === 'number'
  );
}

const runOf = (fields: readonly string[], { runs }: Layout): string =>
  runs.map(i => fields[i].trim()).join(' ');

/** Calls `row` for each row, with its run's name. */
async function forEachRow(
  path: string,
  reading: Reading,
  run: RunBuilder,
  row: (name: string, fields: readonly string[], layout: Layout) => void,
): Promise<void> {
  let layout: Layout | undefined;
  let left = 0;
  const half = await forEachLine(path, reading, run, (line, whole) => {
    if (line === '') return;
    if (layout === undefined) {
      layout = layoutOf(line);
      return;
    }
    const fields = splitFields(line, layout.delimiter);
    // Digits of the last value may still be to come.
    if (fields.length !== layout.width || !whole) {
      if (whole) left++;
      return;
    }
    row(runOf(fields, layout), fields, layout);
  });
  if (half) run.unfinished = true;
  if (left > 0) run.damage(`${path}: ${left} rows do not have as many fields as the header and are left out`);
}

/** The runs of a table, by name; one without a name where it has no column for them. */
export async function longRuns(path: string, reading: Reading, scratch: RunBuilder): Promise<string[]> {
  const names = new Set<string>();
  await forEachRow(path, reading, scratch, name => {
    if (names.size < mostRuns) names.add(name);
  });
  return [...names];
}

/** Reads one run of a table. */
export async function readLongTable(
  path: string,
  name: string,
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  let broken = 0;
  await forEachRow(path, reading, run, (own, fields, { step, metric, value, time }) => {
    if (own !== name) return;
    const [x, y] = [readNumber(fields[step]), readNumber(fields[value])];
    if (typeof x === 'number' && Number.isFinite(x) && typeof y === 'number')
      run.number(fields[metric].trim(), x, y, time < 0 ? Number.NaN : clockOf(readNumber(fields[time])));
    else if (y === noNumber || typeof x !== 'number') broken++;
  });
  if (broken > 0)
    run.damage(`${basename(path)}: ${broken} rows are not a step and a number and are left out`);
  replaceRepeated(run);
}
