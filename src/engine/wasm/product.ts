/**
 * Matrix products: every result adds up its terms one after the other, from the bias or 0, so that it depends neither on
 * how many rows there are nor on which of them are computed together.
 *
 * Blocks of 2 rows and 16 columns stay in registers: 8 sums, 4 vectors of the right side, one value of the left. (Of the
 * blocks that 16 registers hold, this one and 4 x 8 are fastest: 45 GFLOP/s on a core where larger ones reach 25.)
 */

import type { Variable } from './mathematics.ts';
import {
  type Code,
  i32,
  type Local,
  multiplyAdd,
  repeatWhile,
  v128,
  type WasmFunction,
  wasmFunction,
} from './module.ts';

export interface ProductShape {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
  /** The left side is stored as (inner, rows). */
  readonly transposeA: boolean;
  /** What the sums begin with: 0, a bias, or what the result holds already. */
  readonly start: 'zero' | 'bias' | 'result';
}

/**
 * Terms of a product with a transposed left side that are added up in one go: with more, both sides leave the nearest
 * cache (256 terms of 64 x 64 results at once: 30 GFLOP/s; in parts: 45). The sums are the same to the bit.
 */
export const MOST_TERMS = 64;

/** Rows and vectors of a block for so many columns that are left. */
function blockFor(columns: number, rows: number): { vectors: number; height: number } {
  if (rows === 1 && columns >= 32) return { vectors: 8, height: 1 };
  if (columns >= 16) return { vectors: 4, height: 2 };
  if (columns >= 8) return { vectors: 2, height: 4 };
  return { vectors: 1, height: 4 };
}

/** A function of the addresses of left side, right side, result and bias. */
export function productFunction({ rows, inner, columns, transposeA, start }: ProductShape): WasmFunction {
  const write: Parameters<typeof wasmFunction>[2] = ([a, b, c, bias], variable) => {
    const [left, right, end, from, to] = Array.from({ length: 5 }, () => variable('i32'));
    const row = variable('i32');
    const value = variable('v128');
    const [aRow, aStep] = transposeA ? [4, 4 * rows] : [4 * inner, 4];
    const [bStep, cRow] = [4 * columns, 4 * columns];
    const pool: Local[] = [];
    const take = (count: number): Local[] => {
      while (pool.length < count) pool.push(variable('v128'));
      return pool.slice(0, count);
    };
    const begun = (r: number, at: number): Code => {
      if (start === 'bias') return v128.load(bias.get, at);
      return start === 'result' ? v128.load(to.get, r * cRow + at) : v128.floats(0);
    };
    /** A block at `from` (left side) and `to` (result), of columns that begin at `at`; `width` of its columns are real. */
    const block = (height: number, vectors: number, width: number, at: number): Code[] => {
      const locals = take(height * vectors + vectors);
      const sums = Array.from({ length: height }, (_, r) => locals.slice(r * vectors, (r + 1) * vectors));
      const rights = locals.slice(height * vectors);
      return [
        ...sums.flatMap((line, r) => line.map((sum, v) => sum.set(begun(r, at + 16 * v)))),
        left.set(from.get),
        right.set(b.get),
        end.set(i32.add(b.get, i32.constant(bStep * inner))),
        repeatWhile(i32.lessThan(right.get, end.get), [
          ...rights.map((local, v) => local.set(v128.load(right.get, at + 16 * v))),
          ...sums.flatMap((line, r) => [
            value.set(v128.loadSplat(left.get, r * aRow)),
            ...line.map((sum, v) => sum.set(multiplyAdd(value.get, rights[v].get, sum.get))),
          ]),
          left.set(i32.add(left.get, i32.constant(aStep))),
          right.set(i32.add(right.get, i32.constant(bStep))),
        ]),
        ...sums.flatMap((line, r) =>
          line.flatMap((sum, v) => stored(to, r * cRow + at + 16 * v, sum, width - 4 * v)),
        ),
      ];
    };
    /** All rows of some columns. */
    const strip = (vectors: number, height: number, width: number, at: number): Code[] => {
      const tall = Math.floor(rows / height);
      const steps: [number, number][] = [
        [tall, height],
        [rows - tall * height, 1],
      ];
      return [
        from.set(a.get),
        to.set(c.get),
        ...steps
          .filter(([times]) => times > 0)
          .map(([times, high]) => [
            ...row.set(i32.constant(times)),
            ...repeatWhile(row.get, [
              ...block(high, vectors, width, at),
              from.set(i32.add(from.get, i32.constant(high * aRow))),
              to.set(i32.add(to.get, i32.constant(high * cRow))),
              row.set(i32.sub(row.get, i32.constant(1))),
            ]),
          ]),
      ];
    };
    return strips(columns, rows, variable, [b, c, bias], strip);
  };
  const label = `product (${rows}, ${inner}, ${columns})${transposeA ? ' transposed' : ''}`;
  return wasmFunction('', ['i32', 'i32', 'i32', 'i32'], write, label);
}

