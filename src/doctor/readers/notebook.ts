/**
 * Jupyter notebooks: what a cell printed is a file, and so is each table that it showed. Only outputs that were kept are
 * read; no code of a notebook is looked at.
 */
import { mostInMemory } from './archive-limits.ts';
import type { ByteSource, Member } from './byte-source.ts';
import { ReadError } from './errors.ts';
import { htmlTables } from './html-table.ts';
import { isObject, parseJson } from './json.ts';
import { ofTraining } from './training-words.ts';

const mostCells = 10_000;
/** A table of fewer rows tells of no training. */
const fewestRows = 3;

export function isNotebook(head: Buffer): boolean {
  const text = head.toString('utf8');
  return (
    /^\s*\{/.test(text) &&
    /"(?:nbformat|cell_type)"\s*:/.test(text) &&
    /"(?:cells|metadata|nbformat)"\s*:/.test(text)
  );
}

export function notebookMembers(path: string, source: ByteSource): Member[] {
  if (source.size > mostInMemory)
    throw new ReadError(
      path,
      `a notebook of more than ${mostInMemory} bytes: clear the outputs that are not of the training`,
    );
  const document = parseJson(source.read(0, source.size).toString('utf8'));
  if (!isObject(document) || !Array.isArray(document.cells))
    throw new ReadError(path, 'a notebook that is cut or damaged: open it in Jupyter and save it again');
  const members: Member[] = [];
  document.cells.slice(0, mostCells).forEach((cell: unknown, i) => {
    if (!isObject(cell) || !Array.isArray(cell.outputs)) return;
    const { text, tables } = outputsOf(cell.outputs);
    tables.forEach((csv, n) => {
      members.push(member(`cell-${i + 1}${tables.length > 1 ? `-${n + 1}` : ''}.csv`, csv));
    });
    // What is printed beside a table of rows tells of the same training.
    if (tables.length === 0 && text.trim() !== '') members.push(member(`cell-${i + 1}.log`, text));
  });
  return members;
}

function member(name: string, text: string): Member {
  const bytes = Buffer.from(text);
  return { name, bytes: () => bytes };
}

/** Text that is a string or a list of them. */
const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.filter(part => typeof part === 'string').join('') : '';
};

function outputsOf(outputs: readonly unknown[]): { text: string; tables: string[] } {
  const texts: string[] = [];
  const tables: string[] = [];
  for (const output of outputs) {
    if (!isObject(output)) continue;
    if (output.output_type === 'stream') texts.push(textOf(output.text));
    else if (isObject(output.data)) {
      const shown = htmlTables(textOf(output.data['text/html']))
        .map(csvOf)
        .filter(csv => csv !== undefined);
      if (shown.length > 0) tables.push(...shown);
      else texts.push(`${textOf(output.data['text/plain'])}\n`);
    } else if (output.output_type === 'error' && typeof output.ename === 'string')
      texts.push(
        `Traceback (most recent call last):\n${output.ename}: ${String(output.evalue).slice(0, 400)}\n`,
      );
  }
  return { text: texts.join(''), tables };
}

/** A table with a header of names, one of them of training, as CSV. */
function csvOf([header, ...rows]: readonly string[][]): string | undefined {
  if (header === undefined || rows.length < fewestRows || !header.some(name => ofTraining.test(name)))
    return undefined;
  const line = (cells: readonly string[]): string =>
    cells.map(cell => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',');
  return `${[header, ...rows].map(line).join('\n')}\n`;
}
