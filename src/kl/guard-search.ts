/**
 * The guard's search outside of a graph, for models too large to have all their looks in one program: the same rule as
 * guard.ts, step by step.
 */
import {
  FIRST_STEP,
  GUARD_MARGIN,
  GUARD_ROUNDING,
  LATER_STEPS,
  MAX_BACKTRACKS,
  SHORT_OF_BOUND,
  SHORTEST_STEP,
} from './guard.ts';

/** What a search found. */
export interface GuardFound {
  /** The share of the update that may stand. */
  readonly scale: number;
  readonly kl: number;
  readonly backtracks: number;
}

/** Looks for the share of an update that keeps its KL within `bound`; `klAt` gives the KL of a share of it. */
export async function guardSearch(
  klRaw: number,
  bound: number,
  klAt: (share: number) => Promise<number>,
): Promise<GuardFound> {
  const limit = Math.max(0, bound * (1 - GUARD_MARGIN) - GUARD_ROUNDING);
  if (klRaw <= limit) return { scale: 1, kl: klRaw, backtracks: 0 };
  let [scale, kl, tooFar, klTooFar] = [0, 0, 1, klRaw];
  let backtracks = 0;
  while (backtracks < MAX_BACKTRACKS) {
    const most = backtracks === 0 ? FIRST_STEP : LATER_STEPS;
    backtracks++;
    // Near the old parameters KL grows with the square of the distance; what is no number takes the largest step back.
    const guess = Math.min(most, Math.max(SHORTEST_STEP, SHORT_OF_BOUND * Math.sqrt(limit / klTooFar)));
    const back = tooFar * (klTooFar < 1e30 ? guess : SHORTEST_STEP);
    const share = scale === 0 ? back : (scale + tooFar) / 2;
    const found = await klAt(share);
    if (found <= limit) {
      const closeEnough = found > limit / 2 || share > 0.9 * tooFar;
      [scale, kl] = [share, found];
      if (closeEnough) break;
    } else {
      [tooFar, klTooFar] = [share, found];
    }
  }
  return { scale, kl, backtracks };
}
