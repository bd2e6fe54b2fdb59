/** Where a series moved to another level: by ranks, so that neither outliers nor the shape of the noise matter. */
import { median, type Numbers } from './order.ts';

/** The likeliest place of one change of level. */
export interface ChangePoint {
  /** The first index of the new level. */
  readonly index: number;
  /** Medians on both sides. */
  readonly before: number;
  readonly after: number;
  /** Chance of so large a shift in a series without one (Pettitt's approximation, no permutations). */
  readonly p: number;
}

/** Average ranks, equal values sharing one; 1 is the smallest. */
function ranks(values: Numbers): Float64Array {
  const order = Array.from({ length: values.length }, (_, i) => i).sort((a, b) => values[a] - values[b]);
  const out = new Float64Array(values.length);
  for (let i = 0; i < order.length; ) {
    let j = i;
    while (j < order.length && values[order[j]] === values[order[i]]) j++;
    for (let k = i; k < j; k++) out[order[k]] = (i + j + 1) / 2;
    i = j;
  }
  return out;
}

/**
 * The change point of Pettitt's rank test (1979): where the ranks before differ most from those after.
 * At least `margin` points stay on each side. Undefined with fewer than `2 * margin` finite values.
 */
export function changePoint(values: Numbers, margin = 3): ChangePoint | undefined {
  const kept: number[] = [];
  for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) kept.push(i);
  const n = kept.length;
  if (n < 2 * Math.max(1, margin)) return undefined;
  const finite = Float64Array.from(kept, i => values[i]);
  const rank = ranks(finite);
  let sum = 0;
  let best = -1;
  let at = margin;
  for (let i = 0; i < n - margin; i++) {
    sum += rank[i];
    const score = Math.abs(2 * sum - (i + 1) * (n + 1));
    if (i + 1 >= margin && score > best) {
      best = score;
      at = i + 1;
    }
  }
  return {
    index: kept[at],
    before: median(finite.subarray(0, at)),
    after: median(finite.subarray(at)),
    p: Math.min(1, 2 * Math.exp((-6 * best * best) / (n ** 3 + n ** 2))),
  };
}

/**
 * The largest abrupt step: between two neighbouring windows of `width` points whose medians differ most. Unlike
 * {@link changePoint} a steady climb is no step. Where several places tie, the one in their middle. Undefined with too
 * few points.
 */
export function abruptStep(values: Numbers, width: number): AbruptStep | undefined {
  const kept: number[] = [];
  for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) kept.push(i);
  const finite = Float64Array.from(kept, i => values[i]);
  const n = finite.length;
  const w = Math.max(2, Math.min(width, Math.floor(n / 3)));
  if (n < 2 * w + 1) return undefined;
  // Windows overlap by all but a stride, so that a long series costs no more than a thousand medians of them.
  const stride = Math.max(1, Math.floor(n / 1000));
  let best: AbruptStep | undefined;
  let first = 0;
  for (let i = w; i + w <= n; i += stride) {
    const before = median(finite.subarray(i - w, i));
    const after = median(finite.subarray(i, i + w));
    const size = Math.abs(after - before);
    if (best === undefined || size > best.size) {
      best = { index: kept[i], before, after, size };
      first = i;
    } else if (
      size === best.size &&
      i - first <= w &&
      Math.sign(after - before) === Math.sign(best.after - best.before)
    ) {
      best = { index: kept[(first + i) >> 1], before: best.before, after, size };
    }
  }
  return best;
}

/** A step from one level to another. */
export interface AbruptStep {
  /** The first index of the new level. */
  readonly index: number;
  /** Medians of the windows before and after. */
  readonly before: number;
  readonly after: number;
  /** How far they are apart. */
  readonly size: number;
}
