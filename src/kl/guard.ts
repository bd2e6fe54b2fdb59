/**
 * The guard: a hard bound on how far one update moves the policy.
 *
 * After an update the exact KL(old ‖ new) over the whole rollout is measured. Above the bound, the policy's weights
 * go back along the line to the old ones until it holds; at the worst they arrive there. Near the old weights KL
 * grows with the square of the distance, so the root of bound/KL is a first guess. Where that went back too far, the
 * interval between what holds and what does not is halved until at least half of the bound is used.
 */

import type { Tensor } from '../engine/graph.ts';
import {
  add,
  and,
  clip,
  div,
  equal,
  greater,
  less,
  lessEqual,
  max,
  mul,
  not,
  or,
  sqrt,
  sub,
  where,
} from '../engine/ops/elementwise.ts';
import { loop } from '../engine/ops/loop.ts';

/** Looks at most; from the second on a step back goes at least 30 % of the way, so that nothing is left after this many. */
export const MAX_BACKTRACKS = 40;

/** The guess aims a little below the bound. */
export const SHORT_OF_BOUND = 0.98;
/**
 * The shares of what is too far that one step back leaves: at least; at most the first time, when a bound that was passed
 * by a few percent must cost a few percent; and at most from then on, when the square has proved a bad guess.
 */
export const SHORTEST_STEP = 0.1;
/** See {@link SHORTEST_STEP}. */
export const FIRST_STEP = 0.98;
/** See {@link SHORTEST_STEP}. */
export const LATER_STEPS = 0.7;

/** The bound is held with these margins, relative and absolute, so that it also holds for someone who sums in another order. */
export const GUARD_MARGIN = 1e-4;
/** The absolute one, for the rounding of single precision. */
export const GUARD_ROUNDING = 5e-8;

/** The largest KL that counts as within a bound, as {@link guard} computes it. */
export function heldLimit(bound: number): number {
  const { fround } = Math;
  return Math.max(fround(fround(fround(bound) * fround(1 - GUARD_MARGIN)) - fround(GUARD_ROUNDING)), 0);
}

/** What the guard leaves of an update. */
export interface Guarded {
  /** What the update may keep. */
  readonly weights: Tensor;
  /** The mean exact KL of that, at most the bound. */
  readonly kl: Tensor;
  /** The same before the guard looked. */
  readonly klRaw: Tensor;
  /** The share of the step that is left: 1 where the guard did nothing, 0 where it took all back. */
  readonly scale: Tensor;
  readonly backtracks: Tensor;
}

/** Adds the guard to a graph; `meanKl` gives the KL that a policy's weights have. */
export function guard(
  oldWeights: Tensor,
  newWeights: Tensor,
  bound: Tensor,
  meanKl: (weights: Tensor) => Tensor,
): Guarded {
  const limit = max(sub(mul(bound, 1 - GUARD_MARGIN), GUARD_ROUNDING), 0);
  const klRaw = meanKl(newWeights);
  const one = klRaw.node.graph.constant(1);
  const held = lessEqual(klRaw, limit);
  const none = klRaw.node.graph.constant(0, [], 'int64');
  const all = klRaw.node.graph.constant(MAX_BACKTRACKS, [], 'int64');
  const step = sub(newWeights, oldWeights);
  const search = loop({
    trips: { count: where(held, none, all), atMost: MAX_BACKTRACKS },
    // What is known to hold (at first the old weights), and the smallest share that is known not to.
    carry: { weights: oldWeights, kl: mul(klRaw, 0), scale: sub(one, 1), tooFar: one, klTooFar: klRaw },
    body({ iteration, carry }) {
      const nothingHolds = equal(carry.scale, 0);
      const most = where(equal(iteration, 0), FIRST_STEP, LATER_STEPS);
      const guess = clip(mul(sqrt(div(limit, carry.klTooFar)), SHORT_OF_BOUND), SHORTEST_STEP, most);
      // A KL that is not a number, or beyond any use of the guess, takes the largest step back.
      const back = mul(carry.tooFar, where(less(carry.klTooFar, 1e30), guess, SHORTEST_STEP));
      const share = where(nothingHolds, back, mul(add(carry.scale, carry.tooFar), 0.5));
      const candidate = add(oldWeights, mul(step, share));
      const kl = meanKl(candidate);
      const holds = lessEqual(kl, limit);
      const closeEnough = or(greater(kl, mul(limit, 0.5)), greater(share, mul(carry.tooFar, 0.9)));
      return {
        carry: {
          weights: where(holds, candidate, carry.weights),
          kl: where(holds, kl, carry.kl),
          scale: where(holds, share, carry.scale),
          tooFar: where(holds, carry.tooFar, share),
          klTooFar: where(holds, carry.klTooFar, kl),
        },
        goOn: not(and(holds, closeEnough)),
      };
    },
  });
  const { carry, iterations } = search;
  return {
    weights: where(held, newWeights, carry.weights),
    kl: where(held, klRaw, where(equal(carry.scale, 0), 0, carry.kl)),
    klRaw,
    scale: where(held, 1, carry.scale),
    backtracks: iterations,
  };
}
