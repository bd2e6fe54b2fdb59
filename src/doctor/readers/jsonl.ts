/**
 * Lines of JSON objects: SB3's `progress.json`, RLlib's `result.json`, verl's file, Keel's `metrics.jsonl`, any other.
 * Also a document that is a list of such objects.
 */
import type { Reading } from './bytes.ts';
import { addSettings, forEachLeaf, isObject, type JsonObject, parseJson } from './json.ts';
import { jsonCell, noNumber } from './numbers.ts';
import { RowSink, type Rows } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';

/** Adds one object to a table, as a row. */
export function addRow(run: RunBuilder, sink: Rows, object: JsonObject): void {
  let row = object;
  if (isObject(row.config)) {
    // RLlib repeats it in each row; it does not change.
    if (sink.rows === 0) addSettings(run, row.config);
    const { config: _, ...rest } = row;
    row = rest;
  }
  // verl: {"step": 1, "data": {…}}
  if (isObject(row.data) && typeof row.step === 'number' && Object.keys(row).length === 2) {
    row = { step: row.step, ...row.data };
  }
  forEachLeaf(row, (name, value) => {
    const cell = jsonCell(value);
    if (typeof cell === 'number') sink.number(name, cell);
    else if (value === null) sink.blank(name);
    else if (cell === noNumber && typeof value === 'string') sink.text(name, value);
  });
  sink.end();
}

/** Reads a file of JSON lines into a run; returns how many rows it has. */
export async function readJsonLines(path: string, run: RunBuilder, reading: Reading): Promise<number> {
  const sink = new RowSink(run);
  let broken = 0;
  await forEachLine(path, reading, run, (line, whole) => {
    if (line === '' || line.trim() === '') return;
    const value = parseJson(line);
    if (!isObject(value)) {
      // An object that ends in its brace is whole even without a line break; this one is not.
      if (whole) broken++;
      else run.unfinished = true;
      return;
    }
    addRow(run, sink, value);
  });
  sink.finish();
  if (broken > 0) {
    const which =
      broken === 1 ? 'one line is no JSON object and is' : `${broken} lines are not JSON objects and are`;
    run.damage(`${path}: ${which} left out`);
  }
  return sink.rows;
}
