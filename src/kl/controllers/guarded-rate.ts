/**
 * What the guard tells the learning rate.
 *
 * An update that leaves the bound was too fast, and an overshoot of a few percent costs a few percent. How much too fast it
 * was is seen in two things: its KL at the end, and the share of its minibatches that saw a KL within the bound. The first
 * alone is censored, because the policy waits while a minibatch is beyond the bound: an update that passed it early would
 * have gone on. A KL grows with the square of the rate, and with the steps about linearly over the first half of an update;
 * in the second the clip holds it about where it is.
 *
 * Where an update was a little too fast, the guard steps back along its line, which costs next to nothing, and the next one
 * is slower. Where it was far too fast, the line itself was drawn by a few wild steps, and the value function, which nobody
 * holds, was thrown about as well: at 30 times a good rate the first updates leave a network that never quite recovers. Such
 * an update is done again from where it began, at the rate with which it would have fitted.
 *
 * Calm updates win the rate back.
 */

/** One cut goes at most to a tenth; a factor no lower than a ten-thousandth. */
const SMALLEST_CUT = 0.1;
const FLOOR = 1e-4;
/** A little below the rate that would just have fitted, so that the next update does not touch the bound again. */
const MARGIN = 0.97;
/** The share of an update's steps over which its KL grows; then the clip holds it about where it is. */
const STANDS_STILL = 0.5;
/** An update that asks for a deeper cut is done again. */
const WORTH_ANOTHER_ATTEMPT = 0.7;
/** What a calm update wins back: 15 of them double the rate, 48 make up the largest cut. */
const REGAIN = 1.05;
/** The share of the bound that a calm update uses at most: a rate that is won back until it touches the bound keeps touching it. */
const CALM = 0.3;

/** How far an update went. */
export interface Moved {
  /** Its mean KL at the end. */
  readonly kl: number;
  /** Its mean KL before the first step: what no rate can change. */
  readonly klBegun: number;
  /** The share of its minibatches that saw a KL within the bound. */
  readonly shareWithin: number;
}

/** The factor on the learning rate with which an update that left `bound` would have fitted. */
export function fittingCut({ shareWithin, kl, klBegun }: Moved, bound: number): number {
  const early = Math.min(1, shareWithin / STANDS_STILL);
  const fitting = MARGIN * Math.sqrt((early * (bound - klBegun)) / (kl - klBegun));
  return fitting >= SMALLEST_CUT ? Math.min(MARGIN, fitting) : SMALLEST_CUT; // of what is no number, too
}

/** Whether an update that asks for this cut is done again, and not only stepped back. */
export const isWorthAnotherAttempt = (cut: number): boolean => cut < WORTH_ANOTHER_ATTEMPT;

/** The factor on the learning rates after a cut. */
export function slowerFactor(factor: number, cut: number): number {
  return Math.max(FLOOR, factor * cut);
}

/** The factor after an update; of one that left its bound nothing is won. */
export function regainedFactor(
  factor: number,
  { kl, klBegun }: Omit<Moved, 'shareWithin'>,
  bound: number,
): number {
  const isCalm = kl - klBegun <= CALM * (bound - klBegun);
  return isCalm ? Math.min(1, factor * REGAIN) : factor;
}