/** Columns in strips: the same code again for those of one width, the rest by narrower ones. */
function strips(
  columns: number,
  rows: number,
  variable: Variable,
  moved: readonly Local[],
  strip: (vectors: number, height: number, width: number, at: number) => Code[],
): Code[] {
  const code: Code[] = [];
  let left = columns;
  while (left > 0) {
    const { vectors, height } = blockFor(left, rows);
    const width = 4 * vectors;
    const times = Math.max(1, Math.floor(left / width));
    const statements = strip(vectors, height, Math.min(width, left), 0);
    const advance = moved.map(local => local.set(i32.add(local.get, i32.constant(4 * width))));
    const counter = variable('i32');
    code.push(
      counter.set(i32.constant(times)),
      repeatWhile(counter.get, [
        ...statements,
        ...advance,
        counter.set(i32.sub(counter.get, i32.constant(1))),
      ]),
    );
    left -= times * width;
  }
  return code;
}

/** Stores as many of a vector's values as are real. */
function stored(to: Local, offset: number, value: Local, real: number): Code[] {
  if (real >= 4) return [v128.store(to.get, offset, value.get)];
  return Array.from({ length: Math.max(0, real) }, (_, lane) =>
    v128.storeLane(to.get, offset + 4 * lane, value.get, lane),
  );
}

/** Interleaves two vectors: the low halves of both, value by value, or the high ones. */
const zip = (a: Code, b: Code, high: boolean): Code => {
  const first = high ? 8 : 0;
  const value = (at: number): number[] => [0, 1, 2, 3].map(i => at + i);
  return v128.shuffle(a, b, [
    ...value(first),
    ...value(first + 16),
    ...value(first + 4),
    ...value(first + 20),
  ]);
};

/** A function of the addresses of a matrix (rows, columns) and its transpose, in squares of 4 where they fit. */
export function transposeFunction(rows: number, columns: number): WasmFunction {
  const write: Parameters<typeof wasmFunction>[2] = ([source, target], variable) => {
    const [from, to, i, j] = Array.from({ length: 4 }, () => variable('i32'));
    const lines = Array.from({ length: 4 }, () => variable('v128'));
    const halves = Array.from({ length: 4 }, () => variable('v128'));
    const square: Code[] = [
      ...lines.map((line, k) => line.set(v128.load(from.get, 4 * k * columns))),
      halves[0].set(zip(lines[0].get, lines[2].get, false)),
      halves[1].set(zip(lines[1].get, lines[3].get, false)),
      halves[2].set(zip(lines[0].get, lines[2].get, true)),
      halves[3].set(zip(lines[1].get, lines[3].get, true)),
      ...[0, 1, 2, 3].map(k => {
        const [a, b] = k < 2 ? [halves[0], halves[1]] : [halves[2], halves[3]];
        return v128.store(to.get, 4 * k * rows, zip(a.get, b.get, k % 2 === 1));
      }),
    ];
    const single: Code[] = [v128.storeLane(to.get, 0, v128.loadFirst(from.get, 0), 0)];
    const count = (local: Local, times: number, statements: readonly Code[]): Code[] =>
      times === 0
        ? []
        : [
            local.set(i32.constant(times)),
            repeatWhile(local.get, [...statements, local.set(i32.sub(local.get, i32.constant(1)))]),
          ];
    const move = (local: Local, bytes: number): Code => local.set(i32.add(local.get, i32.constant(bytes)));
    const [tall, wide] = [rows >> 2, columns >> 2];
    const at = (r: number, c: number): Code[] => [
      from.set(i32.add(source.get, i32.constant(4 * (r * columns + c)))),
      to.set(i32.add(target.get, i32.constant(4 * (c * rows + r)))),
    ];
    // Rows of squares; then the columns, and then the rows, that are left over, value by value.
    return [
      ...at(0, 0),
      ...(wide === 0
        ? []
        : count(i, tall, [
            ...count(j, wide, [...square, move(from, 16), move(to, 16 * rows)]),
            move(from, 4 * (4 * columns - 4 * wide)),
            move(to, 16 - 16 * rows * wide),
          ])),
      ...Array.from({ length: columns - 4 * wide }, (_, k) => [
        ...at(0, 4 * wide + k),
        count(i, 4 * tall, [...single, move(from, 4 * columns), move(to, 4)]).flat(),
      ]).flat(),
      ...Array.from({ length: rows - 4 * tall }, (_, k) => [
        ...at(4 * tall + k, 0),
        count(i, columns, [...single, move(from, 4), move(to, 4 * rows)]).flat(),
      ]).flat(),
    ];
  };
  return wasmFunction('', ['i32', 'i32'], write, `transpose (${rows}, ${columns})`);
}
