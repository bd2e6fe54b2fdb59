/** A learning rate that follows the KL: down when updates move too far, up when they hardly move. */
export interface AdaptiveRate {
  readonly target: number;
  readonly min: number;
  readonly max: number;
  /** How much one change is. */
  readonly factor?: number;
}

/** The factor on the learning rate after an update with this KL: beyond twice the target down, below half of it up. */
export function nextRate(rule: AdaptiveRate, rate: number, kl: number): number {
  const { target, min, max, factor = 1.5 } = rule;
  if (!Number.isFinite(kl)) return Math.max(min, rate / factor);
  if (kl > 2 * target) return Math.max(min, rate / factor);
  if (kl < target / 2) return Math.min(max, rate * factor);
  return rate;
}
