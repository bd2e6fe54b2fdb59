/**
 * Which seeds report. Those that tune are below 1000; and as a winner that was chosen after a look at some seeds has been
 * tuned on them, too, every other winner is reported on the next hundred (docs/decisions/0011-fresh-seeds.md).
 */
import type { Params, Trial } from '../studies/schema.ts';

export const FIRST_REPORTING = 1000;
const BLOCK = 100;

export function confirmSeeds(trials: readonly Trial[], winner: Params, count: number): number[] {
  const spent = new Set(
    trials
      .filter(({ purpose, params }) => purpose === 'confirm-winner' && !sameParams(params, winner))
      .flatMap(({ seeds }) => seeds.map(seed => Math.floor((seed - FIRST_REPORTING) / BLOCK))),
  );
  let block = 0;
  while (spent.has(block)) block++;
  return Array.from({ length: count }, (_, i) => FIRST_REPORTING + block * BLOCK + i);
}

/** Whatever the order in which they are written. */
export const sameParams = (a: Params, b: Params): boolean => textOf(a) === textOf(b);

const textOf = (params: Params): string =>
  JSON.stringify(Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1)));
