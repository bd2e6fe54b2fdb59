/**
 * Tables with a header: SB3's and RLlib's `progress.csv`, SB3's `monitor.csv` (whose first line is `#{json}`), and any
 * other with commas, semicolons or tabs.
 */
import type { SeriesBuilder } from '../series.ts';
import type { Reading } from './bytes.ts';
import { asSetting, isObject, parseJson } from './json.ts';
import { missing, noNumber, readNumber } from './numbers.ts';
import { clockNames, RowSink } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';

const mostColumns = 16_384;
/** A quoted field may span lines, but not for ever: a quote in a damaged line must not swallow the file. */
const mostJoinedLines = 64;
const longestJoined = 4 * 2 ** 20;

export const delimiters = [',', ';', '\t'] as const;
export type Delimiter = (typeof delimiters)[number];

/** The fields of one record, quotes taken off. */
export function splitFields(line: string, delimiter: string): string[] {
  if (!line.includes('"')) return line.split(delimiter);
  const fields: string[] = [];
  for (let i = 0; ; ) {
    if (line.charCodeAt(i) === 34) {
      const parts: string[] = [];
      let from = i + 1;
      let end: number;
      for (;;) {
        end = line.indexOf('"', from);
        if (end < 0) end = line.length;
        parts.push(line.slice(from, end));
        if (line.charCodeAt(end + 1) !== 34) break;
        parts.push('"');
        from = end + 2;
      }
      const next = line.indexOf(delimiter, end + 1);
      parts.push(line.slice(end + 1, next < 0 ? line.length : next));
      fields.push(parts.join(''));
      if (next < 0) return fields;
      i = next + 1;
    } else {
      const next = line.indexOf(delimiter, i);
      fields.push(line.slice(i, next < 0 ? line.length : next));
      if (next < 0) return fields;
      i = next + 1;
    }
  }
}

function quotesOf(line: string): number {
  let count = 0;
  for (let at = line.indexOf('"'); at >= 0; at = line.indexOf('"', at + 1)) count++;
  return count;
}

/** The delimiter of a header line, if it is one: at least two fields, all of them names and no two the same. */
export function headerDelimiter(line: string): Delimiter | undefined {
  let best: Delimiter | undefined;
  let most = 1;
  for (const delimiter of delimiters) {
    const fields = splitFields(line, delimiter);
    if (fields.length <= most || !isHeader(fields)) continue;
    best = delimiter;
    most = fields.length;
  }
  return best;
}

/** `Map:  40%|████      | 2/5 [00:01<00:02,  1.5it/s]`: a bar of progress has a comma, and is no header. */
const bar = /\d%\|.*\|/;

/** A header has no numbers and hardly an empty name (pandas leaves that of its index empty). */
export function isHeader(fields: readonly string[]): boolean {
  let named = 0;
  for (const [i, field] of fields.entries()) {
    const cell = readNumber(field);
    if (cell === noNumber) {
      if (field.length > 256 || bar.test(field)) return false;
      named++;
    } else if (cell !== missing || field.trim() !== '' || (i > 0 && i < fields.length - 1)) return false;
  }
  return named > 0 && new Set(fields).size >= fields.length - 1;
}

interface Column {
  readonly name: string;
  series: SeriesBuilder | undefined;
  readonly clock: boolean;
  /** A setting that is repeated in every row, as RLlib does. */
  readonly setting: boolean;
  readonly skipped: boolean;
  /** The last row with a value; 0 before the first. */
  filled: number;
}

