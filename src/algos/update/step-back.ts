/** Back along the line from an update to the policy before it, until what is seen there is within a bound. */
import { guardSearch } from '../../kl/guard-search.ts';
import { beyondStateBounds, type KlOverStates, type StateBounds } from '../../kl/over-states.ts';
import type { Held } from './guarded.ts';

/** The furthest point on the line that is within the bound, and what is seen there. */
interface SteppedBack<S> {
  readonly seen: S;
  readonly scale: number;
  readonly backtracks: number;
}

/** `look` puts the policy at a share of the update and says what it sees; `klOf` that is what the bound is on. */
export async function stepBack<S>(
  seen: S,
  bound: number,
  klOf: (seen: S) => number,
  look: (share: number) => S | Promise<S>,
): Promise<SteppedBack<S>> {
  let at = { seen, share: 1 };
  const go = async (share: number): Promise<number> => {
    at = { seen: await look(share), share };
    return klOf(at.seen);
  };
  const { scale, backtracks } = await guardSearch(klOf(seen), bound, go);
  // The last look need not be the one that holds.
  if (backtracks > 0 && at.share !== scale) await go(scale);
  return { seen: at.seen, scale, backtracks };
}

/** What is left of an update, and what is seen of it. */
export interface HeldStates<S extends KlOverStates> extends Held {
  readonly seen: S;
}

/**
 * Single states within their bounds too, after the mean is within its own. `look` takes shares of what the guard has left.
 * Nothing is done again for them at a lower rate: the worst of a thousand states says little of the rate.
 */
export async function holdStates<S extends KlOverStates>(
  { seen, scale, backtracks }: SteppedBack<S>,
  bounds: StateBounds,
  look: (share: number) => S | Promise<S>,
): Promise<HeldStates<S>> {
  const back = await stepBack(seen, 1, states => beyondStateBounds(states, bounds), look);
  const { kl, klP99, klMax } = back.seen;
  return {
    ...{ kl, klP99, klMax },
    scale: scale * back.scale,
    backtracks: backtracks + back.backtracks,
    ...(back.backtracks > 0 ? { before: seen } : {}),
    seen: back.seen,
  };
}

/** The point at `share` of the way from `a` to `b`. */
export function partway(a: Float32Array, b: Float32Array, share: number, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = share === 0 ? a[i] : a[i] + (b[i] - a[i]) * share;
}
