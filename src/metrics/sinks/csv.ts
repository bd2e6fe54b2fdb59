import { rmSync } from 'node:fs';
import { AppendFile, attempt, replaceFile, temporaryBeside } from '../../base/files.ts';
import { endOfLastLine, readLines } from '../lines.ts';
import { compareMetricIds } from '../registry.ts';
import type { Row } from '../row.ts';
import type { Sink } from './sink.ts';

/**
 * A table for spreadsheets and pandas (RFC 4180, lines end in LF): a projection of `metrics.jsonl`.
 *
 * Columns are in the registry's order as of the first row. A metric that appears later becomes a new last column: the
 * file is then rewritten with the longer header, whole or not at all, and earlier rows get an empty field. Absent is
 * empty; not finite is NaN, Infinity or -Infinity. Events are not in it.
 */
export function csvSink(path: string): Sink {
  let file: AppendFile | undefined = new AppendFile(path, endOfLastLine);
  let columns = file.size === 0 ? [] : headerOf(path);
  let known = new Set(columns);
  const open = (): AppendFile => (file ??= new AppendFile(path, endOfLastLine));

  /** Rewrites the file under a header with these columns added. */
  function grow(added: readonly string[]): void {
    const wider = [...columns, ...added];
    if (columns.length > 0) {
      const temporary = temporaryBeside(path);
      const padding = ','.repeat(added.length);
      const target = new AppendFile(temporary);
      try {
        target.append(`${wider.map(quote).join(',')}\n`);
        for (const { text, number } of readLines(path)) {
          if (number > 1) target.append(`${text}${padding}\n`);
        }
        target.sync();
        target.close();
        file?.close(); // Windows renames over no open file.
        file = undefined;
        attempt('write', path, () => replaceFile(temporary, path));
      } catch (error) {
        target.close();
        rmSync(temporary, { force: true });
        throw error;
      }
    } else {
      open().append(`${wider.map(quote).join(',')}\n`);
    }
    columns = wider;
    known = new Set(wider);
  }

  let closed = false;
  return {
    write(row) {
      if (!closed) {
        const added = Object.keys(row)
          .filter(key => !known.has(key))
          .sort(compareMetricIds);
        if (added.length > 0) grow(added);
        open();
      }
      // A closed file says so itself.
      file!.append(`${columns.map(column => cell(row, column)).join(',')}\n`);
    },
    event() {},
    flush: () => open().sync(),
    close() {
      if (closed) return;
      closed = true;
      try {
        open().sync();
      } finally {
        file?.close();
      }
    },
  };
}

function cell(row: Row, column: string): string {
  const value = Object.hasOwn(row, column) ? row[column] : undefined;
  return value === undefined ? '' : String(value);
}

/** A field as RFC 4180 has it: quoted if it holds a comma, a quote or a line break. */
function quote(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function headerOf(path: string): string[] {
  for (const { text } of readLines(path)) return parseFields(text ?? '');
  return [];
}

/** The fields of one line: none of ours holds a line break. */
function parseFields(line: string): string[] {
  const fields: string[] = [];
  const pattern = /(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g;
  for (const [, quoted, plain] of line.matchAll(pattern)) {
    fields.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
  }
  return fields;
}
