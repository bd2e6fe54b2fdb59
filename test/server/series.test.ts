/** Columns, envelopes and the scanner, against naive versions of themselves. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeRow } from '../../src/metrics/row.ts';
import { Column, meanOf, newStretch } from '../../src/server/series/column.ts';
import { envelopeOf, firstAt, rounded } from '../../src/server/series/envelope.ts';
import { RowScanner } from '../../src/server/series/row-scanner.ts';
import { Table } from '../../src/server/series/table.ts';

const value = fc.oneof(
  { weight: 8, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY) },
);
/** undefined is a row without a value. */
const cells = fc.array(fc.option(value, { nil: undefined, freq: 6 }), { minLength: 1, maxLength: 900 });

function columnOf(values: readonly (number | undefined)[], settleEvery = 7): Column {
  const column = new Column();
  values.forEach((v, i) => {
    if (v !== undefined) column.set(i, v);
    if (i % settleEvery === 0) column.settle();
  });
  return column;
}

function naive(values: readonly (number | undefined)[], from: number, to: number) {
  const there = values.slice(from, to).filter(v => v !== undefined);
  const finite = there.filter(Number.isFinite);
  return {
    count: there.length,
    broken: there.length - finite.length,
    min: finite.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    max: finite.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
    sum: finite.reduce((a, b) => a + b, 0),
  };
}

describe('column', () => {
  test('any stretch adds up as if it were added by hand', () => {
    fc.assert(
      fc.property(cells, fc.nat(900), fc.nat(900), (values, a, b) => {
        const column = columnOf(values);
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        const got = newStretch();
        column.add(from, to, got);
        const { sum, ...exact } = naive(values, from, to);
        expect({ ...got, sum: 0 }).toEqual({ ...exact, sum: 0 });
        expect(got.sum).toBeCloseTo(sum, 3);
      }),
      { numRuns: 300 },
    );
  });

  test('after a cut and other rows it is as if the cut ones had never been', () => {
    fc.assert(
      fc.property(cells, cells, fc.nat(900), (first, second, at) => {
        const rows = Math.min(at, first.length);
        const column = columnOf(first);
        column.cut(rows);
        second.forEach((v, i) => {
          if (v !== undefined) column.set(rows + i, v);
        });
        column.settle();
        const all = [...first.slice(0, rows), ...second];
        const got = newStretch();
        column.add(0, all.length, got);
        const { sum: _, ...exact } = naive(all, 0, all.length);
        expect(got).toMatchObject(exact);
        expect(column.points).toBe(exact.count);
      }),
      { numRuns: 200 },
    );
  });

  test('merging pairs loses neither the smallest nor the largest, nor how many there were', () => {
    fc.assert(
      fc.property(cells, fc.integer({ min: 1, max: 5 }), (values, times) => {
        const column = columnOf(values);
        let rows = values.length;
        for (let i = 0; i < times; i++) {
          column.mergePairs(rows);
          rows = Math.ceil(rows / 2);
        }
        const got = newStretch();
        column.add(0, rows, got);
        const { sum, ...exact } = naive(values, 0, values.length);
        expect(got).toMatchObject(exact);
        expect(got.sum).toBeCloseTo(sum, 3);
      }),
    );
  });
});

