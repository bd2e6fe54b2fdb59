/** Where a series of a language-model run begins and ends, and what else several of these rules ask. */
import { median, share } from '../../statistics/order.ts';
import type { Progress } from '../progress.ts';
import { part, type Track } from '../track.ts';

/** The level of the first tenth, of three rows at least. */
export const early = (track: Track): number =>
  median(track.v.subarray(0, Math.min(track.n, Math.max(3, Math.floor(track.n / 10)))));

/** The level of the last fifth. */
export const late = (track: Track): number => median(part(track, 0.8));

/** The track, where it has so many rows. */
export const long = (track: Track | undefined, rows: number): Track | undefined =>
  track !== undefined && track.n >= rows ? track : undefined;

/**
 * The KL to the reference in the second and third rows: some trainers measure it before the update, so that the first row says
 * nothing. Undefined where it is not logged.
 */
export const movedAtFirst = (ref: Track | undefined): number | undefined =>
  ref === undefined || ref.n < 3 || ref.kl?.per === 'sequence'
    ? undefined
    : Math.max(Math.abs(ref.v[1]), Math.abs(ref.v[2]));

/** Whether the shortest and the longest completion are of the same length in nearly all rows, and it never changes. */
export function allOfOneLength(shortest: Track | undefined, longest: Track | undefined): boolean {
  if (shortest === undefined || longest === undefined || longest.n === 0 || shortest.n !== longest.n)
    return false;
  const most = longest.q(1);
  return most > 1 && share(shortest.v, v => v === most) >= 0.95;
}

/** Rewards of so many rows are enough to say that nothing is gained. */
const ENOUGH = 16;

/** Whether the reward surely shows no gain; where it is not logged, nobody knows. */
export const gainsNothing = (progress: Progress | undefined): boolean =>
  progress !== undefined && progress.track.n >= ENOUGH && !progress.improved;
