/** What a file is, by its first bytes. Its name is never asked. */

import { chartRuns } from './charts.ts';
import { consoleKind, pairsKind } from './console-lines.ts';
import { type ContainerKind, containerKind } from './containers.ts';
import { headerDelimiter, isHeader, splitFields } from './csv.ts';
import { forEachLeaf, isObject, parseJson } from './json.ts';
import { shapeOf, triplesOf } from './json-shape.ts';
import { isLongTable } from './long-table.ts';
import { jsonCell, noNumber, readNumber } from './numbers.ts';
import { isScalarHeader } from './scalars.ts';
import { isSqlite } from './sqlite.ts';
import { decodeHead, encodingOf } from './text.ts';
import { recordLength } from './tf-records.ts';

/** A kind of file, more finely told apart than the formats of runs. */
export type Kind =
  | 'tensorboard'
  | 'wandb'
  | 'csv'
  | 'monitor'
  | 'scalars'
  | 'jsonl'
  | 'json-list'
  | 'json-document'
  | 'trainer-state'
  | 'verl-console'
  | 'console'
  | 'sqlite'
  | 'long'
  | 'charts';

export interface Detected {
  readonly kind: Kind | undefined;
  /** What it looks like, for the message when it is no log. */
  readonly looks: string;
  /** It is text, of whatever kind: rows of a console may come further down. */
  readonly text?: boolean;
  /** It holds other files, which may be logs. */
  readonly container?: ContainerKind;
}

/** Enough for the first rows of any log but the widest, which are told by their beginning. */
export const headBytes = 2 ** 16;

const known: readonly (readonly [Buffer, string])[] = (
  [
    ['\x28\xb5\x2f\xfd', 'packed with zstd: unpack it'],
    ['\xfd7zXZ\0', 'packed with xz: unpack it'],
    ['BZh', 'packed with bzip2: unpack it'],
    ['PAR1', 'a Parquet table: export it as CSV'],
    ['\x93NUMPY', 'a NumPy array: export it as CSV'],
    ['\x89HDF', 'an HDF5 file: export it as CSV'],
    ['\x89PNG', 'a picture'],
    ['\x7fELF', 'a program'],
    ['%PDF', 'a PDF document'],
    ['\x80\x02', 'a Python pickle or checkpoint, which is not opened because it can run code'],
    ['\x80\x04', 'a Python pickle or checkpoint, which is not opened because it can run code'],
  ] as const
).map(([magic, what]) => [Buffer.from(magic, 'latin1'), what]);

const wandbMark = Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe]);

/** Tells a file's kind by its unpacked first bytes; `whole` says that there are no more. @internal */
export function detect(head: Buffer, whole: boolean): Detected {
  if (head.length === 0) return { kind: undefined, looks: 'an empty file' };
  if (head.length >= 6 && head.subarray(0, 6).equals(wandbMark)) return { kind: 'wandb', looks: 'W&B' };
  if (isEventFile(head)) return { kind: 'tensorboard', looks: 'TensorBoard' };
  if (isSqlite(head)) return { kind: 'sqlite', looks: 'an SQLite database' };
  const container = containerKind(head);
  if (container !== undefined)
    return { kind: undefined, looks: `a file of the kind ${container}`, container };
  for (const [magic, what] of known) {
    if (head.subarray(0, magic.length).equals(magic)) return { kind: undefined, looks: what };
  }
  if (encodingOf(head).encoding === 'utf-8' && head.includes(0)) {
    return { kind: undefined, looks: `binary data that begins ${head.subarray(0, 8).toString('hex')}` };
  }
  return detectText(decodeHead(head), whole);
}

function isEventFile(head: Buffer): boolean {
  if (head.length < 12) return false;
  return recordLength(head, 0) >= 0 || (head.length > 40 && head.subarray(0, 64).includes('brain.Event:2'));
}

function detectText(text: string, whole: boolean): Detected {
  const start = text.search(/\S/);
  if (start < 0) return { kind: undefined, looks: 'an empty file: only white space' };
  const lines = text.slice(start).split(/\r?\n/, 2000);
  const first = lines[0];
  const firstIsWhole = lines.length > 1 || whole;
  const looks = `text whose first line is ${JSON.stringify(first.slice(0, 60))}`;
  if (first.startsWith('{') || first.startsWith('[')) {
    const kind = detectJson(text.slice(start), lines, firstIsWhole, whole);
    if (kind !== undefined) return { kind, looks };
  }
  if (first.startsWith('#')) {
    const at = lines.findIndex(line => !line.startsWith('#') && line.trim() !== '');
    if (at > 0 && headerDelimiter(lines[at]) !== undefined) {
      const json = parseJson(first.slice(1));
      return { kind: isObject(json) && 't_start' in json ? 'monitor' : 'csv', looks };
    }
  }
  const kind = consoleKind(lines);
  if (kind !== undefined) return { kind, looks };
  if (isScalarHeader(first)) return { kind: 'scalars', looks };
  if (chartRuns(first).length > 0) return { kind: 'charts', looks };
  if (isLongTable(lines)) return { kind: 'long', looks };
  if (isTable(lines, firstIsWhole)) return { kind: 'csv', looks };
  if (pairsKind(lines) !== undefined) return { kind: 'console', looks };
  return { kind: undefined, looks, text: true };
}

