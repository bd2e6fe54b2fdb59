/** Controllers of the weight on a KL penalty. Each takes the KL that an update had and gives the next weight. */

/** How the weight of a penalty follows the KL. */
export type CoefficientRule =
  /** The weight stays. */
  | { readonly kind: 'fixed' }
  /** The PPO paper's rule (Schulman et al. 2017, arXiv 1707.06347): beyond 1.5 times the target double, below 1/1.5 halve. */
  | { readonly kind: 'adaptive'; readonly target: number }
  /** In proportion to the error, at most 20 % of n/horizon at once (Ziegler et al. 2019, arXiv 1909.08593). */
  | { readonly kind: 'horizon'; readonly target: number; readonly horizon: number };

/** Bounds that keep an adaptive weight from running away, as it has elsewhere, or from vanishing for good. */
export const COEFFICIENT_MIN = 1e-6;
/** See {@link COEFFICIENT_MIN}. */
export const COEFFICIENT_MAX = 100;

/** The weight after an update with this `kl` over `samples` samples. */
export function nextCoefficient(
  rule: CoefficientRule,
  coefficient: number,
  kl: number,
  samples: number,
  { min = COEFFICIENT_MIN, max = COEFFICIENT_MAX }: { min?: number; max?: number } = {},
): number {
  if (Number.isNaN(kl)) return coefficient;
  const held = (value: number): number => Math.min(max, Math.max(min, value));
  switch (rule.kind) {
    case 'fixed':
      return coefficient;
    case 'adaptive':
      if (kl > 1.5 * rule.target) return held(coefficient * 2);
      if (kl < rule.target / 1.5) return held(coefficient / 2);
      return coefficient;
    case 'horizon': {
      const error = Math.min(0.2, Math.max(-0.2, kl / rule.target - 1));
      // A rollout longer than the horizon corrects once, not several times over.
      return held(coefficient * (1 + error * Math.min(1, samples / rule.horizon)));
    }
    default:
      return rule satisfies never;
  }
}

/**
 * Whether a change of the weight is worth an event. The horizon's rule corrects a little after every update, which the rows
 * show; that it came to one of its bounds is news.
 */
export function isNotableChange(
  rule: CoefficientRule,
  from: number,
  to: number,
  { min = COEFFICIENT_MIN, max = COEFFICIENT_MAX }: { min?: number; max?: number } = {},
): boolean {
  if (from === to) return false;
  return rule.kind !== 'horizon' || to === min || to === max;
}
