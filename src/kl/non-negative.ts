import type { Tensor } from '../engine/graph.ts';
import { min, stopGradient, sub } from '../engine/ops/elementwise.ts';

/**
 * A quantity that is never negative, without what float32 rounds below 0 (about -6e-8 for a KL): it hides nothing else, and
 * lets NaN through.
 *
 * The derivative passes as if nothing had been done. A plain relu would cut it off there: it is of the order of the
 * square root of the value, 1e-4 where the value has already drowned in rounding. It would also cost more nodes
 * backwards than this costs forwards.
 */
export function nonNegative(x: Tensor): Tensor {
  return sub(x, stopGradient(min(x, 0)));
}
