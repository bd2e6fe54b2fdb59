/**
 * Exponential smoothing of buckets. A bucket of n points fades what came before as n points would, so the smoothed line
 * stays the same when zooming changes how many points share a bucket. Freed from its pull to 0 at the start, as in Adam.
 * Buckets without a value are skipped and stay empty.
 */
export function smooth(
  mean: readonly (number | null)[],
  count: readonly number[],
  factor: number,
): (number | null)[] {
  if (!(factor > 0)) return mean.slice();
  const out = new Array<number | null>(mean.length);
  let level = 0;
  let weight = 0;
  for (let i = 0; i < mean.length; i++) {
    const value = mean[i];
    if (value === null || value === undefined) {
      out[i] = null;
      continue;
    }
    const kept = factor ** Math.max(1, count[i] ?? 1);
    level = level * kept + value * (1 - kept);
    weight = weight * kept + (1 - kept);
    out[i] = level / weight;
  }
  return out;
}

/** The slider's place (0 to 1) of a factor, and back: fine near 1, where it matters. */
export function factorOfSlider(place: number): number {
  const p = Math.min(1, Math.max(0, place));
  return Math.round((1 - (1 - p) ** 2.2) * 0.999 * 1e4) / 1e4;
}

export function sliderOfFactor(factor: number): number {
  const f = Math.min(0.999, Math.max(0, factor)) / 0.999;
  return 1 - (1 - f) ** (1 / 2.2);
}
