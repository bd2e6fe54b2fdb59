/**
 * A series of numbers that may grow without end. Up to its capacity every point is kept; beyond it neighbours are
 * merged in pairs, so that memory stays bounded and no spike is lost: each merged point keeps its mean, its smallest
 * and its largest value, and how many of its values were not finite.
 */

/** What readers and rules see of a series. Arrays have `length` valid entries and must not be written. */
export interface Series {
  readonly length: number;
  /** How many values were appended. More than `length` once points were merged. */
  readonly count: number;
  /** Position of a point: a row's number or a step, ascending as the log has them; of a merged point, its last. */
  readonly x: Float64Array;
  /** Mean of the finite values of a point; NaN, +Infinity or -Infinity when none was finite. */
  readonly values: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  /** How many values of a point were not finite. */
  readonly broken: Uint32Array;
  /** Seconds since 1970 of a point, NaN where the log does not say. */
  readonly wallTime: Float64Array;
}