describe('envelope', () => {
  test('smallest, largest, mean and count of every bucket, against adding by hand', () => {
    fc.assert(
      fc.property(
        cells,
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 900, maxLength: 900 }),
        fc.integer({ min: 1, max: 60 }),
        (values, gaps, buckets) => {
          let at = 0;
          const x = Float64Array.from(values, (_, i) => {
            at += gaps[i];
            return at;
          });
          const column = columnOf(values);
          const window = { from: x[0], to: x.at(-1)!, buckets };
          const got = envelopeOf('m', column, x, x.length, window);
          const all = naive(values, 0, values.length);
          expect(got.count.reduce((a, b) => a + b, 0)).toBe(all.count);
          expect(got.broken.reduce((a, [, n]) => a + n, 0)).toBe(all.broken);
          const lows = got.min.filter(v => v !== null);
          const highs = got.max.filter(v => v !== null);
          if (lows.length > 0) {
            expect(Math.min(...lows)).toBe(rounded(all.min));
            expect(Math.max(...highs)).toBe(rounded(all.max));
          } else expect(all.count).toBe(all.broken);
          for (let i = 1; i < got.x.length; i++) expect(got.x[i] > got.x[i - 1]).toBe(true);
          // Each bucket by itself.
          let before = 0;
          for (let i = 0; i < got.x.length; i++) {
            const end = firstAt(x, x.length, got.x[i], true);
            const own = naive(values, before, end);
            expect(got.count[i]).toBe(own.count);
            expect(got.min[i]).toBe(own.count > own.broken ? rounded(own.min) : null);
            expect(got.max[i]).toBe(own.count > own.broken ? rounded(own.max) : null);
            before = end;
          }
          expect(got.x.length).toBeLessThanOrEqual(Math.max(buckets, 1));
        },
      ),
      { numRuns: 300 },
    );
  });

  test('rows at one place are one point, with all that they hold', () => {
    const x = Float64Array.of(1, 1, 2, 2, 2);
    const column = columnOf([5, 9, 3, -4, 1]);
    expect(envelopeOf('m', column, x, 5, { from: 0, to: 3, buckets: 10 })).toEqual({
      metric: 'm',
      x: [1, 2],
      min: [5, -4],
      max: [9, 3],
      mean: [7, 0],
      count: [2, 3],
      broken: [],
    });
  });

  test('one spike among a million points is there at every width', () => {
    const rows = 1_000_000;
    const column = new Column(rows);
    for (let i = 0; i < rows; i++) column.set(i, i === 654_321 ? 20 : 0.01);
    column.settle();
    const x = Float64Array.from({ length: rows }, (_, i) => i);
    for (const buckets of [1, 7, 600, 1999]) {
      const { max, mean } = envelopeOf('kl/step', column, x, rows, { from: 0, to: rows - 1, buckets });
      expect(max.filter(v => v === 20)).toHaveLength(1);
      expect(Math.max(...(mean as number[]))).toBeLessThan(20);
    }
    // And in a window that ends just on it, and not in one that ends just before.
    const seen = (from: number, to: number): number =>
      Math.max(...(envelopeOf('kl/step', column, x, rows, { from, to, buckets: 600 }).max as number[]));
    expect(seen(0, 654_321)).toBe(20);
    expect(seen(654_321, 999_999)).toBe(20);
    expect(seen(0, 654_320)).toBe(0.01);
    expect(seen(654_322, 999_999)).toBe(0.01);
  });

  test('numbers are rounded to seven digits, whatever their size', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), v => {
        const got = rounded(v)!;
        expect(Math.abs(got - v)).toBeLessThanOrEqual(Math.abs(v) * 1e-6 + 5e-324);
      }),
    );
    expect(rounded(0.123456789)).toBe(0.1234568);
    expect(rounded(Number.NaN)).toBeNull();
  });

  test('the mean is within its values even where their sum overflows', () => {
    const column = columnOf([1.7e308, 1.7e308, 1.6e308]);
    const stretch = newStretch();
    column.add(0, 3, stretch);
    expect(meanOf(stretch)).toBeGreaterThanOrEqual(1.6e308);
    expect(meanOf(stretch)).toBeLessThanOrEqual(1.7e308);
  });
});

