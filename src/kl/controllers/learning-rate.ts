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
  const held = (value: number): number => Math.min(max, Math.max(min, value));
  if (!Number.isFinite(kl) || kl > 2 * target) return held(rate / factor);
  return held(kl < target / 2 ? rate * factor : rate);
}
