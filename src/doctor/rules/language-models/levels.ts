/** Where a series of a language-model run begins and ends, and what else several of these rules ask. */

import {
  type Cited,
  cite,
  citeCourse,
  type Print,
  type Rows,
  rowsBetween,
  rowsOf,
  say,
} from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import type { Progress } from '../progress.ts';
import type { Track } from '../track.ts';
import { name, type Said } from '../words.ts';

/** Rows of the first tenth, three at least, and of the last fifth. */
const firstRows = (track: Track): Rows => rowsBetween(track, 0, Math.max(3, Math.floor(track.n / 10)));
const lastRows = (track: Track): Rows => rowsOf(track, 0.8);

/** The levels there; to judge by, and to cite. */
export const early = (track: Track): number => citeEarly(track).value;
export const late = (track: Track): number => citeLate(track).value;
export const citeEarly = (track: Track, print?: Print): Cited =>
  cite(firstRows(track), 'median', undefined, print);
export const citeLate = (track: Track, print?: Print): Cited =>
  cite(lastRows(track), 'median', undefined, print);

/** Where the reward began, was best and ended. */
export const bestSaid = (progress: Progress): Said =>
  say`${name(progress.track)}: ${citeCourse(progress, 'start')} at the start, best ${citeCourse(progress, 'best')}, ${citeCourse(progress, 'end')} at the end`;
export const endsSaid = (progress: Progress): Said =>
  say`${name(progress.track)}: ${citeCourse(progress, 'start')} at the start, ${citeCourse(progress, 'end')} at the end`;
export const goesSaid = (progress: Progress): Said =>
  say`${name(progress.track)} goes from ${citeCourse(progress, 'start')} to ${citeCourse(progress, 'end')}`;
export const firstAndLast = (track: Track): Said =>
  say`${name(track)}: ${citeEarly(track)} in the first tenth, ${citeLate(track)} in the last fifth`;

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
