/** The limits of how a curve went, each from both sides: what a return has come to, and the shape of any series. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import { courseOf, rises, type Shape } from '../../../../src/doctor/judge/trends.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { type Progress, progressOf } from '../../../../src/doctor/rules/progress.ts';
import { trackOf } from '../../../../src/doctor/rules/track.ts';
import type { AtLimits, Sides } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

type Curve = (i: number, n: number) => number;

/** A curve with what is asked of it; `n` points, `p` is the number that is moved over the limit. */
interface Asked<T> {
  readonly curve: (p: number) => Curve;
  readonly asks: (of: T) => boolean;
  readonly inside: LimitTable;
  readonly outside: LimitTable;
}

const saw = (i: number, size = 1): number => (i % 2 === 0 ? -size : size);
/** Noise without order that is the same each time. */
const chance = (i: number): number => (Math.sin(12.9898 * (i + 1)) * 43758.5453) % 1;

const valuesOf = <T>({ curve }: Asked<T>, { n = 40, p = 0 }: LimitTable): number[] =>
  rows(n, i => curve(p)(i, n));

/** The second half of twelve points, of which so many pairs descend. */
const disordered = (descending: number): Curve => {
  const middle = descending === 3 ? [4, 1, 2, 3] : [4, 1, 3, 2];
  return i => [0, ...middle, 100][i - 6] ?? 0;
};

const progress: Readonly<Record<string, Asked<Progress>>> = {
  improvedNoise: {
    curve: p => (i, n) => (p * i) / n + saw(i),
    asks: of => of.improved,
    inside: { p: 3.3 },
    outside: { p: 3.2 },
  },
  improvingNoise: {
    curve: p => i => (i <= 21 ? saw(i) : (p * (i - 21)) / 18),
    asks: of => of.improving,
    inside: { p: 3.9 },
    outside: { p: 3.6 },
  },
  improvingRange: {
    curve: p => (i, n) => (i < 5 ? 0 : 100 + (p * Math.max(0, 2 * i - n)) / n),
    asks: of => of.improving,
    inside: { p: 2.6 },
    outside: { p: 2.4 },
  },
  improvingScore: {
    curve: disordered,
    asks: of => of.improving,
    inside: { n: 12, p: 3 },
    outside: { n: 12, p: 4 },
  },
  drawdownNoise: {
    curve: p => i => (i < 20 ? 4 * i : 76 - p) + saw(i),
    asks: of => of.drawdown > 0,
    inside: { p: 14.8 },
    outside: { p: 14.2 },
  },
  settledBlocks: {
    curve: () => i => (i > 0 && i < 4 ? 100 : 0),
    asks: of => of.collapsed,
    inside: { n: 8 },
    outside: { n: 7 },
  },
  keptNoise: {
    curve: p => i => (i === 0 ? 0 : p + saw(i)),
    asks: of => of.kept,
    inside: { p: 11.8 },
    outside: { p: 11.4 },
  },
  keptShare: {
    curve: p => (i, n) => (i === 0 ? 0 : i < n / 2 ? 100 : p),
    asks: of => of.kept,
    inside: { p: 61 },
    outside: { p: 59 },
  },
  keptRise: {
    curve: p => i => (i === 0 ? 0 : (i < 6 ? p : 50) + saw(i)),
    asks: of => of.kept,
    inside: { p: 7.4 },
    outside: { p: 7.2 },
  },
  gainedNoise: {
    curve: p => (i, n) => (i < n / 2 ? 0 : p) + saw(i),
    asks: of => of.gained,
    inside: { p: 8.6 },
    outside: { p: 8.4 },
  },
  collapsedShare: {
    curve: p => (i, n) => (i < 6 ? 0 : i < n / 2 ? 100 : 100 - p),
    asks: of => of.collapsed,
    inside: { p: 51 },
    outside: { p: 49 },
  },
  belowNoise: {
    curve: p => (i, n) => (i < n / 2 ? 0 : -p) + saw(i),
    asks: of => of.collapsed,
    inside: { p: 14.7 },
    outside: { p: 14.5 },
  },
  belowShare: {
    curve: p => i => (i < 18 ? 0 : i < 22 ? -100 : -p) - 1e-6 * i,
    asks: of => of.collapsed,
    inside: { p: 61 },
    outside: { p: 59 },
  },
  constantRows: {
    curve: () => () => 7,
    asks: of => of.constant,
    inside: { n: 5 },
    outside: { n: 4 },
  },
  constant: {
    curve: p => i => 1 + (i % 2) * p,
    asks: of => of.constant,
    inside: { p: 0.95e-9 },
    outside: { p: 1.05e-9 },
  },
  ceilingBlocks: {
    curve: () => (i, n) => (i < 1 ? 0 : i < n - 2 ? 50 : 100),
    asks: of => of.saturated,
    inside: { n: 6 },
    outside: { n: 5 },
  },
  ceiling: {
    curve: p => (i, n) => (i < n / 2 ? (100 * i) / n : i === n - 1 ? 100 : 100 - p),
    asks: of => of.saturated,
    inside: { p: 2.8 },
    outside: { p: 2.9 },
  },
  ceilingShare: {
    curve: p => (i, n) => (i < n / 2 ? (100 * i) / n : i >= 30 && i < 40 - p ? 50 : 100),
    asks: of => of.saturated,
    inside: { p: 6 },
    outside: { p: 5 },
  },
  ceilingNoise: {
    curve: p => i => (i < 30 ? saw(i) : p),
    asks: of => of.saturated,
    inside: { p: 5.4 },
    outside: { p: 5.2 },
  },
  same: {
    curve: p => i => (i === 20 ? 100 : i % 4 === 0 ? 50 : 100 * (1 - p)),
    asks: of => of.saturated,
    inside: { p: 0.95e-9 },
    outside: { p: 1.05e-9 },
  },
  atOnceRange: {
    curve: p => i => (i === 0 ? 0 : i === 20 ? -p : 100),
    asks: of => of.saturated,
    inside: { p: 103 },
    outside: { p: 105 },
  },
  atOnceCeiling: {
    curve: p => i => (i === 0 ? 0 : i === 20 ? 100 : 100 - p),
    asks: of => of.saturated,
    inside: { p: 4.9 },
    outside: { p: 5.1 },
  },
  atOnceBlocks: {
    curve: p => i => (i === 0 ? 0 : i >= 10 && i < 10 + p ? 50 : 100),
    asks: of => of.saturated,
    inside: { p: 7 },
    outside: { p: 8 },
  },
};

