/** The row of an iteration of cloning. */
import { type Attempt, countedRow, type UpdateCounters } from '../../update/guarded.ts';
import type { CloneTextConfig } from './settings.ts';

/** An attempt at an update with all that a row tells of it. */
export interface CloneTextAttempt extends Attempt {
  /** Over the gradient steps that were taken, where there were any; too long are demonstrations that were left out. */
  readonly sums: Readonly<Record<'tokens' | 'prompts' | 'tooLong', number> & Record<string, number>>;
}

/** An iteration's values by registry name. */
export function rowOf(
  { batchSize }: CloneTextConfig,
  counters: UpdateCounters,
  done: CloneTextAttempt,
  times: Readonly<Record<string, number>>,
): Record<string, number> {
  const { failed, taken, sums } = done;
  return {
    ...countedRow(counters, { ...done, taken: failed ? 0 : taken }),
    'completion/prompts_skipped': sums.tooLong,
    ...times,
    ...(taken > 0 && {
      'loss/clone': sums.loss / taken,
      'grad/norm': sums.gradNorm / taken,
      'completion/length': sums.tokens / (taken * batchSize),
      'completion/prompt_length': sums.prompts / (taken * batchSize),
    }),
  };
}
