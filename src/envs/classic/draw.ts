import type { Rng } from '../../random/rng.ts';

/** Uniform in [low, high). */
export function uniformIn(rng: Rng, low: number, high: number): number {
  return low + (high - low) * rng.uniform();
}