/** Names that make a document with lists of numbers a log: vocabularies and settings have such lists too. */
const ofTraining = /"[^"]{0,80}(?:rew|return|loss|kl|entropy|score|advantage|explained)[^"]{0,80}"\s*:/i;

function detectJson(
  text: string,
  lines: readonly string[],
  firstIsWhole: boolean,
  whole: boolean,
): Kind | undefined {
  const first = lines[0];
  if (first.startsWith('{')) {
    const value = parseJson(first);
    if (isObject(value)) {
      if (Array.isArray(value.log_history)) return 'trainer-state';
      const lone = lines.slice(1).every(line => line.trim() === '');
      if (lone && ofTraining.test(first) && shapeOf(value) !== undefined) return 'json-document';
      return hasNumber(value) || lines.slice(1, 20).some(line => hasNumber(parseJson(line)))
        ? 'jsonl'
        : undefined;
    }
    if (/"log_history"\s*:\s*\[/.test(text)) return 'trainer-state';
    // A row that is longer than the head.
    if (!firstIsWhole && /^\{\s*"/.test(first)) return 'jsonl';
    if (lines.slice(1, 50).some(line => line.startsWith('{"') && isObject(parseJson(line)))) return 'jsonl';
    if (!ofTraining.test(text)) return undefined;
    if (whole) return shapeOf(parseJson(text)) !== undefined || isObjects(text) ? 'json-document' : undefined;
    return /\[\s*(?:-?\d|\{\s*"|\[\s*\d)/.test(text) || isObjects(text) ? 'json-document' : undefined;
  }
  if (/^\[\s*\{\s*"/.test(text)) return 'json-list';
  if (/^\[\s*\[/.test(text))
    return (whole ? triplesOf(parseJson(text)) !== undefined : /^\[\[\d{9,}[.\d]*,\s*\d+,/.test(text))
      ? 'scalars'
      : undefined;
  return undefined;
}

/** Objects one after the other, each over several lines. */
function isObjects(text: string): boolean {
  return /\n\}\s*\n\{\s*\n/.test(text);
}

function hasNumber(value: unknown, depth = 0): boolean {
  if (typeof value === 'number') return true;
  if (typeof value === 'string') return readNumber(value) !== noNumber && value !== '';
  if (!isObject(value) || depth > 8) return false;
  return Object.values(value).some(inside => hasNumber(inside, depth + 1));
}

/** A header and, unless the file has nothing else yet, a row with a number. */
function isTable(lines: readonly string[], firstIsWhole: boolean): boolean {
  // Lines before the header that are none are forgiven, but not many.
  for (const [at, line] of lines.slice(0, 5).entries()) {
    const delimiter = headerDelimiter(line);
    if (delimiter === undefined) continue;
    const names = splitFields(line, delimiter);
    if (!isHeader(names)) continue;
    // A line of prose has commas too: names are short, or there are rows below that fit.
    const rows = lines.slice(at + 1, 200).filter(row => row !== '');
    const fits = rows.some(row => {
      const fields = splitFields(row, delimiter);
      return (
        fields.length === names.length &&
        fields.some(field => typeof readNumber(field, delimiter === ';') === 'number')
      );
    });
    if (fits) return true;
    const wide = !firstIsWhole && names.length > 50;
    const onlyHeader =
      rows.length <= 1 &&
      names.every(name => /^[\w./@:() -]{1,80}$/.test(name) && !/\w\s+\w+\s+\w/.test(name));
    if (wide || (at === 0 && onlyHeader && names.length > 2 && names.some(name => /[/_]/.test(name))))
      return true;
  }
  return false;
}

/** About how many metrics a log has, by its beginning: which of several logs of one run tells most. @internal */
export function widthOf(kind: Kind, head: Buffer): number {
  const text = decodeHead(head);
  const lines = text.split(/\r?\n/, 60);
  switch (kind) {
    case 'scalars':
    case 'charts':
      return 1;
    case 'csv':
    case 'monitor':
      for (const line of lines) {
        const delimiter = headerDelimiter(line);
        if (delimiter !== undefined) return splitFields(line, delimiter).length;
      }
      return 0;
    case 'jsonl':
      // A first row that does not fit is the widest there is.
      if (lines.length === 1) return Number.MAX_SAFE_INTEGER;
      return Math.max(...lines.map(line => numbersIn(parseJson(line))));
    case 'trainer-state':
    case 'json-document':
    case 'tensorboard':
    case 'wandb':
    case 'sqlite':
    case 'long':
      return Number.MAX_SAFE_INTEGER;
    default:
      return new Set(text.match(/[\w./@-]{1,80}(?=['"]?\s*[:|]\s*-?\d)/g)).size;
  }
}

function numbersIn(value: unknown): number {
  let count = 0;
  if (isObject(value)) {
    forEachLeaf(value, (_, leaf) => {
      if (typeof jsonCell(leaf) === 'number') count++;
    });
  }
  return count;
}
