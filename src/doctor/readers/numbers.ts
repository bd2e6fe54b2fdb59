/** The spellings of numbers in logs. Missing (no point) and broken (a point that is not finite) are different things. */

/** A cell that says that there is no value. */
export const missing = Symbol('missing');
/** A cell that is no number. */
export const noNumber = Symbol('no number');
export type Cell = number | typeof missing | typeof noNumber;

const words: ReadonlyMap<string, Cell> = new Map<string, Cell>([
  ['', missing],
  ['null', missing],
  ['none', missing],
  ['n/a', missing],
  ['na', missing],
  ['<na>', missing],
  ['-', missing],
  ['undefined', missing],
  ['nan', Number.NaN],
  ['+nan', Number.NaN],
  ['-nan', Number.NaN],
  ['-nan(ind)', Number.NaN],
  ['inf', Number.POSITIVE_INFINITY],
  ['+inf', Number.POSITIVE_INFINITY],
  ['infinity', Number.POSITIVE_INFINITY],
  ['+infinity', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
  ['true', 1],
  ['false', 0],
]);

const wrapper = /^[A-Za-z_][\w.]{0,40}\((.*)\)$/s;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Longer than any double is written. */
const longest = 400;

/**
 * A cell as a number. `np.float64(0.5)` and `tensor(0.5, device='cuda:0')` are what they hold, booleans 1 and 0.
 * With `decimalComma`, `0,5` is a half.
 */
export function readNumber(text: string, decimalComma = false): Cell {
  if (text.length > longest) return noNumber;
  const first = text.charCodeAt(0);
  // Digits, sign or point: nearly every cell. Conversion alone would also take '', '0x1f' and '0b1'.
  if ((first >= 48 && first <= 57) || first === 45 || first === 46 || first === 43) {
    const value = +text;
    const second = text.charCodeAt(1);
    if (!Number.isNaN(value) && !(first === 48 && second > 57 && second !== 69 && second !== 101))
      return value;
  }
  const word = text.trim();
  const known = words.get(word.toLowerCase());
  if (known !== undefined) return known;
  if (decimal.test(word)) return Number(word);
  if (decimalComma && /^[+-]?\d+,\d+(?:[eE][+-]?\d+)?$/.test(word)) return Number(word.replace(',', '.'));
  const wrapped = wrapper.exec(word);
  if (wrapped !== null) {
    const inner = wrapped[1].split(',', 1)[0].trim();
    return inner.includes('(') || inner === '' ? noNumber : readNumber(inner);
  }
  return noNumber;
}

/** A value of JSON as a number: text that spells one counts ("NaN", "0.5"), null does not. */
export function jsonCell(value: unknown): Cell {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value === null || value === undefined) return missing;
  return typeof value === 'string' ? readNumber(value) : noNumber;
}
