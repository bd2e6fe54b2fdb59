/** What makes a checkpoint the best. */
import type { Row } from '../metrics/row.ts';

/** Episodes that a score looks at, newest first. One iteration may end only one or two, which says little. */
export const scoreEpisodes = 100;

/**
 * The mean return of the newest episodes in some rows, oldest row first: of the last 100 or the few more that the oldest
 * of their rows has, because a row only knows its own mean. Undefined if no episode ended in them.
 *
 * It is made from rows alone, so that a run that goes on has the score of one that never stopped.
 */
export function recentReturn(rows: readonly Row[]): number | undefined {
  let [sum, episodes] = [0, 0];
  for (let i = rows.length - 1; i >= 0 && episodes < scoreEpisodes; i--) {
    const { 'episode/return': mean, 'episode/count': count = 1 } = rows[i];
    if (mean === undefined || count === 0) continue;
    sum += mean * count;
    episodes += count;
  }
  return episodes === 0 ? undefined : sum / episodes;
}
