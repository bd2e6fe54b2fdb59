/** All series of a run as CSV, a row at a time: nothing is held but a portion of text. */
import { closeSync, createReadStream, existsSync, openSync } from 'node:fs';
import { Readable } from 'node:stream';
import { decodeRow } from '../../metrics/row.ts';
import { runPaths } from '../../runs/layout.ts';
import { KeelRun } from '../runs/keel-run.ts';
import type { PlacedColumn, WatchedRun } from '../runs/run.ts';

const portion = 2 ** 16;

export function csvOf(run: WatchedRun): ReadableStream<Uint8Array> {
  const lines = run instanceof KeelRun ? keelLines(run) : foreignLines(run.tracks());
  return Readable.toWeb(Readable.from(portions(lines))) as ReadableStream<Uint8Array>;
}

async function* portions(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let text = '';
  for await (const line of lines) {
    text += `${line}\r\n`;
    if (text.length > portion) {
      yield Buffer.from(text);
      text = '';
    }
  }
  if (text !== '') yield Buffer.from(text);
}

/** From the log itself, to the last digit. */
async function* keelLines(run: KeelRun): AsyncGenerator<string> {
  const names = [...run.table.columns.keys()];
  yield names.map(cell).join(',');
  const path = runPaths(run.path).metrics;
  if (!existsSync(path)) return;
  closeSync(openSync(path, 'r'));
  for await (const line of wholeLines(path)) {
    let row: Readonly<Record<string, number>>;
    try {
      row = decodeRow(line);
    } catch {
      continue; // a damaged line, which the page tells of
    }
    yield names.map(name => (row[name] === undefined ? '' : String(row[name]))).join(',');
  }
}

async function* wholeLines(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: portion })) {
    const lines = (rest + (chunk as string)).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
}

/** Series with their own places: a row for every place that any of them has. */
async function* foreignLines(tracks: ReadonlyMap<string, PlacedColumn>): AsyncGenerator<string> {
  const names = [...tracks.keys()];
  yield ['x', ...names].map(cell).join(',');
  const at = names.map(() => 0);
  const list = [...tracks.values()].map(track => ({ ...track, xs: track.x('step')! }));
  for (;;) {
    let x = Number.POSITIVE_INFINITY;
    list.forEach(({ xs, length }, i) => {
      if (at[i] < length) x = Math.min(x, xs[at[i]]);
    });
    if (x === Number.POSITIVE_INFINITY) return;
    const cells = list.map(({ xs, length, column }, i) => {
      if (at[i] >= length || xs[at[i]] !== x) return '';
      return String(column.at(at[i]++) ?? '');
    });
    yield [String(x), ...cells].join(',');
  }
}

/** A name as a cell; one that a spreadsheet would take for a formula is kept from it. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
