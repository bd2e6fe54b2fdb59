/** A KL that is exactly 0 in every row is no measurement: nothing was measured, or there was nothing to measure yet. */
import type { CanonicalRun, CanonicalSeries } from '../canonical.ts';
import { rangeOf } from './derive.ts';

const isZero = ({ series }: CanonicalSeries): boolean => {
  const range = rangeOf(series);
  return series.length >= 2 && range !== undefined && range[0] === 0 && range[1] === 0;
};

/**
 * Takes such a KL out of `series` and says why. A classic trainer's step KL of 0 stays unless its coefficient is 0 or
 * missing too: a dead policy does not move, and that is to be seen.
 */
export function dropZeroKls(
  kind: CanonicalRun['kind'],
  trainer: string,
  series: Map<string, CanonicalSeries>,
): string[] {
  const notes: string[] = [];
  const drop = (entry: CanonicalSeries, why: string): void => {
    series.delete(entry.id);
    notes.push(`${entry.theirs} is 0 in every row: ${why}`);
  };
  const ref = series.get('kl/ref');
  if (ref !== undefined && isZero(ref)) drop(ref, 'there is no KL term');
  const step = series.get('kl/step');
  if (step !== undefined && isZero(step)) {
    const coef = series.get('kl/coef');
    if (kind === 'language-model') {
      drop(step, 'each batch is used for one step, so that the policy that is measured has not moved yet');
    } else if (trainer === 'rllib' && (coef === undefined || isZero(coef))) {
      drop(step, 'RLlib measures the KL only with a KL penalty (kl_coeff above 0)');
    }
  }
  return notes;
}
