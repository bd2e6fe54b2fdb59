/**
 * Reads the lines of `metrics.jsonl` straight from bytes into columns, several times as fast as `JSON.parse`. It knows
 * the plain form in which rows are written and guesses each key from the row before; any other line goes through the
 * reader that knows all of JSON. Numbers of more than 15 digits are right to within two units in the last place.
 */

import { isMetricId } from '../../metrics/registry.ts';
import { decodeRow } from '../../metrics/row.ts';
import type { Column } from './column.ts';
import type { Table } from './table.ts';

const [quote, comma, colon, open, close, newline, carriage, minus, dot, zero] = [
  34, 44, 58, 123, 125, 10, 13, 45, 46, 48,
];
/** More tell nothing of a double. */
const mostDigits = 19;
const powers = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Names of one run; others are damage. */
const mostColumns = 4096;
/** A longer line is damage; it is passed over without being kept. */
export const longestLine = 4 * 2 ** 20;

/** What a portion of bytes held. */
export interface Scanned {
  /** Bytes up to the end of the last whole line. */
  readonly consumed: number;
  readonly broken: number;
  /** What is wrong with the last broken line. */
  readonly reason: string | undefined;
}

interface Key {
  /** `"kl/step":` */
  readonly bytes: Uint8Array;
  /** The same, as far as whole words go. */
  readonly words: Int32Array;
  readonly name: string;
  column: Column | undefined;
}

export class RowScanner {
  readonly #table: Table;
  readonly #keys = new Map<string, Key>();
  /** The keys of the row before, in its order. */
  #expected: Key[] = [];
  #values = new Float64Array(128);
  #row: Key[] = [];
  #length = 0;
  /** Where the parser is, and the number that it just read. */
  #at = 0;
  #number = 0;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Forgets columns, after the table was cut or emptied. */
  reset(): void {
    this.#keys.clear();
    this.#expected = [];
  }

  /**
   * Takes the whole lines of `bytes[0..end)`, which begin at `offset` in the file; `onRow` sees each row's number in the
   * table.
   */
  scan(bytes: Buffer, end: number, offset: number, onRow?: (row: number) => void): Scanned {
    let [start, broken] = [0, 0];
    let reason: string | undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (;;) {
      const stop = bytes.indexOf(newline, start);
      if (stop < 0 || stop >= end) break;
      const problem = this.#line(bytes, view, start, stop, offset + stop + 1, onRow);
      if (problem !== undefined) {
        broken++;
        reason = problem;
      }
      start = stop + 1;
    }
    return { consumed: start, broken, reason };
  }

  /** The row that was just read, as the stream tells it. */
  lastRow(): Record<string, number | null> {
    const row: Record<string, number | null> = {};
    for (let i = 0; i < this.#length; i++) {
      const value = this.#values[i];
      row[this.#row[i].name] = value - value === 0 ? value : null;
    }
    return row;
  }

  /** One line, `start..stop` without its break; what is wrong with it, if anything. */
  #line(
    bytes: Buffer,
    view: DataView,
    start: number,
    stop: number,
    lineEnd: number,
    onRow?: (row: number) => void,
  ): string | undefined {
    if (!this.#plain(bytes, view, start, stop)) {
      try {
        this.#byJson(bytes.toString('utf8', start, stop).trimEnd());
      } catch (error) {
        return (error as Error).message;
      }
    }
    let [step, iteration, time] = [-1, -1, Number.NaN];
    for (let i = 0; i < this.#length; i++) {
      const { name } = this.#row[i];
      if (name === 'train/step') step = this.#values[i];
      else if (name === 'train/iteration') iteration = this.#values[i];
      else if (name === 'time/unix_s') time = this.#values[i] * 1000;
    }
    const table = this.#table;
    if (!(Number.isSafeInteger(step) && step >= 0)) return 'train/step is missing or not a whole number';
    if (!(Number.isSafeInteger(iteration) && iteration >= 0))
      return 'train/iteration is missing or not a whole number';
    if (step < table.lastStep || iteration <= table.lastIteration) {
      return `step ${step}, iteration ${iteration} after step ${table.lastStep}, iteration ${table.lastIteration}: rows must go on`;
    }
    const row = table.begin(step, iteration, time, lineEnd);
    for (let i = 0; i < this.#length; i++) {
      const key = this.#row[i];
      key.column ??= table.column(key.name);
      key.column.set(row, this.#values[i]);
    }
    onRow?.(row);
    return undefined;
  }

  /** Reads the form `{"a/b":1,"c/d":"NaN"}`; false for any other, however valid. */
  #plain(bytes: Buffer, view: DataView, start: number, stop: number): boolean {
    this.#length = 0;
    let end = stop;
    if (end > start && bytes[end - 1] === carriage) end--;
    if (bytes[start] !== open || bytes[end - 1] !== close) return false;
    let at = start + 1;
    for (let i = 0; ; i++) {
      let key: Key | undefined = this.#expected[i];
      if (key === undefined || !matches(bytes, view, at, key)) {
        key = this.#readKey(bytes, at, end);
        if (key === undefined) return false;
        this.#expected[i] = key;
      }
      at += key.bytes.length;
      if (bytes[at] === quote) {
        const close = bytes.indexOf(quote, at + 1);
        if (close < 0 || close >= end) return false;
        const text = bytes.toString('latin1', at + 1, close);
        if (text !== 'NaN' && text !== 'Infinity' && text !== '-Infinity') return false;
        this.#number = Number(text);
        at = close + 1;
      } else {
        if (!this.#readNumber(bytes, view, at, end)) return false;
        at = this.#at;
      }
      this.#push(key, this.#number);
      if (bytes[at] === comma) at++;
      else return at === end - 1;
    }
  }

  /** The key at `"name":`, if it is plain and well formed. */
  #readKey(bytes: Buffer, at: number, end: number): Key | undefined {
    if (bytes[at] !== quote) return undefined;
    const close = bytes.indexOf(quote, at + 1);
    if (close < 0 || close >= end || bytes[close + 1] !== colon) return undefined;
    return this.#key(bytes.toString('latin1', at + 1, close));
  }

