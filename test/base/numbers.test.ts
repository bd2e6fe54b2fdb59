/** Numbers as people read them: few digits, and the borders between one form and the next. */
import { expect, it } from 'vitest';
import { amount, counted, duration, grouped, number, short, whole } from '../../src/base/numbers.ts';

it('amounts in a sentence have three digits, and exponents where they would be long', () => {
  const shown = [0.0061234, -212.4, 1234.5, 999_999, 1e6, 1.2345e7, 1e-4, 9.99e-5, 0].map(amount);
  expect(shown).toEqual(['0.00612', '-212', '1,235', '999,999', '1e+6', '1.2e+7', '0.0001', '1e-4', '0']);
  expect([Number.NaN, 1 / 0, -1 / 0].map(amount)).toEqual(['NaN', 'inf', '-inf']);
});

it('steps and counts have commas, small ones two decimals', () => {
  expect([0, 99.994, 99.996, 100.4, 1234567, -1234].map(whole)).toEqual([
    '0',
    '99.99',
    '100',
    '100',
    '1,234,567',
    '-1,234',
  ]);
  expect(whole(1e15)).toBe('1.00e+15');
  expect(grouped(1234.6)).toBe('1,235');
  expect([counted(1, 'run'), counted(2, 'run'), counted(0, 'run')]).toEqual(['1 run', '2 runs', '0 runs']);
});

it('short ones have at most five characters, at the borders too', () => {
  const shown = [999, 1000, 99_940, 99_960, 999_499, 1e6, 123_456_789, 5e9, -1500].map(short);
  expect(shown).toEqual(['999', '1.0k', '99.9k', '100k', '999k', '1.0M', '123M', '5.0B', '-1.5k']);
});

it('columns keep the place of the point', () => {
  expect([0.00612345, 1, 99.994, 100, -212.44, 1e6, 9e-5, 0, undefined].map(number)).toEqual([
    '0.00612',
    '1.00',
    '99.99',
    '100.0',
    '-212.4',
    '1.0e+6',
    '9.0e-5',
    '0',
    '-',
  ]);
});

it('durations turn from minutes to hours at the hour, to days at a hundred hours', () => {
  expect([0, 75, 3599, 3600, 3675, 359_999, 360_000, Number.NaN].map(duration)).toEqual([
    '0:00',
    '1:15',
    '59:59',
    '1h00m',
    '1h01m',
    '99h59m',
    '4d',
    '?',
  ]);
});
