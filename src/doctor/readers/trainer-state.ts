/** Hugging Face's `trainer_state.json`: a document with a list of rows in it. Also a document that is such a list. */
import type { Reading } from './bytes.ts';
import { ReadError } from './errors.ts';
import { asSetting, isObject, parseJson } from './json.ts';
import { addRow } from './jsonl.ts';
import { ObjectScanner } from './object-scanner.ts';
import { RowSink } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachPiece } from './text.ts';

/** What is before and after the list has a few hundred characters; `best_model_checkpoint` may be a long path. */
const longestRest = 2 ** 20;
const listStart = /"log_history"\s*:\s*\[/;

/** Reads a trainer's state into a run: its history as rows, the rest as settings. */
export async function readTrainerState(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const sink = new RowSink(run);
  const scanner = new ObjectScanner(object => addRow(run, sink, object));
  let before = '';
  let after = '';
  let where = 'before' as 'before' | 'list' | 'after';
  const ending = await forEachPiece(path, reading, piece => {
    let text = piece;
    if (where === 'before') {
      before += text;
      const found = listStart.exec(before);
      if (found === null) {
        if (before.length > longestRest)
          throw new ReadError(path, `no log_history within its first ${longestRest} characters`);
        return;
      }
      where = 'list';
      text = before.slice(found.index + found[0].length);
      before = before.slice(0, found.index);
    }
    if (where === 'list') {
      const end = scanner.push(text);
      if (end < 0) return;
      where = 'after';
      text = text.slice(end);
    }
    if (after.length < longestRest) after += text;
  });
  if (where !== 'after' || ending.cut) run.unfinished = true;
  if (ending.problem !== undefined) run.note(`${path}: ${ending.problem}: what came before it is read`);
  sink.finish();
  if (scanner.broken > 0)
    run.note(`${path}: ${scanner.broken} rows of its log_history are damaged and are left out`);
  const rest = parseJson(`${before}"log_history":[]${where === 'after' ? after : '}'}`);
  if (!isObject(rest)) return;
  for (const [name, value] of Object.entries(rest)) {
    if (typeof value !== 'object' && value !== undefined) run.setting(name, asSetting(value));
  }
}

/** Reads a document that is a list of objects. */
export async function readJsonList(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const sink = new RowSink(run);
  const scanner = new ObjectScanner(object => addRow(run, sink, object));
  let where = 'before' as 'before' | 'list' | 'after';
  const ending = await forEachPiece(path, reading, piece => {
    if (where === 'after') return;
    let start = 0;
    if (where === 'before') {
      const at = piece.indexOf('[');
      if (at < 0) return;
      where = 'list';
      start = at + 1;
    }
    if (scanner.push(piece, start) >= 0) where = 'after';
  });
  if (where !== 'after' || ending.cut) run.unfinished = true;
  if (ending.problem !== undefined) run.note(`${path}: ${ending.problem}: what came before it is read`);
  sink.finish();
  if (scanner.broken > 0) run.note(`${path}: ${scanner.broken} entries are damaged and are left out`);
}
