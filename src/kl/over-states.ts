/**
 * The KL of an update over single states, beside its mean: a mean within its bound says nothing of the one state in a
 * hundred whose policy was turned round.
 */
import { GUARD_ROUNDING } from './guard.ts';

/** An update's KL over the states, or tokens, of what was collected. */
export interface KlOverStates {
  /** The mean. */
  readonly kl: number;
  /** At most one state in a hundred is above it (nearest rank). */
  readonly klP99: number;
  readonly klMax: number;
}

/** Bounds on single states; null is none. */
export interface StateBounds {
  readonly guardP99?: number | null;
  readonly guardMax?: number | null;
}

/** The last hundredth of the KLs of `count` states, which are sorted in place; NaN, which sorts last, is never lost. */
export function highestOf(kls: Float32Array, count = kls.length): Omit<KlOverStates, 'kl'> {
  if (count === 0) return { klP99: 0, klMax: 0 };
  const ascending = kls.subarray(0, count).sort();
  return { klP99: ascending[Math.ceil(0.99 * count) - 1], klMax: ascending[count - 1] };
}

/**
 * How far beyond its bounds an update is, as a ratio: above 1 it has left one of them, and NaN is beyond any. As that of the
 * mean (guard.ts), they are held with a margin for the rounding of single precision.
 */
export function beyondStateBounds(
  { klP99, klMax }: KlOverStates,
  { guardP99 = null, guardMax = null }: StateBounds,
): number {
  const ratio = (kl: number, bound: number | null): number =>
    bound === null ? 0 : (kl + GUARD_ROUNDING) / bound;
  return Math.max(ratio(klP99, guardP99), ratio(klMax, guardMax));
}
