import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isObject, parseJson } from '../../../src/doctor/readers/json.ts';
import { jsonCell, missing, noNumber, readNumber } from '../../../src/doctor/readers/numbers.ts';
import { parsePythonDict } from '../../../src/doctor/readers/python.ts';
import { processorMs } from '../../support/processor-time.ts';

describe('readNumber', () => {
  it.each([
    ['NaN', Number.NaN],
    ['nan', Number.NaN],
    ['-nan', Number.NaN],
    ['np.float64(nan)', Number.NaN],
    ['np.float32(0.25)', 0.25],
    ["tensor(0.5, device='cuda:0')", 0.5],
    ['tensor(nan)', Number.NaN],
    ['inf', Number.POSITIVE_INFINITY],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-inf', Number.NEGATIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
    ['np.float64(-inf)', Number.NEGATIVE_INFINITY],
    ['True', 1],
    ['false', 0],
    ['1e-05', 1e-5],
    ['+3.', 3],
    ['.5', 0.5],
    [' 7 ', 7],
  ])('%s is %d', (text, value) => {
    expect(readNumber(text)).toEqual(value);
  });

  it.each(['', ' ', 'null', 'None', 'none', 'N/A', '<NA>'])('%j is missing, not broken', text => {
    expect(readNumber(text)).toBe(missing);
  });

  it.each([
    '0x1f',
    '1e',
    '1.2.3',
    'abc',
    '1,5',
    '[1.0]',
    'f(g(1))',
    '2024-01-01',
    '1_000',
    'Infinite',
    '--1',
  ])('%j is no number', text => {
    expect(readNumber(text)).toBe(noNumber);
  });

  it('takes a decimal comma only when told', () => {
    expect(readNumber('0,5', true)).toBe(0.5);
    expect(readNumber('0,5')).toBe(noNumber);
  });

  it('reads back every double as JavaScript and Python print it', () => {
    fc.assert(
      fc.property(fc.double(), value => {
        expect(readNumber(String(value))).toEqual(value === 0 ? Number(String(value)) : value);
        expect(readNumber(`np.float64(${value})`)).toEqual(value === 0 ? Number(String(value)) : value);
      }),
    );
  });
});

describe('parseJson', () => {
  it('takes what Python writes for what is not finite', () => {
    expect(
      parseJson('{"a": NaN, "b": -Infinity, "c": [Infinity, 1], "d": "NaN in \\"text\\" Infinity"}'),
    ).toEqual({
      a: 'NaN',
      b: '-Infinity',
      c: ['Infinity', 1],
      d: 'NaN in "text" Infinity',
    });
  });

  it('is undefined for what is not JSON', () => {
    for (const text of ['', '{', '{"a": NaN', 'NaNa', '{"a": "NaN}', '{\\"NaN'])
      expect(isObject(parseJson(text))).toBe(false);
  });

  it('takes linear time on damaged lines', () => {
    const started = processorMs();
    expect(parseJson(`{"a": NaN, "${'\\"'.repeat(2_000_000)}`)).toBeUndefined();
    expect(processorMs() - started).toBeLessThan(3000);
  });

  it('agrees with JSON.parse on every value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(parseJson(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe('parsePythonDict', () => {
  it('reads literals and wrapped numbers', () => {
    const line = `{'loss': 0.1, "a/b": np.float64(nan), 'none': None, 'ok': True, 'list': [1, 'x'], 'in': {'deep': -2e-3}, 'str': '0.5'} tail`;
    expect(parsePythonDict(line, 0)).toEqual({
      loss: 0.1,
      'a/b': Number.NaN,
      none: null,
      ok: 1,
      list: [1, 'x'],
      in: { deep: -0.002 },
      str: '0.5',
    });
  });

  it('is undefined for what is cut or not literal, and never runs', () => {
    for (const text of [
      "{'a': 1",
      "{'a' 1}",
      "{'a': 'b}",
      '{1: 2}',
      "{'a': {'b': 1}",
      `${"{'a': ".repeat(50)}1${'}'.repeat(50)}`,
    ]) {
      expect(parsePythonDict(text, 0)).toBeUndefined();
    }
    expect(Object.getPrototypeOf(parsePythonDict("{'__proto__': {'x': 1}}", 0))).toBeNull();
  });
});

it('values of JSON: numbers, texts that spell one, and flags as 1 and 0; null is none', () => {
  expect([1.5, 'NaN', '0.5', true, false].map(jsonCell)).toEqual([1.5, Number.NaN, 0.5, 1, 0]);
  expect([null, undefined].map(jsonCell)).toEqual([missing, missing]);
  expect([{}, [1], 'text'].map(jsonCell)).toEqual([noNumber, noNumber, noNumber]);
});
