import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkAlike, fieldsOf, fromJson, toJson } from '../../src/envs/plain-data.ts';

const roundTrip = (value: unknown): unknown =>
  fromJson(JSON.parse(JSON.stringify(toJson(value, 'it'))), 'it');

describe('plain data as JSON', () => {
  it('keeps every bit', () => {
    const values = [
      0,
      -0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      5e-324,
      0.1,
      Number.MAX_VALUE,
    ];
    const back = roundTrip(values) as number[];
    values.forEach((value, i) => {
      expect(Object.is(back[i], value)).toBe(true);
    });
    const typed = {
      a: Float64Array.from(values),
      b: Float32Array.from(values),
      c: new Uint8Array([1, 2]),
      d: new Int32Array(0),
    };
    const typedBack = roundTrip(typed) as typeof typed;
    expect(typedBack).toEqual(typed);
    expect(Object.is(typedBack.a[1], -0)).toBe(true);
    expect(roundTrip({ s: 'text', n: null, t: true, o: { list: [[], {}] } })).toEqual({
      s: 'text',
      n: null,
      t: true,
      o: { list: [[], {}] },
    });
  });

  it('keeps any plain data', () => {
    const plain = fc.jsonValue({ maxDepth: 3 }).filter(value => !JSON.stringify(value).includes('"$'));
    fc.assert(
      fc.property(plain, value => {
        expect(roundTrip(value)).toEqual(value);
      }),
    );
  });

  it.each([
    [{ when: new Date(0) }, /it.when is a Date, which JSON cannot hold/],
    [{ seen: new Map() }, /it.seen is a Map/],
    [[1, undefined], /it\[1\] is undefined/],
    [{ f: () => 1 }, /it.f is the function f/],
    [{ n: 10n }, /it.n is 10n/],
    [{ view: new DataView(new ArrayBuffer(1)) }, /it.view is a DataView/],
    [{ $number: '1' }, /names with \$ are taken/],
  ])('refuses %s', (value, message) => {
    expect(() => toJson(value, 'it')).toThrow(message);
  });

  it('refuses what is nested without end', () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(() => toJson(loop, 'it')).toThrow(/cyclic/);
  });

  it('refuses JSON that it did not write', () => {
    expect(() => fromJson({ $number: 'seven' }, 'it')).toThrow(/not a number/);
    expect(() => fromJson({ $Float64Array: ['x'] }, 'it')).toThrow(/it\[0\] is "x", not a number/);
    expect(() => fromJson({ $Float99Array: [] }, 'it')).toThrow(/did not write/);
    expect(() => fromJson({ $constructor: [] }, 'it')).toThrow(/did not write/);
    expect(() => fromJson(undefined, 'it')).toThrow(/not JSON/);
    expect(() => fieldsOf([], ['a'], 'it')).toThrow(/not an object/);
  });

  it('finds data of another make', () => {
    const template = { x: 1, on: true, list: [1], maybe: null, at: { y: 2 }, row: new Float32Array(2) };
    const check = (change: object): void => checkAlike({ ...template, ...change }, template, 'state');
    check({});
    check({ list: [], maybe: { any: 1 }, at: null, row: new Float32Array(9) });
    expect(() => check({ x: '1' })).toThrow(/state.x is "1", a string, not a number/);
    expect(() => check({ x: null })).toThrow(/state.x is null/);
    expect(() => check({ list: [1, 'b'] })).toThrow(/state.list\[1\]/);
    expect(() => check({ at: {} })).toThrow(/state.at has no y/);
    expect(() => check({ more: 1 })).toThrow(/unknown field "more"/);
    expect(() => check({ row: [1, 2] })).toThrow(/an array, not a Float32Array/);
  });
});
