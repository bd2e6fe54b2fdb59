/** Spikes: values far outside the robust spread of their surroundings and above an absolute level as well. */
import { blockEnds } from './blocks.ts';
import { type Numbers, quantileOfSorted, sorted, spread } from './order.ts';

/** What counts as a spike. */
export interface SpikeLimits {
  /** Never below this level, however calm the series is: a rule's band, not a multiple of anything. */
  readonly level: number;
  /** How many robust standard deviations above the surroundings' median; 6 unless told. */
  readonly deviations?: number;
  /** How many times the surroundings' median; 3 unless told. */
  readonly times?: number;
}

/** One spike. */
export interface Spike {
  readonly index: number;
  readonly value: number;
  /** The median of the surroundings. */
  readonly base: number;
}

/** Surroundings are blocks of the series, each with its neighbours; a short series is one block. */
const BLOCK = 60;

/** The spikes of a series, in their order. `peaks` are the largest values of merged points, where they differ. */
export function spikes(values: Numbers, limits: SpikeLimits, peaks: Numbers = values): Spike[] {
  const all = Float64Array.from(Array.from(values));
  const ends = blockEnds(all.length, Math.max(1, Math.floor(all.length / BLOCK)));
  const { level, deviations = 6, times = 3 } = limits;
  const out: Spike[] = [];
  for (let b = 0; b + 1 < ends.length; b++) {
    const around = all.subarray(ends[Math.max(0, b - 1)], ends[Math.min(ends.length - 1, b + 2)]);
    const base = quantileOfSorted(sorted(around), 0.5);
    const limit = Math.max(level, base + deviations * spread(around), times * base);
    for (let i = ends[b]; i < ends[b + 1]; i++) {
      const value = Math.max(all[i], peaks[i]);
      if (value > limit) out.push({ index: i, value, base });
    }
  }
  return out;
}
