/** What scores of several seeds come to, how far chance may have moved it, and which of two is better. */
import { Rng } from '../random/rng.ts';
import { interquartileMean } from './interquartile-mean.ts';
import type { Aggregate } from './schema.ts';

export { interquartileMean } from './interquartile-mean.ts';

const COVERED = 0.95;

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** What some values come to. NaN of none, and where one of them is NaN: a seed without a value is not left out in silence. */
export function aggregate(kind: Aggregate, values: readonly number[]): number {
  if (values.length === 0 || values.some(Number.isNaN)) return Number.NaN;
  switch (kind) {
    case 'iqm':
      return interquartileMean(values);
    case 'mean':
      return mean(values);
    case 'median': {
      const sorted = [...values].sort((a, b) => a - b);
      const middle = Math.floor(sorted.length / 2);
      return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
    case 'min':
      return Math.min(...values);
    case 'max':
      return Math.max(...values);
    default:
      return kind satisfies never;
  }
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** How often scores are drawn again, and where the draws come from. */
export interface Resampling {
  readonly rng?: Rng;
  readonly resamples?: number;
  /** Of what the interval is; the interquartile mean unless told. */
  readonly of?: Aggregate;
}

/**
 * Between which values the interquartile mean over all seeds lies, by drawing the scores again and again: with 20 seeds in 95
 * of 100 cases, with 5 in some 92, with 3 in some 76.
 */
export function bootstrapInterval(
  scores: readonly number[],
  { rng = new Rng(0), resamples = 10_000, of = 'iqm' }: Resampling = {},
): Interval {
  return middleOf(Array.from({ length: resamples }, () => aggregate(of, drawnAgain(scores, rng))));
}

/** How probable it is that a run of one beats a run of the other. */
export interface Improvement {
  readonly probability: number;
  readonly interval: Interval;
}

/**
 * The probability that a score of `a`, drawn by chance, is above one of `b`; equal ones count half (Mann and Whitney's U,
 * as in rliable). 0.5 is no difference. The interval draws both again.
 */
export function probabilityOfImprovement(
  a: readonly number[],
  b: readonly number[],
  { rng = new Rng(0), resamples = 2000 }: Omit<Resampling, 'of'> = {},
): Improvement {
  const again = Array.from({ length: resamples }, () => shareAbove(drawnAgain(a, rng), drawnAgain(b, rng)));
  return { probability: shareAbove(a, b), interval: middleOf(again) };
}

/** The share of pairs in which the first is larger. */
function shareAbove(a: readonly number[], b: readonly number[]): number {
  let above = 0;
  for (const one of a) for (const other of b) above += one > other ? 1 : one === other ? 0.5 : 0;
  return above / (a.length * b.length);
}

const drawnAgain = (scores: readonly number[], rng: Rng): number[] =>
  scores.map(() => scores[Math.floor(rng.uniform() * scores.length)]);

/** Where the middle 95 % of some values lie. */
function middleOf(values: readonly number[]): Interval {
  const sorted = [...values].sort((a, b) => a - b);
  const left = (1 - COVERED) / 2;
  return { low: quantile(sorted, left), high: quantile(sorted, 1 - left) };
}

/** Of sorted numbers, with straight lines between them. */
function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
