/** What makes a checkpoint the best. */
import type { Row } from '../metrics/row.ts';

/** Episodes that a score looks at, newest first. One iteration may end only one or two, which says little. */
export const scoreEpisodes = 100;

/** What a checkpoint's score is the mean return of: episodes of training, or an evaluation. The two do not compare. */
export const scoreKinds = ['training', 'evaluation'] as const;
export type ScoreKind = (typeof scoreKinds)[number];

/** A score as indexes and events have it; without a kind, as of earlier versions, it is of training. */
interface Scored {
  readonly score?: number | null | undefined;
  readonly scoredBy?: ScoreKind | undefined;
}

/**
 * The highest score of a list, oldest first; of equal ones the earliest, as while training only a better one replaces the
 * best. A run that was told to evaluate under way has scores of both kinds: only those of the newest one's kind compare.
 */
export function bestScored<T extends Scored>(list: readonly T[]): T | undefined {
  const scored = list.filter(({ score }) => typeof score === 'number');
  const kind = kindOf(scored.at(-1));
  return scored
    .filter(one => kindOf(one) === kind)
    .reduce<T | undefined>(
      (best, one) => (best === undefined || one.score! > best.score! ? one : best),
      undefined,
    );
}

/** What a score is of. */
export const kindOf = (scored: Scored | undefined): ScoreKind => scored?.scoredBy ?? 'training';

/**
 * The mean return of the newest episodes in some rows, oldest row first: of the last 100 or the few more that the oldest
 * of their rows has, because a row only knows its own mean; with how many they are. NaN if no episode ended in them.
 *
 * It is made from rows alone, so that a run that goes on has the score of one that never stopped.
 */
export function recentEpisodes(rows: readonly Row[]): { readonly mean: number; readonly episodes: number } {
  let [sum, episodes] = [0, 0];
  for (let i = rows.length - 1; i >= 0 && episodes < scoreEpisodes; i--) {
    const { 'episode/return': mean, 'episode/count': count = 1 } = rows[i];
    if (mean === undefined || count === 0) continue;
    sum += mean * count;
    episodes += count;
  }
  return { mean: sum / episodes, episodes };
}

/** The same mean alone; undefined if no episode ended. */
export function recentReturn(rows: readonly Row[]): number | undefined {
  const { mean, episodes } = recentEpisodes(rows);
  return episodes === 0 ? undefined : mean;
}
