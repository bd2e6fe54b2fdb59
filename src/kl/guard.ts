/**
 * The guard: a hard bound on how far one update moves the policy.
 *
 * After an update the exact KL(old ‖ new) over the whole rollout is measured. Above the bound, the policy's parameters
 * go back along the line to the old ones until it holds; at the worst they arrive there. Near the old parameters KL
 * grows with the square of the distance, so the root of bound/KL is a good guess, and a second look is rarely needed.
 */
import {
  add,
  clip,
  div,
  less,
  lessEqual,
  loop,
  mul,
  not,
  sqrt,
  sub,
  type Tensor,
  where,
} from '../engine/index.ts';

/** Steps back at most; each goes at least 30 % of the way, so that nothing is left after this many. */
export const MAX_BACKTRACKS = 40;

/** The bound is held with this margin, so that it also holds for someone who sums in another order. */
const MARGIN = 1e-4;

export interface Guarded {
  /** What the update may keep. */
  readonly params: Tensor;
  /** The mean exact KL of that, at most the bound. */
  readonly kl: Tensor;
  /** The same before the guard looked. */
  readonly klRaw: Tensor;
  /** The share of the step that is left: 1 where the guard did nothing, 0 where it took all back. */
  readonly scale: Tensor;
  readonly backtracks: Tensor;
}

/** Adds the guard to a graph; `meanKl` gives the KL that policy parameters have. */
export function guard(
  oldParams: Tensor,
  newParams: Tensor,
  bound: Tensor,
  meanKl: (params: Tensor) => Tensor,
): Guarded {
  const limit = mul(bound, 1 - MARGIN);
  const klRaw = meanKl(newParams);
  const one = klRaw.node.graph.constant(1);
  const held = lessEqual(klRaw, limit);
  const none = klRaw.node.graph.constant(0, [], 'int64');
  const all = klRaw.node.graph.constant(MAX_BACKTRACKS, [], 'int64');
  const step = sub(newParams, oldParams);
  const search = loop({
    trips: { count: where(held, none, all), atMost: MAX_BACKTRACKS },
    carry: { params: newParams, kl: klRaw, scale: one },
    body({ carry }) {
      // A KL that is not a number, or beyond any use of the guess, takes the largest step back.
      const guess = clip(mul(sqrt(div(limit, carry.kl)), 0.95), 0.1, 0.7);
      const scale = mul(carry.scale, where(less(carry.kl, 1e30), guess, 0.1));
      const params = add(oldParams, mul(step, scale));
      const kl = meanKl(params);
      return { carry: { params, kl, scale }, goOn: not(lessEqual(kl, limit)) };
    },
  });
  const { params, kl, scale } = search.carry;
  const holds = lessEqual(kl, limit);
  return {
    params: where(holds, params, oldParams),
    kl: where(holds, kl, 0),
    klRaw,
    scale: where(holds, scale, 0),
    backtracks: search.iterations,
  };
}