describe('scanner', () => {
  const names = ['kl/step', 'loss/value', 'episode/return', 'env/a', 'env/b'];
  const rowArbitrary = fc.record(
    Object.fromEntries(names.map(name => [name, fc.oneof(fc.double(), fc.integer(), fc.constant(-0))])),
    { requiredKeys: [] },
  ) as fc.Arbitrary<Record<string, number>>;

  test('rows as they are written read back, cut into any pieces', () => {
    fc.assert(
      fc.property(
        fc.array(rowArbitrary, { maxLength: 40 }),
        fc.integer({ min: 1, max: 200 }),
        (rows, piece) => {
          const lines = rows.map((row, i) =>
            encodeRow({ 'train/iteration': i + 1, 'train/step': (i + 1) * 10, ...row }),
          );
          const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''));
          const table = new Table();
          const scanner = new RowScanner(table);
          let [offset, end] = [0, 0];
          while (end < bytes.length) {
            end = Math.min(bytes.length, end + piece);
            const got = scanner.scan(bytes.subarray(offset), end - offset, offset);
            expect(got.broken).toBe(0);
            offset += got.consumed;
          }
          expect(table.rows).toBe(rows.length);
          rows.forEach((row, i) => {
            for (const name of names) {
              const got = table.columns.get(name)?.at(i);
              const wanted = row[name];
              if (wanted === undefined || !Number.isFinite(wanted)) expect(Object.is(got, wanted)).toBe(true);
              // Two units in the last place.
              else expect(Math.abs(got! - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 4.5e-16 + 1e-323);
            }
          });
          expect(table.endOf(table.rows - 1)).toBe(bytes.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('what lies beyond the end in its buffer is of earlier bytes, and is not looked at', () => {
    const line = (i: number): string => `${encodeRow({ 'train/iteration': i, 'train/step': i })}\n`;
    const bytes = Buffer.from(line(1) + line(2));
    const table = new Table();
    expect(new RowScanner(table).scan(bytes, line(1).length + 3, 0)).toMatchObject({
      consumed: line(1).length,
      broken: 0,
    });
    expect(table.rows).toBe(1);
  });

  test('an iteration is a row once, also where steps stand still', () => {
    const table = new Table();
    const lines = [1, 1, 2].map(i => `${encodeRow({ 'train/iteration': i, 'train/step': 7 })}\n`).join('');
    const { broken, reason } = new RowScanner(table).scan(Buffer.from(lines), lines.length, 0);
    expect([broken, table.rows]).toEqual([1, 2]);
    expect(reason).toMatch(/iteration 1 after step 7, iteration 1: rows must go on/);
  });

  test('times never go back, whatever a clock said', () => {
    const table = new Table();
    for (const [i, time] of [Number.NaN, 50, 40, 60].entries()) table.begin(i, i + 1, time, i);
    expect([...table.axes.time.subarray(0, 4)]).toEqual([Number.NaN, 50, 50, 60]);
  });

  test('lines that are damaged, odd or of another order', () => {
    const table = new Table();
    const scanner = new RowScanner(table);
    const lines = [
      '{"train/iteration":1,"train/step":10,"kl/step":0.1}',
      '{ "train/step": 20, "train/iteration": 2, "kl/step": 1e-3 }', // spaces, another order
      '{"train/iteration":3,"train/step":30,"kl/step":"NaN"}',
      '{"train/iteration":4,"train/step":40,"kl/st', // cut
      'not json at all',
      '',
      '{"train/iteration":5,"kl/step":0.5}', // no step
      '{"train/iteration":6,"train/step":60,"kl/step":"0.5"}', // text
      '{"train/iteration":7,"train/step":70,"kl/step":01}', // not JSON
      '{"train/iteration":8,"train/step":80,"__proto__":1}',
      '{"train/iteration":9,"train/step":90,"kl/step":0.9}\r',
      '{"train/iteration":2,"train/step":20,"kl/step":0.1}', // goes back
      '{"train/iteration":10,"train/step":100,"kl\\u002fstep":0.25}', // an escape
    ];
    const bytes = Buffer.from(`${lines.join('\n')}\n{"train/iter`);
    const { consumed, broken, reason } = scanner.scan(bytes, bytes.length, 0);
    expect(consumed).toBe(bytes.length - '{"train/iter'.length);
    expect(broken).toBe(8);
    expect(reason).toMatch(/after step 90/);
    expect(table.rows).toBe(5);
    const kl = table.columns.get('kl/step')!;
    expect([0, 1, 2, 3, 4].map(i => kl.at(i))).toEqual([0.1, 0.001, Number.NaN, 0.9, 0.25]);
  });

  test('a table that is full merges rows and keeps the spike', () => {
    const table = new Table(6 * 4096);
    const column = table.column('kl/step');
    for (let i = 0; i < 100_000; i++) {
      const row = table.begin(i * 10, i + 1, i, i);
      column.set(row, i === 77_777 ? 9 : i === 5 ? Number.NaN : 0.5);
    }
    table.settle();
    expect(table.isMerged).toBe(true);
    expect(table.rows).toBeLessThan(9000);
    const { axes } = table;
    const got = envelopeOf('kl/step', column, axes.step, axes.length, { from: 0, to: 999_990, buckets: 100 });
    expect(Math.max(...(got.max as number[]))).toBe(9);
    expect(got.count.reduce((a, b) => a + b, 0)).toBe(100_000);
    expect(got.broken).toEqual([[0, 1]]);
    expect(got.x.at(-1)).toBe(999_990);
    for (let i = 1; i < axes.length; i++) expect(axes.step[i] > axes.step[i - 1]).toBe(true);
    // A merged row stands where the last of its rows stood.
    const stride = axes.iteration[0];
    expect(stride).toBeGreaterThan(1);
    for (const i of [0, 1, 2]) expect(axes.step[i]).toBe(10 * ((i + 1) * stride - 1));
  });
});
