/**
 * What the guard tells the learning rate.
 *
 * An update that leaves the bound was too fast. Stepping back along its line holds the bound, but the line itself was
 * drawn by a few wild steps, and the value function, which nobody holds, was thrown about as well: at 30 times a good
 * rate the first updates leave a network that never quite recovers. So such an update is done again from where it began,
 * at the rate with which all its steps would have fitted. The lower rate stays, and calm updates win it back slowly.
 */

/** One attempt cuts at least by half, at most to a tenth. */
const LARGEST_SHARE = 0.5;
const SMALLEST_SHARE = 0.1;
/** 140 calm updates double the rate. */
const REGAIN = 1.005;
const FLOOR = 1e-4;

/** The factor on the learning rates for another attempt, when this share of the steps was within the bound. */
export function slowerFactor(factor: number, shareWithin: number): number {
  return Math.max(FLOOR, factor * Math.min(LARGEST_SHARE, Math.max(SMALLEST_SHARE, shareWithin)));
}

/** The factor after an update that kept within the bound. */
export function regainedFactor(factor: number): number {
  return Math.min(1, factor * REGAIN);
}
