/** Settings as a table in Markdown, as CleanRL, PyTorch's users and Keel log them. */
import { readNumber } from './numbers.ts';
import type { RunBuilder, Setting } from './run-builder.ts';

const mostRows = 5000;

/** The rows of a table of two columns, or undefined if the text is none. */
export function parseTable(text: string): [string, string][] | undefined {
  const lines = text.slice(0, 2 ** 18).split('\n', mostRows);
  const rule = lines.findIndex(line => /^[\s:|-]+$/.test(line) && line.includes('-') && line.includes('|'));
  if (rule < 1 || rule > 3) return undefined;
  const rows: [string, string][] = [];
  for (const line of lines.slice(rule + 1)) {
    const cells = splitCells(line);
    if (cells !== undefined) rows.push(cells);
  }
  return rows.length > 0 ? rows : undefined;
}

/** `|name|value|`: a `|` in the value may be escaped or not. */
function splitCells(line: string): [string, string] | undefined {
  const trimmed = line.trim();
  if (!trimmed.startsWith('|')) return undefined;
  const body = trimmed.slice(1, trimmed.endsWith('|') && trimmed.length > 1 ? -1 : undefined);
  const at = body.search(/(?<!\\)\|/);
  if (at < 1) return undefined;
  const clean = (cell: string): string => cell.replaceAll('\\|', '|').replaceAll('`', '').trim();
  return [clean(body.slice(0, at)), clean(body.slice(at + 1))];
}

export function addTable(run: RunBuilder, rows: readonly [string, string][]): void {
  for (const [name, value] of rows) run.setting(name, typed(value));
}

/** A setting that was written as text: `True`, `None`, `0.001` are what they look like. */
export function typed(value: string): Setting {
  if (value === 'True' || value === 'true') return true;
  if (value === 'False' || value === 'false') return false;
  if (value === 'None' || value === 'null') return null;
  const number = readNumber(value);
  return typeof number === 'number' ? number : value;
}
