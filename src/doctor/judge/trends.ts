/**
 * How a series went: rising, flat, falling, up and down again, a step, spikes, or nobody can tell. Each answer rests on a
 * test that takes the noise, its autocorrelation and the number of points into account, and none depends on where the
 * zero of the series is or in which unit it is told: adding a constant or multiplying by a positive number changes nothing.
 */
import { limitsOf } from '../rules/limits.ts';
import { blockMedians, jitter } from '../statistics/blocks.ts';
import { changePoint } from '../statistics/change-point.ts';
import { median, type Numbers, quantile, spread } from '../statistics/order.ts';
import { theilSen } from '../statistics/trend.ts';

/** What a series may be said to do. */
export const shapes = [
  'rising',
  'flat',
  'falling',
  'peak-then-fall',
  'step',
  'spikes',
  'cannot-tell',
] as const;
export type Shape = (typeof shapes)[number];

/** What the tests ask for. Rates of false alarm are those of normal noise with the same autocorrelation. */
export const trendLimits = limitsOf('trends', {
  /** Fewer points than this show nothing. */
  points: 6,
  /** Standard scores of Mann and Kendall's tau beyond which a trend is no chance: 1 in 100, both sides together. */
  score: 2.58,
  /**
   * A curve that bends has residuals that look as if they depended on each other. A change so many times its margin is no
   * chance at a lower score.
   */
  bentScore: 1.5,
  bentMargins: 4,
  /** The same for one whose first and last fifth are apart: in standard errors of their difference. */
  apart: 2.58,
  /** Points that a fifth must have for that. */
  fifth: 4,
  /** A change that is surely smaller than so many standard deviations of the rows is none. */
  flat: 2,
  /** A peak: what was gained and lost in noise of the smoothed curve, and so much of what was gained is gone again. */
  peakNoise: 6,
  lost: 0.5,
  /** A rise or fall is one step if so much of it lies at one place, and it is so many times the spread on either side. */
  stepPoints: 20,
  atOnce: 0.8,
  stepSpread: 4,
  /** So many robust deviations from the median are a spike, and no more of them than this share. */
  spike: 8,
  spikes: 0.1,
});

/** Of the interval of the whole change: 95 in 100. */
const INTERVAL = 1.96;
/** The points within which a step is made, as a share of all. */
const STEP_WIDTH = 0.05;

/** All pairs of so many points are few; longer series are cut to block medians. */
const MOST = 100;
/** However much a series depends on its past, this many points say something if they are all in order. */
const FEWEST_FREE = 7;
/** The pieces by which a curve's own shape is taken out before its noise is measured. */
const PIECES = 4;
/** Points of the smoothed curve by which a peak is looked for. */
const SMOOTH = 24;

export interface Course {
  readonly shape: Shape;
  readonly n: number;
  /** Independent points that the noise is worth. */
  readonly free: number;
  /** Medians of the first and the last fifth. */
  readonly start: number;
  readonly end: number;
  /** The change over the whole series by the median slope (Theil 1950, Sen 1968), and how far off it may be. */
  readonly change: number;
  readonly margin: number;
  /** Standard scores of tau with time, corrected for autocorrelation (Mann 1945; Yue and Wang 2004). */
  readonly score: number;
  /** How far apart the first and the last fifth are, in standard errors of their own spreads. */
  readonly apart: number;
  /** Standard deviation of single points about the curve. */
  readonly noise: number;
  /** The highest level that lasted, and its place from 0 to 1. */
  readonly peak: number;
  readonly peakAt: number;
}

const none = (n: number): Course => ({
  shape: 'cannot-tell',
  n,
  free: n,
  start: Number.NaN,
  end: Number.NaN,
  change: Number.NaN,
  margin: Number.POSITIVE_INFINITY,
  score: 0,
  apart: 0,
  noise: Number.NaN,
  peak: Number.NaN,
  peakAt: Number.NaN,
});

/** What is left of the values when straight lines between the medians of a few pieces are taken away. */
function residuals(values: Float64Array): Float64Array {
  const pieces = Math.min(PIECES, Math.floor(values.length / 3));
  if (pieces < 2) return values.map(v => v - median(values));
  const size = values.length / pieces;
  const knots = Array.from({ length: pieces }, (_, i) =>
    median(values.subarray(Math.floor(i * size), Math.floor((i + 1) * size))),
  );
  return values.map((v, i) => {
    const at = (i + 0.5) / size - 0.5;
    const left = Math.min(Math.max(Math.floor(at), 0), pieces - 2);
    return v - (knots[left] + (knots[left + 1] - knots[left]) * (at - left));
  });
}

/** Correlation of the values with themselves, a point later; 0 where they do not vary. */
function lagOne(values: Float64Array): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  let [own, next] = [0, 0];
  for (let i = 0; i < values.length; i++) {
    own += (values[i] - mean) ** 2;
    if (i > 0) next += (values[i] - mean) * (values[i - 1] - mean);
  }
  return own > 0 ? Math.min(Math.max(next / own, 0), 0.99) : 0;
}

/** Mann and Kendall's standard score of `tau` over so many independent points. */
const scoreOf = (tau: number, free: number): number =>
  tau * Math.sqrt((9 * free * (free - 1)) / (2 * (2 * free + 5)));

function tauOf(points: Numbers): number {
  const m = points.length;
  let sum = 0;
  for (let i = 0; i < m; i++) for (let j = i + 1; j < m; j++) sum += Math.sign(points[j] - points[i]);
  return sum / ((m * (m - 1)) / 2);
}

