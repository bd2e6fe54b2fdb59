/** Which seeds tune and which report: the two are apart by number, so that a result is never of the seeds that chose it. */
import { show } from '../base/errors.ts';
import { maxSeeds } from './checks.ts';
import type { Params, Trial } from './schema.ts';

/** Seeds from here on judge what was tuned on lower ones. */
const firstReportingSeed = 1000;
const blockSize = 100;
/** Fresh seeds that one winner may have: the next one's must not be among them. */
export const mostReportingSeeds: number = blockSize;

/**
 * The seeds that a list, a range such as `0..2` (both ends included) or a count means; or, as a text, why they are none. A
 * count is of the first ones, from 0 on.
 */
export function seedsOf(given: unknown): readonly number[] | string {
  if (typeof given === 'number')
    return isCount(given) && given >= 1 && given <= maxSeeds
      ? upTo(0, given - 1)
      : `is ${show(given)}, a count from 1 to ${maxSeeds}: write 3, 0..2 or [0, 1, 2]`;
  if (typeof given === 'string') {
    const [, first, last] = /^\s*(\d{1,15})\s*\.\.\s*(\d{1,15})\s*$/.exec(given) ?? [];
    if (first === undefined) return `is ${show(given)}: write a range such as 0..2, a list or a count`;
    const [from, to] = [Number(first), Number(last)];
    if (to < from) return `is ${show(given)}, which is empty: write the lower seed first`;
    if (to - from >= maxSeeds) return `is ${show(given)}, ${to - from + 1} seeds: at most ${maxSeeds}`;
    return upTo(from, to);
  }
  if (!Array.isArray(given)) return `is ${show(given)}: write a range such as 0..2, a list or a count`;
  if (given.length === 0 || given.length > maxSeeds)
    return `has ${given.length} seeds: write from 1 to ${maxSeeds}`;
  const wrong: unknown = given.find(seed => !isCount(seed));
  if (wrong !== undefined) return `has ${show(wrong)}: a seed is a whole number from 0 on`;
  const twice = given.find((seed, i) => given.indexOf(seed) !== i);
  if (twice !== undefined) return `has ${twice} twice: the same seed gives the same run`;
  return given as number[];
}

/** Seeds that may tune; or, as a text, why not. */
export function tuningSeedsOf(given: unknown): readonly number[] | string {
  const seeds = seedsOf(given);
  if (typeof seeds === 'string') return seeds;
  const late = seeds.find(seed => seed >= firstReportingSeed);
  if (late === undefined) return seeds;
  return `has ${late}: seeds from ${firstReportingSeed} on report what was tuned on lower ones, so none of them may tune; use 0 to 9`;
}

/**
 * The seeds that report a winner. One that was chosen after a look at some of them has been tuned on those, too: every other
 * winner gets the next block. The same one gets the same again, so that what was stopped goes on.
 */
export function reportingSeeds(
  trials: readonly Pick<Trial, 'purpose' | 'params' | 'seeds'>[],
  winner: Params,
  count: number,
): readonly number[] {
  const spent = new Set(
    trials
      .filter(({ purpose, params }) => purpose === 'confirm-winner' && !sameParams(params, winner))
      .flatMap(({ seeds }) => seeds.map(blockOf)),
  );
  let block = 0;
  while (spent.has(block)) block++;
  const from = firstReportingSeed + block * blockSize;
  return upTo(from, from + count - 1);
}

const blockOf = (seed: number): number => Math.floor((seed - firstReportingSeed) / blockSize);

/** Whatever the order in which they are written. */
export const sameParams = (a: Params, b: Params): boolean => textOf(a) === textOf(b);

const textOf = (params: Params): string =>
  JSON.stringify(Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1)));

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
