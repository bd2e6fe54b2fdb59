/** Which checkpoint a command takes, in words. */
import type { WhichCheckpoint } from '../algos/algorithm.ts';
import { chooseCheckpoint } from '../algos/choose-checkpoint.ts';
import { grouped, number } from '../base/numbers.ts';
import { scoreEpisodes } from '../runs/score.ts';
import type { Run } from '../runs/store.ts';

/** The rule, for the help of every command that takes a policy. */
export const checkpointHelp = `Without --checkpoint it is the best one: that of the highest mean return over
the last ${scoreEpisodes} episodes before it; the last one if no episode has ended, or if
returns do not compare, as in Cluster-v0, where each episode has its own load.`;

/** The checkpoint that is meant and why, in a sentence; empty where it is missing, which is said when it is opened. */
export function whyCheckpoint(run: Run, wanted: WhichCheckpoint | undefined): string {
  const { which, found } = chooseCheckpoint(run, wanted);
  if (found === undefined) return '';
  const { step, index, isBest, isLast } = found;
  const score = index?.score ?? undefined;
  const names = [
    ...(isBest ? ['the best'] : []),
    ...(isLast ? ['the last'] : []),
    ...(typeof which === 'number' ? ['as asked'] : []),
  ];
  const kind = names.length > 0 ? ` (${names.join(', ')})` : '';
  const measured =
    score === undefined ? 'no episode had ended' : `mean return ${number(score)} when it was saved`;
  return `checkpoint ${grouped(step)}${kind}, ${measured}`;
}