/** How a series went. Points that are not finite are left out. */
export function courseOf(series: Numbers): Course {
  const values = Float64Array.from(Array.from(series).filter(Number.isFinite));
  const n = values.length;
  if (n < trendLimits.points) return none(n);
  const points = blockMedians(values, MOST);
  const m = points.length;
  const left = residuals(points);
  const rho = lagOne(left);
  const free = Math.min(m, Math.max(FEWEST_FREE, (m * (1 - rho)) / (1 + rho)));
  const tau = tauOf(points);
  const score = scoreOf(tau, free);
  const noise = noiseOf(left);
  // The standard error of a slope over points that are evenly spaced, times their number.
  const margin = INTERVAL * noise * Math.sqrt(12 / free);
  const fifth = Math.max(1, Math.floor(n / 5));
  const smooth = blockMedians(points, Math.min(SMOOTH, Math.max(3, Math.floor(m / 3))));
  let top = 0;
  smooth.forEach((v, i) => {
    if (v > smooth[top]) top = i;
  });
  const peak = smooth[top];
  const peakAt = (top + 0.5) / smooth.length;
  const [first, last] = [values.subarray(0, fifth), values.subarray(n - fifth)];
  const [start, end] = [median(first), median(last)];
  const each = Math.max(1, free / 5);
  // Of two or three points nobody knows the spread.
  const apart =
    fifth < trendLimits.fifth
      ? 0
      : (end - start) / Math.max(Math.sqrt((spread(first) ** 2 + spread(last) ** 2) / each), 1e-300);
  // The slope and the shape cost more than all else, and most who ask whether it rises need neither.
  let change: number | undefined;
  let shape: Shape | undefined;
  const course: Course = {
    n,
    free,
    start,
    end,
    margin,
    score,
    apart,
    noise,
    peak,
    peakAt,
    get change() {
      change ??=
        theilSen(
          Float64Array.from(points, (_, i) => i),
          points,
        ) *
        (m - 1);
      return change;
    },
    get shape() {
      shape ??= shapeOf(points, smooth, top, course);
      return shape;
    },
  };
  return course;
}

/** Of residuals; where most of them are one value, by the others as well. */
function noiseOf(left: Float64Array): number {
  const robust = spread(left);
  if (robust > 0) return robust;
  return Math.sqrt(left.reduce((sum, v) => sum + v * v, 0) / left.length);
}

function shapeOf(
  points: Float64Array,
  smooth: Float64Array,
  top: number,
  told: Omit<Course, 'shape'>,
): Shape {
  const { margin, score, noise } = told;
  // Exact zero noise and one value: nothing moves, and nobody needs a test for that.
  if (quantile(points, 1) === quantile(points, 0)) return 'flat';
  if (isPeak(smooth, top, noise, points.length / smooth.length)) return 'peak-then-fall';
  if (isSure(told)) return isStep(points) ? 'step' : score > 0 ? 'rising' : 'falling';
  if (isSpiky(points)) return 'spikes';
  if (Math.abs(told.change) + margin <= trendLimits.flat * noise) return 'flat';
  return 'cannot-tell';
}

/** Whether a trend is no chance. */
function isSure(course: Pick<Course, 'score' | 'change' | 'margin' | 'apart'>): boolean {
  const { score, margin, apart } = course;
  const size = Math.abs(score);
  if (size > trendLimits.score) return true;
  if (!(size > trendLimits.bentScore)) return false;
  if (score * apart > 0 && Math.abs(apart) > trendLimits.apart) return true;
  const { change } = course;
  return score * change > 0 && Math.abs(change) > trendLimits.bentMargins * margin;
}

/** Whether a series surely ends above where it began; a step up is that, too. */
export const rises = (course: Course): boolean => isSure(course) && course.score > 0;
/** The same, downwards. */
export const falls = (course: Course): boolean => isSure(course) && course.score < 0;

/** It rose far beyond the noise of the smoothed curve, and lost half of that again for the rest. */
function isPeak(smooth: Float64Array, top: number, noise: number, size: number): boolean {
  if (top < 1 || top > smooth.length - 3) return false;
  const before = smooth.subarray(0, top).reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const after = smooth.subarray(top + 1);
  const end = median(after.subarray(after.length >> 1));
  const gained = smooth[top] - before;
  const lost = smooth[top] - end;
  // The noise of a block of points that depend on each other is not much below that of one.
  const still = Math.max(jitter(smooth), noise / Math.sqrt(Math.max(1, size / 4)));
  const least = trendLimits.peakNoise * still;
  return gained > least && lost > least && lost > trendLimits.lost * gained;
}

/** Nearly all of the difference lies at one place. */
function isStep(points: Float64Array): boolean {
  const found = changePoint(points);
  if (found === undefined || points.length < trendLimits.stepPoints) return false;
  const size = Math.abs(found.after - found.before);
  if (!(size > 0)) return false;
  const width = Math.max(1, Math.round(STEP_WIDTH * points.length));
  const [a, b] = [found.index - width, found.index + width];
  if (a < 3 || b > points.length - 3) return false;
  const inside = Math.abs(
    median(points.subarray(b, b + 3 * width)) - median(points.subarray(Math.max(0, a - 3 * width), a)),
  );
  const whole = Math.abs(median(points.subarray(-3 * width)) - median(points.subarray(0, 3 * width)));
  const within = Math.max(spread(points.subarray(0, a)), spread(points.subarray(b)));
  return inside >= trendLimits.atOnce * Math.max(whole, size) && size > trendLimits.stepSpread * within;
}

function isSpiky(points: Float64Array): boolean {
  const [middle, wide] = [median(points), spread(points)];
  if (!(wide > 0)) return false;
  const far = points.filter(v => Math.abs(v - middle) > trendLimits.spike * wide).length;
  return far > 0 && far <= trendLimits.spikes * points.length;
}
