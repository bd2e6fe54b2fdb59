/**
 * A series of numbers that may grow without end. Up to its capacity every point is kept; beyond it neighbours are
 * merged in pairs, so that memory stays bounded and no spike is lost: each merged point keeps its mean, its smallest
 * and its largest value, and how many of its values were not finite.
 */

/** What readers and rules see of a series. Arrays have `length` entries and must not be written. */
export interface Series {
  readonly length: number;
  /** How many values were appended. More than `length` once points were merged. */
  readonly count: number;
  /** Position of a point: a row's number or a step, ascending as the log has them; of a merged point, its last. */
  readonly x: Float64Array;
  /** Mean of the finite values of a point; NaN, +Infinity or -Infinity when none was finite. */
  readonly values: Float64Array;
  /** Smallest and largest of the finite values of a point; as `values` when none was finite. */
  readonly min: Float64Array;
  readonly max: Float64Array;
  /** How many values of a point were not finite. */
  readonly broken: Uint32Array;
  /** Seconds since 1970 of a point, NaN where the log does not say. */
  readonly wallTime: Float64Array;
}

/** Ample for any plot and any rule; a series of this length takes a megabyte. */
export const defaultCapacity = 32_768;
const firstSize = 16;

/** Arrays that only a series with merged points needs: without them each point is one value. */
interface Merged {
  min: Float64Array;
  max: Float64Array;
  /** How many values each point stands for. */
  counts: Uint32Array;
}

/** Collects a series in bounded memory. */
export class SeriesBuilder {
  #capacity: number;
  #length = 0;
  #count = 0;
  #x: Float64Array;
  #values: Float64Array;
  #wallTime: Float64Array;
  #broken: Uint32Array | undefined;
  #merged: Merged | undefined;
  /** How many values a new point collects before the next one begins. */
  #stride = 1;

