/** Text for terminals: colours where they are wanted, and how to make a text fit. */
import { withoutControls } from './controls.ts';

export type Tone =
  | 'red'
  | 'green'
  | 'yellow'
  | 'cyan'
  | 'dim'
  | 'bold'
  | 'badge-red'
  | 'badge-green'
  | 'badge-yellow'
  | 'badge-dim';
export type Paint = (text: string, tone: Tone) => string;

const codes: Readonly<Record<Tone, readonly [string, string]>> = {
  red: ['31', '39'],
  green: ['32', '39'],
  yellow: ['33', '39'],
  cyan: ['36', '39'],
  dim: ['2', '22'],
  bold: ['1', '22'],
  'badge-red': ['1;37;41', '22;39;49'],
  'badge-green': ['1;30;42', '22;39;49'],
  'badge-yellow': ['1;30;43', '22;39;49'],
  'badge-dim': ['1;7', '22;27'],
};

const ESCAPE = '\u001b';
const escapes = new RegExp(`${ESCAPE}\\[[0-9;]*m`, 'g');

/** Colours if the stream is a terminal and nobody said no: https://no-color.org. */
export function wantsColour(stream: { isTTY?: boolean }, flag: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (!flag || (NO_COLOR !== undefined && NO_COLOR !== '')) return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '' && FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && TERM !== 'dumb';
}

export function painter(colour: boolean): Paint {
  return (text, tone) =>
    colour && text !== '' ? `${ESCAPE}[${codes[tone][0]}m${text}${ESCAPE}[${codes[tone][1]}m` : text;
}

const sequenceOf = (code: string): string => `${ESCAPE}[${code}m`;
/** What ends each of the painter's colours. */
const endings = new Map(Object.values(codes).map(([begin, end]) => [sequenceOf(begin), sequenceOf(end)]));
const own = new Set([...endings].flat());

/**
 * What may be written to a terminal: characters, and the painter's own colours where there are any; nothing else that
 * drives it. Colours that do not end where they should are not the painter's: then the text has none. Of a text that is
 * broken into lines this is asked before.
 */
export function shownText(text: string, colour: boolean): string {
  if (!text.includes(ESCAPE)) return withoutControls(text);
  const parts = text.split(new RegExp(`(${escapes.source})`));
  const painted = colour && isPaired(parts.filter(part => own.has(part)));
  return parts.map(part => (painted && own.has(part) ? part : withoutControls(part))).join('');
}

/** Whether each colour ends, the one that began last first. */
function isPaired(sequences: readonly string[]): boolean {
  const open: string[] = [];
  for (const sequence of sequences) {
    if (sequence === open.at(-1)) open.pop();
    else {
      const ending = endings.get(sequence);
      if (ending === undefined) return false;
      open.push(ending);
    }
  }
  return open.length === 0;
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f1e6}-\u{1f1ff}\u{1f200}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** A variation selector can make the character before it wide, and a soft hyphen may show: both count. */
const narrow = /[\p{Mn}\p{Me}\p{Cf}]/u;
const selectors = /[\ufe0f\u00ad]/;

/** Columns of one character: 0, 1 or 2, rather too many than too few. */
function columnsOfOne(character: string): number {
  if (character < '\u0300' && character !== '\u00ad') return 1;
  if (selectors.test(character)) return 1;
  if (narrow.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Columns that a text takes; its colours take none. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text.includes(ESCAPE) ? text.replaceAll(escapes, '') : text)
    columns += columnsOfOne(character);
  return columns;
}

/** At most so many columns, with `…` in place of what was cut off; colours are kept whole. */
export function fit(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  return columns < 1 ? '' : `${head(text, columns - 1)}…`;
}

/** Keeps both ends, as a path needs: the run's name is at its end. For a text without colours. */
export function fitMiddle(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  if (columns < 3) return fit(text, columns);
  const front = Math.floor((columns - 1) / 3);
  const start = head(text, front);
  const reversed = [...text].reverse().join('');
  const end = [...head(reversed, columns - 1 - columnsOf(start))].reverse().join('');
  return `${start}…${end}`;
}

/** The beginning that takes at most so many columns, with every colour of the text, so that all that begin also end. */
function head(text: string, columns: number): string {
  let [out, room] = ['', columns];
  for (const part of text.split(new RegExp(`(${escapes.source})`))) {
    if (part.startsWith(ESCAPE)) {
      out += part;
      continue;
    }
    for (const character of part) {
      room -= columnsOfOne(character);
      if (room < 0) break;
      out += character;
    }
  }
  return out;
}

/** To exactly so many columns, if it is not wider. */
export function pad(text: string, columns: number, side: 'left' | 'right' = 'right'): string {
  const gap = ' '.repeat(Math.max(0, columns - columnsOf(text)));
  return side === 'right' ? text + gap : gap + text;
}

const withoutEnd = (text: string): string => text.replace(/ +$/, '');

/**
 * A text as lines of at most so many columns, broken at spaces; lines after the first begin with `indent` spaces. A word
 * that is longer than a line (a path) stays whole, because people copy it.
 */
export function wrap(text: string, columns: number, indent = 0): string[] {
  if (columnsOf(text) <= columns) return [text];
  const before = ' '.repeat(indent);
  const [lead = ''] = /^ */.exec(text)!;
  const lines: string[] = [];
  let line = lead;
  for (const word of text.slice(lead.length).split(/(?<= )/)) {
    const size = columnsOf(withoutEnd(word));
    if (withoutEnd(line) !== '' && columnsOf(line) + size > columns) {
      lines.push(withoutEnd(line));
      // One that would be too wide there begins further to the left.
      line = before.slice(0, Math.max(0, columns - size));
    }
    line += word;
  }
  return [...lines, withoutEnd(line)];
}

/** Too narrow a column for a word to be read in. */
const NARROWEST = 8;

/** The words of a text in lines of at most so many columns; a word that is wider than a line is cut. */
export function paragraph(text: string, columns: number): string[] {
  const width = Math.max(NARROWEST, columns);
  const words = text.split(' ').flatMap(word => pieces(word, width));
  return words.length === 0 ? [] : wrap(words.join(' '), width);
}

/** A word cut into pieces of at most so many columns. */
function pieces(word: string, columns: number): string[] {
  const found: string[] = [];
  let rest = word;
  while (columnsOf(rest) > columns) {
    const piece = head(rest, columns);
    found.push(piece);
    rest = rest.slice(piece.length);
  }
  return rest === '' ? found : [...found, rest];
}

/** A paragraph whose first line starts with `lead`; the others are indented as far. */
export function hang(lead: string, text: string, columns: number): string[] {
  const indent = ' '.repeat(columnsOf(lead));
  return paragraph(text, columns - indent.length).map((line, i) => (i === 0 ? lead : indent) + line);
}

/** Rows with columns that line up. `right` are the numbers of those aligned at their right. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, columnsOf(cell));
    });
  return rows.map(row =>
    row
      .map((cell, i) => pad(cell, widths[i], right.includes(i) ? 'left' : 'right'))
      .join('  ')
      .trimEnd(),
  );
}