const is = (shape: Shape) => (values: readonly number[]) => courseOf(values).shape === shape;
const surely = (values: readonly number[]): boolean => rises(courseOf(values));

const trends: Readonly<Record<string, Asked<readonly number[]>>> = {
  points: { curve: () => i => i, asks: of => courseOf(of).score !== 0, inside: { n: 6 }, outside: { n: 5 } },
  score: {
    curve: p => (i, n) => (p * i) / n + chance(i),
    asks: surely,
    inside: { n: 19, p: 1.75 },
    outside: { n: 19, p: 1.65 },
  },
  bentScore: {
    curve: p => (i, n) => (i / n - p) ** 2,
    asks: surely,
    inside: { n: 19, p: 0.34 },
    outside: { n: 19, p: 0.345 },
  },
  bentMargins: {
    curve: p => (i, n) => (i / n - 0.3) ** 2 + p * chance(i),
    asks: surely,
    inside: { n: 19, p: 0.128 },
    outside: { n: 19, p: 0.134 },
  },
  apart: {
    curve: p => (i, n) =>
      i < n / 5
        ? 2.5 * chance(i)
        : i >= n - n / 5
          ? p + 2.5 * chance(i)
          : p / 4 + (p * i) / (2 * n) + 0.3 * chance(i),
    asks: surely,
    inside: { n: 20, p: 1.28 },
    outside: { n: 20, p: 1.21 },
  },
  fifth: {
    curve: () => (i, n) => (i < n / 5 ? 0 : i >= n - n / 5 ? 1.2 : 0.6) + chance(i),
    asks: surely,
    inside: { n: 20 },
    outside: { n: 19 },
  },
  flat: {
    curve: p => (i, n) => (p * i) / n + chance(i),
    asks: is('flat'),
    inside: { p: 0.13 },
    outside: { p: 0.145 },
  },
  peakNoise: {
    curve: p => (i, n) => p * (1 - Math.abs((2 * i) / n - 1)) + saw(i),
    asks: is('peak-then-fall'),
    inside: { n: 100, p: 19.5 },
    outside: { n: 100, p: 18.5 },
  },
  lost: {
    curve: p => i => (i < 40 ? 2.5 * i : 100 - p * Math.min(1, (i - 40) / 40)),
    asks: is('peak-then-fall'),
    inside: { n: 100, p: 51 },
    outside: { n: 100, p: 49 },
  },
  stepPoints: {
    curve: () => (i, n) => (i < n / 2 ? 0 : 10) + 0.1 * saw(i),
    asks: is('step'),
    inside: { n: 20 },
    outside: { n: 19 },
  },
  atOnce: {
    curve: p => (i, n) => (i < n / 2 ? 0 : p) + ((10 - p) * i) / n + 0.1 * saw(i),
    asks: is('step'),
    inside: { n: 100, p: 7 },
    outside: { n: 100, p: 6.6 },
  },
  stepSpread: {
    curve: p => (i, n) => (i < n / 2 ? 0 : p) + chance(i),
    asks: is('step'),
    inside: { n: 100, p: 3.6 },
    outside: { n: 100, p: 3.3 },
  },
  spike: {
    curve: p => i => (i % 30 === 17 ? p : chance(i)),
    asks: is('spikes'),
    inside: { n: 100, p: 7.2 },
    outside: { n: 100, p: 6.7 },
  },
  spikes: {
    curve: p => i => (i % 9 === 4 && i < 9 * p ? 100 : saw(i)),
    asks: is('spikes'),
    inside: { n: 100, p: 10 },
    outside: { n: 100, p: 11 },
  },
};

function atLimits<T>(
  table: string,
  asked: Readonly<Record<string, Asked<T>>>,
  of: (values: number[], limit: string) => T,
): AtLimits {
  const names = Object.keys(asked);
  const one = ({ limit = 0 }: LimitTable): Asked<T> => asked[names[limit]];
  return {
    code: table,
    make: (at): CanonicalRun => run({ 'episode/return': valuesOf(one(at), at) }),
    says: (made, at) => {
      const values = [...(made.series.get('episode/return')?.series.values ?? [])];
      return one(at).asks(of(values, names[at.limit ?? 0]));
    },
    cases: Object.fromEntries(
      Object.entries(asked).map(([name, { inside, outside }], limit): [string, Sides] => [
        name,
        [
          { ...inside, limit },
          { ...outside, limit },
        ],
      ]),
    ),
  };
}

export const course: readonly AtLimits[] = [
  atLimits('progress', progress, (values, limit) => {
    const { series } = run({ 'episode/return': values });
    return progressOf(trackOf(series.get('episode/return')!), limit === 'same' || limit === 'ceilingBlocks');
  }),
  atLimits('trends', trends, values => values),
];