  constructor(capacity = defaultCapacity) {
    this.#capacity = Math.max(2, capacity & ~1);
    const size = Math.min(firstSize, this.#capacity);
    this.#x = new Float64Array(size);
    this.#values = new Float64Array(size);
    this.#wallTime = new Float64Array(size);
  }

  get length(): number {
    return this.#length;
  }

  get count(): number {
    return this.#count;
  }

  /** How many points the arrays have room for: what memory depends on. */
  get size(): number {
    return this.#x.length;
  }

  /** Position of the newest point; -Infinity when there is none. */
  get lastX(): number {
    return this.#length === 0 ? Number.NEGATIVE_INFINITY : this.#x[this.#length - 1];
  }

  append(x: number, value: number, wallTime = Number.NaN): void {
    this.#count++;
    if (this.#stride > 1) {
      const last = this.#length - 1;
      if (last >= 0 && this.#merged!.counts[last] < this.#stride) {
        this.#addTo(last, x, value, wallTime);
        return;
      }
    }
    if (this.#length === this.#x.length) this.#makeRoom();
    const at = this.#length++;
    this.#x[at] = x;
    this.#values[at] = value;
    this.#wallTime[at] = wallTime;
    if (value - value !== 0) {
      this.#broken ??= new Uint32Array(this.#x.length);
      this.#broken[at] = 1;
    } else if (this.#broken !== undefined) {
      this.#broken[at] = 0;
    }
    if (this.#merged !== undefined) {
      this.#merged.min[at] = value;
      this.#merged.max[at] = value;
      this.#merged.counts[at] = 1;
    }
  }

  /** Removes the points at `from <= x < to`; returns how many values they stood for. */
  remove(from: number, to = Number.POSITIVE_INFINITY): number {
    let kept = 0;
    let gone = 0;
    for (let i = 0; i < this.#length; i++) {
      const x = this.#x[i];
      if (x >= from && x < to) gone += this.#merged?.counts[i] ?? 1;
      else this.#move(i, kept++);
    }
    this.#length = kept;
    this.#count -= gone;
    return gone;
  }

  /** Removes points by their index, in ranges that ascend (`to` is exclusive); returns how many values they stood for. */
  removeAt(ranges: readonly { readonly from: number; readonly to: number }[]): number {
    let [kept, gone, range] = [0, 0, 0];
    for (let i = 0; i < this.#length; i++) {
      while (range < ranges.length && i >= ranges[range].to) range++;
      if (range < ranges.length && i >= ranges[range].from) gone += this.#merged?.counts[i] ?? 1;
      else this.#move(i, kept++);
    }
    this.#length = kept;
    this.#count -= gone;
    return gone;
  }

  /** Adds to the values of all points from `from` on. */
  shift(from: number, by: number): void {
    for (let i = 0; i < this.#length; i++) {
      if (this.#x[i] < from) continue;
      this.#values[i] += by;
      if (this.#merged === undefined) continue;
      this.#merged.min[i] += by;
      this.#merged.max[i] += by;
    }
  }

  /** Puts each point at its number, from 1. */
  renumber(): void {
    let x = 0;
    for (let i = 0; i < this.#length; i++) {
      x += this.#merged?.counts[i] ?? 1;
      this.#x[i] = x;
    }
  }

  /** Puts the points in the order of x; those at one x stay in the order they came. */
  sort(): void {
    const order = Uint32Array.from({ length: this.#length }, (_, i) => i);
    const x = this.#x.slice(0, this.#length);
    order.sort((a, b) => x[a] - x[b] || a - b);
    const permute = <T extends Float64Array | Uint32Array>(array: T): T => {
      const old = array.slice(0, order.length);
      for (let i = 0; i < order.length; i++) array[i] = old[order[i]];
      return array;
    };
    permute(this.#x);
    permute(this.#values);
    permute(this.#wallTime);
    if (this.#broken !== undefined) permute(this.#broken);
    if (this.#merged !== undefined) {
      permute(this.#merged.min);
      permute(this.#merged.max);
      permute(this.#merged.counts);
    }
  }

  /** Lowers the capacity and merges points until they fit. */
  limit(capacity: number): void {
    this.#capacity = Math.max(2, capacity & ~1);
    if (this.#x.length <= this.#capacity) return;
    while (this.#length > this.#capacity) this.#mergePairs();
    this.#resize(this.#capacity);
  }

  /** The series so far, without copying: it stays right until the next call of `append`, `remove`, `sort` or `limit`. */
  build(): Series {
    const { length } = this;
    const values = this.#values.subarray(0, length);
    return {
      length,
      count: this.#count,
      x: this.#x.subarray(0, length),
      values,
      min: this.#merged?.min.subarray(0, length) ?? values,
      max: this.#merged?.max.subarray(0, length) ?? values,
      broken: this.#broken?.subarray(0, length) ?? new Uint32Array(length),
      wallTime: this.#wallTime.subarray(0, length),
    };
  }

  #makeRoom(): void {
    if (this.#length < this.#capacity) this.#resize(Math.min(2 * this.#length, this.#capacity));
    else this.#mergePairs();
  }

  #resize(size: number): void {
    const used = Math.min(size, this.#length);
    const grown = <T extends Float64Array | Uint32Array>(old: T, fresh: T): T => {
      fresh.set(old.subarray(0, used));
      return fresh;
    };
    this.#x = grown(this.#x, new Float64Array(size));
    this.#values = grown(this.#values, new Float64Array(size));
    this.#wallTime = grown(this.#wallTime, new Float64Array(size));
    if (this.#broken !== undefined) this.#broken = grown(this.#broken, new Uint32Array(size));
    const merged = this.#merged;
    if (merged === undefined) return;
    merged.min = grown(merged.min, new Float64Array(size));
    merged.max = grown(merged.max, new Float64Array(size));
    merged.counts = grown(merged.counts, new Uint32Array(size));
  }

  #mergePairs(): void {
    const size = this.#x.length;
    this.#merged ??= {
      min: this.#values.slice(),
      max: this.#values.slice(),
      counts: new Uint32Array(size).fill(1),
    };
    this.#broken ??= new Uint32Array(size);
    const { min, max, counts } = this.#merged;
    const pairs = this.#length >> 1;
    for (let i = 0; i < pairs; i++) {
      const a = 2 * i;
      const b = a + 1;
      const finiteA = counts[a] - this.#broken[a];
      const finiteB = counts[b] - this.#broken[b];
      this.#values[i] = mean(this.#values[a], finiteA, this.#values[b], finiteB);
      min[i] = finiteA === 0 ? min[b] : finiteB === 0 ? min[a] : Math.min(min[a], min[b]);
      max[i] = finiteA === 0 ? max[b] : finiteB === 0 ? max[a] : Math.max(max[a], max[b]);
      this.#settle(i, finiteA + finiteB, min, max);
      counts[i] = counts[a] + counts[b];
      this.#broken[i] = this.#broken[a] + this.#broken[b];
      this.#x[i] = this.#x[b];
      this.#wallTime[i] = later(this.#wallTime[a], this.#wallTime[b]);
    }
    if (this.#length % 2 === 1) this.#move(this.#length - 1, pairs);
    this.#length = this.#length - pairs;
    this.#stride *= 2;
  }

  /** Adds a value to the last point, which is not full. */
  #addTo(at: number, x: number, value: number, wallTime: number): void {
    const { min, max, counts } = this.#merged!;
    const broken = this.#broken!;
    const finite = counts[at] - broken[at];
    if (value - value === 0) {
      this.#values[at] = mean(this.#values[at], finite, value, 1);
      min[at] = finite === 0 ? value : Math.min(min[at], value);
      max[at] = finite === 0 ? value : Math.max(max[at], value);
      this.#settle(at, finite + 1, min, max);
    } else {
      if (finite === 0) {
        this.#values[at] = mean(this.#values[at], 0, value, 0);
        this.#settle(at, 0, min, max);
      }
      broken[at]++;
    }
    counts[at]++;
    this.#x[at] = x;
    this.#wallTime[at] = later(this.#wallTime[at], wallTime);
  }

  /** A mean is within what it is the mean of, whatever rounding says; without finite values all three are the same. */
  #settle(at: number, finite: number, min: Float64Array, max: Float64Array): void {
    const value = this.#values[at];
    if (finite === 0) {
      min[at] = value;
      max[at] = value;
    } else {
      this.#values[at] = Math.min(Math.max(value, min[at]), max[at]);
    }
  }

  #move(from: number, to: number): void {
    if (from === to) return;
    this.#x[to] = this.#x[from];
    this.#values[to] = this.#values[from];
    this.#wallTime[to] = this.#wallTime[from];
    if (this.#broken !== undefined) this.#broken[to] = this.#broken[from];
    const merged = this.#merged;
    if (merged === undefined) return;
    merged.min[to] = merged.min[from];
    merged.max[to] = merged.max[from];
    merged.counts[to] = merged.counts[from];
  }
}

/** Of two means by how many finite values each has; of none, the one kind of broken value there was, or NaN. */
function mean(a: number, countA: number, b: number, countB: number): number {
  const total = countA + countB;
  if (total === 0) return a === b ? a : Number.NaN;
  if (countA === 0) return b;
  if (countB === 0) return a;
  // Not (a * countA + b * countB) / total, which overflows near the largest double.
  return a * (countA / total) + b * (countB / total);
}

function later(a: number, b: number): number {
  return Number.isNaN(b) ? a : b;
}
