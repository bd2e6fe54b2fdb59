/** A file that is one JSON document with a run in it. */
import type { Reading } from './bytes.ts';
import { ReadError } from './errors.ts';
import { addSettings, isObject, type JsonObject, parseJson } from './json.ts';
import { type Shape, shapeOf } from './json-shape.ts';
import { addRow } from './jsonl.ts';
import { jsonCell } from './numbers.ts';
import { ObjectScanner } from './object-scanner.ts';
import { replaceRepeated } from './restarts.ts';
import { RowSink } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachPiece } from './text.ts';

/** A document has to be in memory as a whole: longer ones are no logs that a person keeps. */
const longest = 64 * 2 ** 20;

/** Reads a document into a run. */
export async function readJsonDocument(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const pieces: string[] = [];
  let length = 0;
  const ending = await forEachPiece(path, reading, piece => {
    length += piece.length;
    if (length > longest)
      throw new ReadError(
        path,
        `it is one JSON document of more than ${longest} characters: write the log as JSON lines or CSV`,
      );
    pieces.push(piece);
  });
  if (ending.cut) run.unfinished = true;
  const text = pieces.join('');
  const shape = shapeOf(parseJson(text));
  if (shape !== undefined) addShape(run, new RowSink(run), shape);
  else readObjects(text, run);
}

/** Objects one after the other, over as many lines as they take. */
function readObjects(text: string, run: RunBuilder): void {
  const sink = new RowSink(run);
  const scanner = new ObjectScanner(object => addRow(run, sink, object));
  scanner.push(text);
  if (scanner.inObject) run.unfinished = true;
  sink.finish();
  if (scanner.broken > 0) run.note(`${run.path}: ${scanner.broken} objects are damaged and are left out`);
}

/** Adds what a document holds to a run. */
function addShape(run: RunBuilder, sink: RowSink, shape: Shape): void {
  switch (shape.kind) {
    case 'rows':
      for (const row of shape.rows) addRow(run, sink, row);
      if (shape.settings !== undefined) addPlainSettings(run, shape.settings);
      sink.finish();
      break;
    case 'columns':
      addColumns(run, shape.columns);
      break;
    case 'triples':
      run.axis = 'step';
      for (const [name, points] of shape.series)
        for (const [wallTime, step, value] of points) run.number(name, step, value, wallTime);
      replaceRepeated(run);
      break;
    default:
      shape satisfies never;
  }
}

/** What stands beside the rows, but no lists. */
function addPlainSettings(run: RunBuilder, object: JsonObject): void {
  for (const [name, value] of Object.entries(object)) {
    if (isObject(value)) addSettings(run, value);
    else if (!Array.isArray(value)) addSettings(run, { [name]: value });
  }
}

/** Columns of one length are rows. One that is shorter was logged less often, over the same run: it is spread out. */
function addColumns(run: RunBuilder, columns: ReadonlyMap<string, readonly unknown[]>): void {
  const most = Math.max(...[...columns.values()].map(column => column.length));
  const short: string[] = [];
  for (const [name, column] of columns) {
    const each = most / column.length;
    if (each !== 1) short.push(name);
    column.forEach((cell, i) => {
      const value = jsonCell(cell);
      if (typeof value === 'number') run.number(name, (i + 1) * each, value);
    });
  }
  if (short.length > 0)
    run.note(
      `${short.slice(0, 3).join(', ')} ${short.length === 1 ? 'has' : 'have'} fewer values than the longest column (${most}): taken as evenly spread over the same run`,
    );
}
