/** What kind of actions a policy takes, told from its entropy and its spread. */
import type { CanonicalRun, CanonicalSeries } from '../canonical.ts';
import { firstOf, rangeOf } from './derive.ts';

/** Entropy of one dimension of a Gaussian with std 1: ln √(2πe). A fresh continuous policy starts at a multiple. */
const gaussian = 0.5 * Math.log(2 * Math.PI * Math.E);

/**
 * The entropy of a uniform policy over k actions is ln k, and a fresh policy is near it. The logs of small whole numbers
 * lie far apart and those of large ones close together, so that the match must be the closer the larger k is.
 */
export function choicesAt(entropy: number, largest: number = entropy): number | undefined {
  for (let k = 2; k <= 30; k++) {
    const most = Math.log(k);
    const gap = Math.log(k + 1) - most;
    const slack = Math.min(0.02 * most, 0.4 * gap);
    if (Math.abs(entropy - most) <= slack && entropy <= most * 1.001 && largest <= most * 1.001) return k;
  }
  return undefined;
}

/** `told`: what the trainer's other names say. */
export function actionsOf(
  kind: CanonicalRun['kind'],
  series: ReadonlyMap<string, CanonicalSeries>,
  told?: 'discrete' | 'continuous',
): Pick<CanonicalRun, 'actions' | 'maxEntropy'> {
  if (kind === 'language-model') return { actions: 'tokens' };
  const relative = series.get('policy/entropy_relative')?.series;
  const entropy = series.get('policy/entropy')?.series;
  const range = entropy === undefined ? undefined : rangeOf(entropy);
  if (told === 'continuous' || series.has('policy/std') || (range !== undefined && range[0] < -1e-3))
    return { actions: 'continuous' };
  const first = entropy === undefined ? undefined : firstOf(entropy);
  const otherwise = told ?? (relative === undefined ? 'unknown' : 'discrete');
  if (first === undefined || range === undefined) return { actions: otherwise };
  const share = relative === undefined ? undefined : firstOf(relative);
  if (share !== undefined && share > 0.01 && first > 0)
    return { actions: 'discrete', maxEntropy: first / share };
  const dimensions = Math.round(first / gaussian);
  const isGaussian = dimensions >= 1 && Math.abs(first - dimensions * gaussian) < 0.003 * first;
  const choices = isGaussian ? undefined : choicesAt(first, range[1]);
  // One dimension lies between 4 actions and 5; more of them come close to some number of actions.
  if (isGaussian && dimensions === 1 && told === undefined && relative === undefined)
    return { actions: 'continuous' };
  if (choices !== undefined) return { actions: 'discrete', maxEntropy: Math.log(choices) };
  return { actions: otherwise };
}
