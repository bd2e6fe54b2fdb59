/** Text for terminals: colours where they are wanted, numbers that fit, tables. */
export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'dim' | 'bold';

const codes: Record<Colour, readonly [number, number]> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
};

/** How loud a KL band is shown. */
export const toneColours = { muted: 'dim', good: 'green', warn: 'yellow', bad: 'red' } as const;

export type Paint = (text: string, colour: Colour) => string;

const ESCAPE = '\u001b';

/** Colours if the stream is a terminal and nobody said no: https://no-color.org. */
export function wantsColour(stream: { isTTY?: boolean }, flag: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (!flag || (NO_COLOR !== undefined && NO_COLOR !== '')) return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '' && FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && TERM !== 'dumb';
}

export function painter(colour: boolean): Paint {
  return (text, name) => (colour ? `${ESCAPE}[${codes[name][0]}m${text}${ESCAPE}[${codes[name][1]}m` : text);
}

const escapes = new RegExp(`${ESCAPE}\\[[0-9;]*m`, 'g');

/** Columns that a text takes. */
export function widthOf(text: string): number {
  return [...text.replaceAll(escapes, '')].length;
}

/** At most so many columns; colours are kept whole. */
export function fit(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let [out, width] = ['', 0];
  for (const part of text.split(new RegExp(`(${ESCAPE}\\[[0-9;]*m)`))) {
    if (part.startsWith(ESCAPE)) {
      out += part;
      continue;
    }
    for (const character of part) {
      if (width >= columns - 1) break;
      out += character;
      width++;
    }
  }
  return `${out}…`;
}

/**
 * A text as lines of at most so many columns, broken at spaces; lines after the first begin with `hang` spaces. A word
 * that is longer than a line (a path) stays whole, because people copy it.
 */
export function wrap(text: string, columns: number, hang = 0): string[] {
  if (widthOf(text) <= columns) return [text];
  const indent = ' '.repeat(hang);
  const [lead = ''] = /^ */.exec(text)!;
  const lines: string[] = [];
  let line = lead;
  for (const word of text.slice(lead.length).split(/(?<= )/)) {
    if (line.trim() !== '' && widthOf(line) + widthOf(word.trimEnd()) > columns) {
      lines.push(line.trimEnd());
      // One that would be too wide there begins further to the left.
      line = indent.slice(0, Math.max(0, columns - widthOf(word.trimEnd())));
    }
    line += word;
  }
  return [...lines, line.trimEnd()];
}

/** Rows with columns that line up. `right` are the numbers of those aligned at their right. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, widthOf(cell));
    });
  return rows.map(row =>
    row
      .map((cell, i) => {
        const gap = ' '.repeat(widths[i]! - widthOf(cell));
        return right.includes(i) ? gap + cell : cell + gap;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** `1234567` → `1,234,567`. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `123456` → `123k`: at most five characters. */
export function short(value: number): string {
  for (const [size, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    if (Math.abs(value) < size) continue;
    const scaled = value / size;
    return `${Math.abs(scaled) < 99.95 ? scaled.toFixed(1) : scaled.toFixed(0)}${letter}`;
  }
  return String(Math.round(value));
}

/** Few digits, whatever the size: `0.00612`, `-212.4`, `1.2e+7`. */
export function number(value: number | undefined): string {
  if (value === undefined) return '-';
  if (!Number.isFinite(value) || value === 0) return String(value);
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1);
  if (size >= 100) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  return Number(value.toPrecision(3)).toString();
}

/** `75` → `1:15`, `3675` → `1h01m`, days from 100 hours on: at most six characters. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '?';
  const whole = Math.max(0, Math.round(seconds));
  const pad = (n: number): string => String(n).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)}`;
  const hours = Math.floor(whole / 3600);
  return hours < 100 ? `${hours}h${pad(Math.floor(whole / 60) % 60)}m` : `${short(hours / 24)}d`;
}

/** JSON in which numbers that are not finite are written as in the log: "NaN", "Infinity". */
export function toJson(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_, v: unknown) => (typeof v === 'number' && !Number.isFinite(v) ? String(v) : v),
    indent,
  );
}
