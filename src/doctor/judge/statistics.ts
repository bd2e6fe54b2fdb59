/** What a sentence may say of rows of a series: each by name, with how it is worked out and how it is printed. */
import { blockMedians } from '../statistics/blocks.ts';
import { median, type Numbers, quantile, share, spread } from '../statistics/order.ts';
import { longestAbove } from '../statistics/stretches.ts';
import { theilSen, trend } from '../statistics/trend.ts';
import { courseOf } from './trends.ts';

interface Entry {
  /** `argument` is a level or a share, where the name asks for one. */
  work(values: Float64Array, argument: number): number;
  readonly print: 'number' | 'share' | 'count';
}

const number = (work: (values: Float64Array) => number): Entry => ({ work, print: 'number' });
const ofLevel = (holds: (value: number, level: number) => boolean): Entry => ({
  work: (values, level) => share(values, v => holds(v, level)),
  print: 'share',
});
const most = (values: Numbers): number => quantile(values, 1);
const least = (values: Numbers): number => quantile(values, 0);

export const statistics = {
  first: number(values => values[0]),
  last: number(values => values[values.length - 1]),
  median: number(median),
  least: number(least),
  most: number(most),
  range: number(values => most(values) - least(values)),
  spread: number(spread),
  /** The median of what is not below 0 and of what is, without the sign. */
  'median size': number(values => median(values.map(Math.abs))),
  'median size of the logarithm': number(values =>
    median(values.map(v => Math.abs(Math.log(Math.max(v, 1e-6))))),
  ),
  'largest size': number(values => most(values.map(Math.abs))),
  quantile: { work: quantile, print: 'number' },
  'quantile of the sizes': { work: (values, p) => quantile(values.map(Math.abs), p), print: 'number' },
  /** From the lowest to the highest, without a tenth at either end. */
  'range of most': number(values => quantile(values, 0.9) - quantile(values, 0.1)),
  /** The larger of the second and the 98th hundredth, without the sign: what returns come to. */
  'size of most': number(values =>
    Math.max(Math.abs(quantile(values, 0.02)), Math.abs(quantile(values, 0.98))),
  ),
  'root of the median': number(values => Math.sqrt(median(values))),
  'share above': ofLevel((v, level) => v > level),
  'share from': ofLevel((v, level) => v >= level),
  'share below': ofLevel((v, level) => v < level),
  'share up to': ofLevel((v, level) => v <= level),
  'share at': ofLevel((v, level) => v === level),
  /** The same of the medians of 20 stretches, for a series that scatters around 0. */
  'share of stretches above': {
    work: (values, level) => share(blockMedians(values, 20), v => v > level),
    print: 'share',
  },
  rows: { work: values => values.length, print: 'count' },
  'rows above': {
    work: (values, level) => values.reduce((n, v) => n + Number(v > level), 0),
    print: 'count',
  },
  'longest above': { work: (values, level) => longestAbove(values, level)?.length ?? 0, print: 'count' },
  /** Medians of the first and the last fifth, and how surely it goes one way. */
  'trend start': number(values => trend(values).start),
  'trend end': number(values => trend(values).end),
  'trend score': number(values => trend(values).z),
  'slope a row': number(values =>
    theilSen(
      Float64Array.from(values, (_, i) => i),
      values,
    ),
  ),
  /** By the tests of a trend. */
  'course start': number(values => courseOf(values).start),
  'course end': number(values => courseOf(values).end),
  'course change': number(values => courseOf(values).change),
  'course margin': number(values => courseOf(values).margin),
  'course score': number(values => courseOf(values).score),
  'course noise': number(values => courseOf(values).noise),
} as const satisfies Readonly<Record<string, Entry>>;

/** The name of a statistic. */
export type Statistic = keyof typeof statistics;
