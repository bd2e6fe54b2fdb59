/** How well the run does its task over time: the question that decides whether anything else is harm. */
import { type Course, courseOf, falls, rises } from '../judge/trends.ts';
import { blockMedians, jitter } from '../statistics/blocks.ts';
import { median, quantile, share } from '../statistics/order.ts';
import { trend } from '../statistics/trend.ts';
import { limitsOf } from './limits.ts';
import { part, type Track } from './track.ts';

export interface Progress {
  readonly track: Track;
  /** How it went by the tests of a trend. */
  readonly course: Course;
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
  /** The same by a test: its second half surely rises. A few points that happen to ascend do not. */
  readonly surelyImproving: boolean;
  /** It had gained something, beyond its noise, at some time. */
  readonly gained: boolean;
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

/**
 * What counts as better, worse and the same. Sizes are in noise (of the smoothed curve) and in shares of what was gained
 * or of the range of the curve: never of a level, which moves with the reward's zero.
 */
const l = limitsOf('progress', {
  /** Of noise, with a trend that is no chance. */
  improvedNoise: 2,
  /** In the second half: of noise, of the range of the curve, and the standard score of its trend. */
  improvingNoise: 1.5,
  improvingRange: 0.02,
  improvingScore: 1.6,
  drawdownNoise: 5,
  /** Blocks from which on a gain is said to be kept, or lost. */
  settledBlocks: 8,
  keptNoise: 6,
  keptShare: 0.6,
  keptRise: 3,
  gainedNoise: 5,
  collapsedShare: 0.5,
  /** A fall below the start: in noise, and of the range. */
  belowNoise: 6,
  belowShare: 0.6,
  constantRows: 5,
  constant: 1e-9,
  /** A ceiling: how near to it the last quarter is, of what was gained, in which share of its blocks; what was gained in noise. */
  ceilingBlocks: 6,
  ceiling: 0.03,
  ceilingShare: 0.6,
  ceilingNoise: 3,
  /** What is this near to the largest value is the same. */
  same: 1e-9,
  /** A ceiling that is reached in the first block: the rise as a share of the range, and how near to it so many blocks are. */
  atOnceRange: 0.5,
  atOnceCeiling: 0.05,
  atOnceBlocks: 0.8,
});

/** Medians by which a curve is smoothed, and the shares of them that are its first and its last stretch. */
const SMOOTHING = { blocks: 40, start: 1 / 8, end: 1 / 6 } as const;

/** `practised`: the policy is known to have learnt something before the first row. */
export function progressOf(track: Track, practised?: boolean): Progress {
  const b = blockMedians(track.v, SMOOTHING.blocks);
  const k = b.length;
  const edge = Math.max(1, Math.round(k * SMOOTHING.start));
  const start = median(b.subarray(0, edge));
  const end = median(b.subarray(k - Math.max(1, Math.round(k * SMOOTHING.end))));
  const noise = jitter(b);
  // A run that learns most of what it learns in its first rows has not lost it when it falls back a little.
  const begin = Math.min(start, b[0] ?? start);
  // A level lasts when three blocks in a row hold it.
  const held = Float64Array.from({ length: Math.max(1, k - 2) }, (_, i) =>
    median(b.subarray(i, Math.min(k, i + 3))),
  );
  const [bestAt, worstAt] = [extreme(held, 1), extreme(held, -1)];
  const best = Math.max(held[bestAt], start);
  const worst = held[worstAt];
  const range = Math.max(best, end) - Math.min(worst, start);
  let told: Course | undefined;
  const course = (): Course => {
    told ??= courseOf(track.v);
    return told;
  };
  const gain = end - start;
  const improved = gain > l.improvedNoise * noise && rises(course());
  const half = trend(b.subarray(Math.floor(k / 2)));
  const improving =
    half.end - half.start > Math.max(l.improvingNoise * noise, l.improvingRange * range) &&
    half.z > l.improvingScore;
  const fall = deepestFall(held, begin, l.drawdownNoise * noise);
  const gained = best - begin;
  const lost = best - end;
  const kept =
    k >= l.settledBlocks &&
    gained > l.keptNoise * noise &&
    end - begin >= l.keptShare * gained &&
    start - begin > l.keptRise * noise;
  const fellBelow = start - end > Math.max(l.belowNoise * noise, l.belowShare * range) && falls(course());
  // A best stretch within the end itself is not lost.
  const collapsed =
    k >= l.settledBlocks &&
    lost > 0 &&
    bestAt + 3 <= k - Math.round(k * SMOOTHING.end) &&
    ((gained > l.gainedNoise * noise && lost > l.collapsedShare * gained && lost > l.gainedNoise * noise) ||
      fellBelow);
  const [low, high] = [quantile(track.v, 0.02), quantile(track.v, 0.98)];
  const constant =
    track.n >= l.constantRows && high - low <= l.constant * Math.max(Math.abs(low), Math.abs(high));
  const xOf = (i: number): number => track.x[Math.min(track.n - 1, Math.round(((i + 1) * track.n) / k))] ?? 0;
  return {
    track,
    get course() {
      return course();
    },
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
    get surelyImproving() {
      return improving && rises(courseOf(part(track, 0.5)));
    },
    gained: gained > l.gainedNoise * noise,
    collapsed,
    drawdown: fall.share,
    drawdownX: xOf(fall.at),
    constant,
    saturated: isSaturated(track, b, start, gain, noise) || (practised === true && standsAtTop(track)),
  };
}

/**
 * A ceiling that was reached before the log began: most returns are one and the same, above 0, and none is larger. Only of
 * a policy that has learnt something: of another it is a task that pays everything alike.
 */
function standsAtTop(track: Track): boolean {
  const top = track.q(1);
  if (track.n < l.ceilingBlocks || !(top > 0)) return false;
  return [track.v, part(track, 0.75)].every(
    values => share(values, v => v >= top - l.same * top) >= l.ceilingShare,
  );
}

/** The index of the largest value, or with sign -1 of the smallest; the first of equals. */
function extreme(values: Float64Array, sign: 1 | -1): number {
  let at = 0;
  values.forEach((v, i) => {
    if (sign * v > sign * values[at]) at = i;
  });
  return at;
}

/** The deepest fall from a level that had been reached, as a share of what had been gained by then. */
function deepestFall(held: Float64Array, begin: number, least: number): { share: number; at: number } {
  const worst = held[extreme(held, -1)];
  let [peak, peakAt, deepest] = [held[0], 0, 0];
  let found = { share: 0, at: 0 };
  held.forEach((v, i) => {
    if (v > peak) [peak, peakAt] = [v, i];
    const fall = peak - v;
    if (fall <= deepest || fall <= least) return;
    deepest = fall;
    found = { share: fall / Math.max(peak - Math.min(begin, worst), fall), at: peakAt };
  });
  return found;
}

/** Whether it is at a ceiling that it reached by learning. */
function isSaturated(track: Track, b: Float64Array, start: number, gain: number, noise: number): boolean {
  const k = b.length;
  if (k < l.ceilingBlocks) return false;
  const tail = b.subarray(Math.floor(k * 0.75));
  const top = b.reduce((a, v) => Math.max(a, v), Number.NEGATIVE_INFINITY);
  const reach = top - start;
  if (
    gain > reach / 2 &&
    reach > l.ceilingNoise * noise &&
    share(tail, v => v >= top - l.ceiling * reach) >= l.ceilingShare
  )
    return true;
  // In a long run a task may be solved before its first block ends: what it rose from is in its first rows alone.
  const first = median(track.v.subarray(0, Math.min(5, Math.ceil(track.n / SMOOTHING.blocks))));
  const rise = top - first;
  const bottom = track.q(0.001);
  return (
    rise > l.atOnceRange * (top - bottom) &&
    share(b, v => v >= top - l.atOnceCeiling * rise) >= l.atOnceBlocks &&
    share(tail, v => v >= top - l.atOnceCeiling * rise) >= l.ceilingShare
  );
}
