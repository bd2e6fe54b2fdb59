/** The row of an epoch of cloning. */
import { type Attempt, countedRow, type UpdateCounters } from '../../update/guarded.ts';

/** An epoch with all that a row tells of it: means over its minibatches. */
export interface EpochAttempt extends Attempt {
  readonly losses: { readonly policy: number; readonly value: number; readonly accuracy: number };
}

/** An epoch's values by registry name. */
export function rowOf(
  counters: UpdateCounters,
  done: EpochAttempt,
  times: Readonly<Record<string, number>>,
): Record<string, number> {
  return {
    ...countedRow(counters, done),
    'loss/clone': done.losses.policy,
    'loss/value': done.losses.value,
    'policy/clone_accuracy': done.losses.accuracy,
    ...times,
  };
}
