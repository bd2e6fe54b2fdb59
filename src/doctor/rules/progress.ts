/** How well the run does its task over time: the question that decides whether anything else is harm. */
import { blockMedians, jitter } from '../statistics/blocks.ts';
import { median, quantile, share } from '../statistics/order.ts';
import { trend } from '../statistics/trend.ts';
import type { Track } from './track.ts';

export interface Progress {
  readonly track: Track;
  /** Levels of the first and last stretch, by medians of blocks. */
  readonly start: number;
  readonly end: number;
  /** The best level that lasted, and where. */
  readonly best: number;
  readonly bestX: number;
  readonly worst: number;
  readonly worstX: number;
  /** Robust noise of the smoothed curve. */
  readonly noise: number;
  /** It ends clearly better than it began. */
  readonly improved: boolean;
  /** It holds most of what it gained, even if it gained it so early that its first stretch has it already. */
  readonly kept: boolean;
  /** It is still getting better in its second half. */
  readonly improving: boolean;
  /** It lost most of what it had gained, or ends clearly below its start. */
  readonly collapsed: boolean;
  /** The deepest fall from a level that had been reached, as a share of what had been gained; with where it began. */
  readonly drawdown: number;
  readonly drawdownX: number;
  /** One value (nearly) throughout. */
  readonly constant: boolean;
  /** It reached a ceiling and stays there: nothing more is to be learnt. */
  readonly saturated: boolean;
}

const BLOCKS = 40;

export function progressOf(track: Track): Progress {
  const b = blockMedians(track.v, BLOCKS);
  const k = b.length;
  const edge = Math.max(1, Math.round(k / 8));
  const start = median(b.subarray(0, edge));
  const end = median(b.subarray(k - Math.max(1, Math.round(k / 6))));
  const noise = jitter(b);
  // A run that learns most of what it learns in its first rows has not lost it when it falls back a little.
  const begin = Math.min(start, b[0] ?? start);
  // A level lasts when three blocks in a row hold it.
  const held = Float64Array.from({ length: Math.max(1, k - 2) }, (_, i) =>
    median(b.subarray(i, Math.min(k, i + 3))),
  );
  let bestAt = 0;
  held.forEach((v, i) => {
    if (v > held[bestAt]) bestAt = i;
  });
  const best = Math.max(held[bestAt], start);
  let worstAt = 0;
  held.forEach((v, i) => {
    if (v < held[worstAt]) worstAt = i;
  });
  const worst = held[worstAt];
  const size = Math.max(Math.abs(start), Math.abs(end));
  const over = trend(b);
  const gain = end - start;
  const improved = k >= 4 && gain > Math.max(2 * noise, 0.02 * size) && over.z > 1.6;
  const half = trend(b.subarray(Math.floor(k / 2)));
  const improving = k >= 6 && half.end - half.start > Math.max(1.5 * noise, 0.01 * size) && half.z > 1.6;
  let peak = held[0];
  let peakAt = 0;
  let deepest = 0;
  let drawdown = 0;
  let drawdownAt = 0;
  held.forEach((v, i) => {
    if (v > peak) {
      peak = v;
      peakAt = i;
    }
    const fall = peak - v;
    if (fall > deepest && fall > 5 * noise) {
      deepest = fall;
      drawdownAt = peakAt;
      drawdown = fall / Math.max(peak - Math.min(begin, worst), fall, 1e-300);
    }
  });
  const gained = best - begin;
  const lost = best - end;
  const kept = k >= 8 && gained > 6 * noise && end - begin >= 0.6 * gained && start - begin > 3 * noise;
  const fellBelow = start - end > Math.max(6 * noise, 0.5 * Math.abs(start)) && over.z < -1.6;
  const collapsed =
    k >= 8 && ((gained > 4 * noise && lost > 0.5 * gained && lost > 5 * noise) || fellBelow) && lost > 0;
  const low = quantile(track.v, 0.02);
  const high = quantile(track.v, 0.98);
  const constant = track.n >= 5 && high - low <= 1e-9 * Math.max(1, Math.abs(high));
  const tail = b.subarray(Math.floor(k * 0.75));
  const top = Math.max(...b);
  const reach = Math.max(top - start, 1e-12);
  // In a long run a task may be solved before its first block ends: what it rose from is in its first rows alone.
  const rise = top - median(track.v.subarray(0, Math.min(5, Math.ceil(track.n / BLOCKS))));
  const solvedAtOnce =
    k >= 6 &&
    rise > Math.max(6 * noise, 0.2 * Math.abs(top)) &&
    share(b, v => v >= top - 0.05 * rise) >= 0.8 &&
    share(tail, v => v >= top - 0.05 * rise) >= 0.6;
  const saturated =
    solvedAtOnce ||
    (k >= 6 &&
      gain > 0.5 * reach &&
      share(tail, v => v >= top - 0.03 * reach) >= 0.6 &&
      top - start > 3 * noise);
  const xOf = (i: number): number => track.x[Math.min(track.n - 1, Math.round(((i + 1) * track.n) / k))] ?? 0;
  return {
    track,
    start,
    end,
    best,
    bestX: xOf(bestAt),
    worst,
    worstX: xOf(worstAt),
    noise,
    improved,
    kept,
    improving,
    collapsed,
    drawdown,
    drawdownX: xOf(drawdownAt),
    constant,
    saturated,
  };
}
