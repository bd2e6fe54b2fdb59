/** What a policy was like in the first rows of the log: fresh from its random weights, or with something learnt already. */
import type { CanonicalRun } from '../canonical.ts';
import { limitsOf } from './limits.ts';
import type { Track } from './track.ts';

const l = limitsOf('beginning', {
  /** Rows of which the largest tells: large steps may narrow a fresh policy within a row or two. */
  first: 5,
  /** Entropy as a share of its maximum: below the first something was learnt, above the second nothing was. */
  learnt: 0.9,
  fresh: 0.97,
  /** Of either: less is a policy that always does the same, which says nothing. */
  dead: 0.02,
  /** The same of a std, as a share of that of fresh weights. */
  narrowed: 0.8,
  wide: 0.95,
});

/** Whether the policy was not random from the first rows on; undefined where nothing tells. */
export function isPractised(
  { kind, config }: Pick<CanonicalRun, 'kind' | 'config'>,
  get: (id: string) => Track | undefined,
  relativeEntropy: Float64Array | undefined,
): boolean | undefined {
  if (kind !== 'classic') return undefined;
  const level = (values: Float64Array): number =>
    values.subarray(0, l.first).reduce((a, b) => Math.max(a, b));
  const between = (share: number, learnt: number, fresh: number): boolean | undefined =>
    share > fresh ? false : share < learnt && share > l.dead ? true : undefined;
  if (relativeEntropy !== undefined) return between(level(relativeEntropy), l.learnt, l.fresh);
  const std = get('policy/std');
  // Nearly all trainers begin with a std of 1.
  if (std !== undefined && std.n > 0)
    return between(level(std.v) / Math.exp(config.logStdInitial ?? 0), l.narrowed, l.wide);
  const entropy = get('policy/entropy');
  // Two actions have ln 2 nats, more have more, and so has a Gaussian with a std of 1.
  return entropy === undefined || entropy.n === 0
    ? undefined
    : between(level(entropy.v) / Math.LN2, l.learnt, Number.POSITIVE_INFINITY);
}
