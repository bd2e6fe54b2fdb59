/** Which seeds tune and which report: the two are apart by number, so that a result is never of the seeds that chose it. */
import { show } from '../base/errors.ts';
import { maxSeeds } from './checks.ts';
import type { Trial } from './schema.ts';

/** Seeds from here on judge what was tuned on lower ones. */
export const firstReportingSeed = 1000;
const blockSize = 100;

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
 * Seeds to report on that no trial was reported on before. A study that goes on after it has seen those of one block has been
 * tuned on them, too: it gets the next block.
 */
export function freshSeeds(
  trials: readonly Pick<Trial, 'purpose' | 'seeds'>[],
  count: number,
): readonly number[] {
  const seen = trials.filter(({ purpose }) => purpose !== 'search').flatMap(({ seeds }) => seeds);
  const last = seen.reduce((most, seed) => Math.max(most, seed), firstReportingSeed - 1);
  const blocks = Math.ceil((last + 1 - firstReportingSeed) / blockSize);
  const from = firstReportingSeed + blocks * blockSize;
  return upTo(from, from + count - 1);
}

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