/** Reads one CSV file into a run; `rename` says what its columns are called, '' for one that is left out. */
export async function readCsv(
  path: string,
  run: RunBuilder,
  reading: Reading,
  rename: (names: readonly string[]) => readonly string[] = names => names,
): Promise<void> {
  const sink = new RowSink(run);
  let delimiter: Delimiter = ',';
  let columns: Column[] | undefined;
  let names: readonly string[] = [];
  let startUnixS = Number.NaN;
  let [wrongLength, unreadable] = [0, 0];
  let [oddLength, oddInARow] = [0, 0];
  let pending: string[] = [];
  let pendingLength = 0;

  function setHeader(fields: readonly string[]): void {
    if (fields.length > mostColumns)
      run.note(`${path}: only the first ${mostColumns} of ${fields.length} columns are read`);
    names = fields
      .slice(0, mostColumns)
      .map((field, i) => field.trim() || (i === 0 ? 'index' : `column ${i + 1}`));
    columns = rename(names).map(name => ({
      name,
      series: undefined,
      clock: name === 't' && !Number.isNaN(startUnixS),
      setting: name.startsWith('config/'),
      skipped: name === '',
      filled: 0,
    }));
  }

  function record(line: string, whole: boolean): void {
    if (columns === undefined) {
      if (line.trim() === '') return;
      if (line.startsWith('#')) {
        const json = parseJson(line.slice(1));
        if (isObject(json)) {
          for (const [key, value] of Object.entries(json)) run.setting(key, asSetting(value));
          if (typeof json.t_start === 'number') startUnixS = json.t_start;
        } else if (line.length > 1) run.text('comment', line.slice(1).trim());
        return;
      }
      const found = headerDelimiter(line);
      if (found === undefined) {
        unreadable++;
        return;
      }
      delimiter = found;
      setHeader(splitFields(line, delimiter));
      return;
    }
    if (line === '') return;
    const fields = splitFields(line, delimiter);
    if (fields.length !== columns.length) {
      if (!whole) return;
      // Trailing delimiters are harmless; a row that is longer again and again has columns that its header lacks.
      oddInARow = fields.length === oddLength ? oddInARow + 1 : 1;
      oddLength = fields.length;
      if (looksLikeHeader(fields)) {
        sink.restart();
        setHeader(fields);
        oddInARow = 0;
        return;
      }
      const padded =
        fields.length > columns.length && fields.slice(columns.length).every(field => field === '');
      if (!padded && !(fields.length > columns.length && oddInARow > 2)) {
        wrongLength++;
        return;
      }
    } else if (readNumber(fields[0]) === noNumber && looksLikeHeader(fields)) {
      sink.restart();
      setHeader(fields);
      return;
    }
    // Of a line without its break the last number may lack digits.
    const last = whole ? columns.length : columns.length - 1;
    for (let i = 0; i < last; i++) {
      const column = columns[i];
      if (column.skipped) continue;
      const field = fields[i];
      const cell = readNumber(field, delimiter === ';');
      if (column.setting) {
        if (!run.config.has(column.name.slice(7)) && field !== '') {
          run.setting(column.name.slice(7), typeof cell === 'number' ? cell : field);
        }
      } else if (typeof cell === 'number') {
        if (column.series === undefined) {
          column.series = run.of(column.name);
          if (column.series === undefined) continue;
        }
        if (column.clock) sink.clock(startUnixS + cell);
        if (clockNames.has(column.name)) sink.clock(cell);
        sink.add(column.series, cell);
        column.filled = sink.rows + 1;
      } else if (cell === noNumber) {
        sink.text(column.name, field);
      }
    }
    sink.end();
  }

  function looksLikeHeader(fields: readonly string[]): boolean {
    if (!isHeader(fields)) return false;
    const known = new Set(names);
    return (
      fields.filter(field => known.has(field.trim())).length * 2 >= Math.min(fields.length, names.length)
    );
  }

  /** The first of the lines that were joined is damaged: the others are looked at again. */
  function giveUpJoining(): void {
    const lines = pending;
    pending = [];
    pendingLength = 0;
    wrongLength++;
    for (const line of lines.slice(1)) take(line, true);
  }

  function take(line: string, whole: boolean): void {
    if (pending.length === 0 && (!line.includes('"') || quotesOf(line) % 2 === 0)) {
      record(line, whole);
      return;
    }
    pending.push(line);
    pendingLength += line.length;
    if (pending.length > 1 && quotesOf(line) % 2 === 1) {
      const joined = pending.join('\n');
      pending = [];
      pendingLength = 0;
      record(joined, whole);
    } else if (pending.length > mostJoinedLines || pendingLength > longestJoined) {
      giveUpJoining();
    }
  }

  const half = await forEachLine(path, reading, run, take);
  if (half || pending.length === 1) run.unfinished = true;
  while (pending.length > 1) giveUpJoining();
  for (const { name, filled } of columns ?? []) {
    const rows = sink.rows - filled;
    if (filled > 0 && rows > 0) run.blanks.set(name, { from: filled + 1, rows, kind: 'empty' });
  }
  sink.finish();
  if (wrongLength > 0) {
    run.damage(
      wrongLength === 1
        ? `${path}: one row that does not have ${names.length} fields, as the header has, is left out`
        : `${path}: ${wrongLength} rows that do not have ${names.length} fields, as the header has, are left out`,
    );
  }
  if (unreadable > 0) run.note(`${path}: ${unreadable} lines before the header are left out`);
}