  #key(name: string): Key | undefined {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    if (!isMetricId(name) || this.#keys.size >= mostColumns) return undefined;
    const bytes = Buffer.from(`"${name}":`, 'latin1');
    const words = Int32Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readInt32LE(4 * i));
    const key: Key = { bytes, words, name, column: undefined };
    this.#keys.set(name, key);
    return key;
  }

  #push(key: Key, value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#row[this.#length] = key;
    this.#values[this.#length++] = value;
  }

  #byJson(line: string): void {
    this.#length = 0;
    for (const [name, value] of Object.entries(decodeRow(line))) {
      const key = this.#key(name);
      if (key === undefined) throw new Error(`more than ${mostColumns} names of metrics`);
      this.#push(key, value);
    }
  }

  /** A JSON number at `from`; leaves the place after it in `#at`. Four digits are read at a time while there are as many. */
  #readNumber(bytes: Buffer, view: DataView, from: number, end: number): boolean {
    let at = from;
    const negative = bytes[at] === minus;
    if (negative) at++;
    let [mantissa, digits, exponent] = [0, 0, 0];
    const first = at;
    let c = bytes[at];
    for (; c >= zero && c <= 57; c = bytes[++at]) {
      if (digits < mostDigits) {
        mantissa = mantissa * 10 + (c - zero);
        if (mantissa !== 0) digits++;
      } else exponent++;
    }
    const whole = at - first;
    if (whole === 0 || (whole > 1 && bytes[first] === zero)) return false;
    if (c === dot) {
      const fraction = ++at;
      while (digits < mostDigits - 4 && at + 4 <= end) {
        const word = view.getInt32(at, true);
        // All four are digits if their high halves are 3 and their low ones below 10.
        if ((word & 0xf0f0f0f0) !== 0x30303030 || ((word + 0x06060606) & 0xf0f0f0f0) !== 0x30303030) break;
        const four =
          (word & 15) * 1000 + ((word >> 8) & 15) * 100 + ((word >> 16) & 15) * 10 + ((word >> 24) & 15);
        if (mantissa !== 0) digits += 4;
        else if (four !== 0) digits = four > 999 ? 4 : four > 99 ? 3 : four > 9 ? 2 : 1;
        mantissa = mantissa * 10_000 + four;
        exponent -= 4;
        at += 4;
      }
      for (c = bytes[at]; c >= zero && c <= 57; c = bytes[++at]) {
        if (digits < mostDigits) {
          mantissa = mantissa * 10 + (c - zero);
          if (mantissa !== 0) digits++;
          exponent--;
        }
      }
      if (at === fraction) return false;
    }
    if (c === 101 || c === 69) {
      let sign = 1;
      c = bytes[++at];
      if (c === minus || c === 43) {
        if (c === minus) sign = -1;
        c = bytes[++at];
      }
      const begin = at;
      let power = 0;
      for (; c >= zero && c <= 57; c = bytes[++at]) power = Math.min(9999, power * 10 + (c - zero));
      if (at === begin) return false;
      exponent += sign * power;
    }
    if (at > end) return false;
    let value: number;
    if (exponent === 0) value = mantissa;
    else if (exponent >= -22 && exponent <= 22)
      value = exponent < 0 ? mantissa / powers[-exponent] : mantissa * powers[exponent];
    else value = Math.abs(Number(bytes.toString('latin1', from, at)));
    this.#number = negative ? -value : value;
    this.#at = at;
    return true;
  }
}

/** Whether a key is at a place: four bytes at a time, then those that are left. */
function matches(bytes: Buffer, view: DataView, at: number, { bytes: wanted, words }: Key): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let i = 0; i < words.length; i++) if (view.getInt32(at + 4 * i, true) !== words[i]) return false;
  for (let i = 4 * words.length; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
