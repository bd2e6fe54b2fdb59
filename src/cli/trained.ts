/** A run's policy at a checkpoint, to evaluate or export. */
import type { OptionValues } from '../envs/index.ts';
import { listCheckpoints, type Run, RunError, scoreEpisodes } from '../runs/index.ts';
import { grouped, number } from './terminal.ts';

export type WhichCheckpoint = 'last' | 'best' | number;

export const checkpointHelp = `Without --checkpoint it is the best one: that of the highest mean return over
the last ${scoreEpisodes} episodes before it. A run in which no episode has ended has no best
one; then it is the last.`;

/** Which checkpoint is meant, and why, in a sentence for people: the same rule for every command that takes a policy. */
export function chooseCheckpoint(run: Run, wanted?: WhichCheckpoint): { step: WhichCheckpoint; why: string } {
  const checkpoints = listCheckpoints(run.dir);
  const best = checkpoints.find(({ isBest }) => isBest);
  const last = checkpoints.find(({ isLast }) => isLast);
  const which = wanted ?? (best === undefined ? 'last' : 'best');
  const found =
    typeof which === 'number'
      ? checkpoints.find(({ step }) => step === which)
      : which === 'best'
        ? best
        : last;
  // What is missing or damaged is said when it is opened.
  if (found === undefined) return { step: which, why: '' };
  const { step, index } = found;
  const score = index?.score ?? undefined;
  const names = [
    ...(found.isBest ? ['the best'] : []),
    ...(found.isLast ? ['the last'] : []),
    ...(typeof which === 'number' ? ['as asked'] : []),
  ];
  const kind = names.length > 0 ? ` (${names.join(', ')})` : '';
  const measured =
    score === undefined ? 'no episode had ended' : `mean return ${number(score)} when it was saved`;
  return { step: which, why: `checkpoint ${grouped(step)}${kind}, ${measured}` };
}

export async function openCheckpoint(run: Run, which: WhichCheckpoint) {
  const { openTrained } = await import('../algos/train.ts');
  try {
    const trained = await openTrained(run.dir, which);
    return { ...trained, envOptions: run.manifest.environment.options as OptionValues };
  } catch (error) {
    // The advice is written for `keel resume`.
    if (error instanceof RunError)
      throw new RunError(error.message.replace('--from ', '--checkpoint '), {
        code: error.code,
        cause: error,
      });
    throw error;
  }
}
