/**
 * The values of one metric, a row each, with a pyramid of blocks above them: smallest, largest and sum of any stretch of
 * a million rows cost a few dozen additions, and no spike is ever skipped.
 */

/** Rows of a block, and blocks of a block above it. */
const fan = 16;
const firstSize = 64;

/** What a stretch of rows adds up to. */
export interface Stretch {
  /** Values, those that are not finite included. */
  count: number;
  /** Values that are not finite. */
  broken: number;
  /** Of the finite ones; Infinity, -Infinity and 0 if there are none. */
  min: number;
  max: number;
  sum: number;
}

export const newStretch = (): Stretch => ({
  count: 0,
  broken: 0,
  min: Number.POSITIVE_INFINITY,
  max: Number.NEGATIVE_INFINITY,
  sum: 0,
});

/** The mean of a stretch, within what it is the mean of whatever rounding says; NaN if nothing in it is finite. */
export function meanOf({ count, broken, min, max, sum }: Stretch): number {
  const finite = count - broken;
  if (finite === 0) return Number.NaN;
  const mean = sum / finite;
  // A sum of huge values overflows; their middle is the best that is left.
  return Number.isFinite(mean) ? Math.min(max, Math.max(min, mean)) : min / 2 + max / 2;
}

/** Blocks of one size. */
interface Level {
  length: number;
  min: Float64Array;
  max: Float64Array;
  sum: Float64Array;
  count: Uint32Array;
  broken: Uint32Array;
}

/** What only a column with merged rows needs. */
interface Merged {
  min: Float64Array;
  max: Float64Array;
  sum: Float64Array;
  broken: Uint32Array;
}

/** Arrays of a column as another thread or a file gives them; entries beyond `length` do not count. */
export interface ColumnArrays {
  readonly length: number;
  readonly values: Float64Array;
  /** How many values each row stands for, 0 where there is none; undefined if it is one each. */
  readonly counts?: Uint32Array | undefined;
  readonly min?: Float64Array | undefined;
  readonly max?: Float64Array | undefined;
  readonly sum?: Float64Array | undefined;
  readonly broken?: Uint32Array | undefined;
}

export class Column {
  #length = 0;
  /** The value of a row; of a merged one its mean. */
  #values: Float64Array;
  #counts: Uint32Array | undefined;
  #merged: Merged | undefined;
  readonly #levels: Level[] = [];
  #points = 0;

  constructor(size = firstSize) {
    this.#values = new Float64Array(Math.max(1, size));
  }

  static from(arrays: ColumnArrays): Column {
    const column = new Column(1);
    const { length, values, counts, min, max, sum, broken } = arrays;
    column.#length = length;
    column.#values = values;
    column.#counts = counts;
    if (min && max && sum && broken) column.#merged = { min, max, sum, broken };
    column.#points = length;
    if (counts !== undefined) {
      column.#points = 0;
      for (let i = 0; i < length; i++) column.#points += counts[i];
    }
    column.settle();
    return column;
  }

  /** Rows up to the last that has a value. */
  get length(): number {
    return this.#length;
  }

  /** How many values there are. */
  get points(): number {
    return this.#points;
  }

  arrays(): ColumnArrays {
    const length = this.#length;
    return {
      length,
      values: this.#values.subarray(0, length),
      counts: this.#counts?.subarray(0, length),
      min: this.#merged?.min.subarray(0, length),
      max: this.#merged?.max.subarray(0, length),
      sum: this.#merged?.sum.subarray(0, length),
      broken: this.#merged?.broken.subarray(0, length),
    };
  }

  /** Puts a value into a row, which must not be before the last one that has any. */
  set(row: number, value: number): void {
    if (row < this.#length) {
      this.#addTo(row, value);
      return;
    }
    if (row >= this.#values.length) this.#grow(row + 1);
    if (row > this.#length) {
      // The rows between have none, whatever a cut left there.
      this.#ones();
      this.#counts!.fill(0, this.#length, row);
    }
    this.#values[row] = value;
    if (this.#counts !== undefined) this.#counts[row] = 1;
    if (this.#merged !== undefined) {
      const finite = value - value === 0;
      this.#merged.min[row] = finite ? value : Number.POSITIVE_INFINITY;
      this.#merged.max[row] = finite ? value : Number.NEGATIVE_INFINITY;
      this.#merged.sum[row] = finite ? value : 0;
      this.#merged.broken[row] = finite ? 0 : 1;
    }
    this.#length = row + 1;
    this.#points++;
  }

  /** The newest row that has a value, before `row`; -1 if none has. */
  lastBefore(row: number, from = 0): number {
    let i = Math.min(row, this.#length) - 1;
    const counts = this.#counts;
    if (counts === undefined) return i >= from ? i : -1;
    while (i >= from) {
      if (counts[i] !== 0) return i;
      // Whole blocks without a value are passed in one step, the largest first.
      let step = 1;
      let width = fan;
      for (const level of this.#levels) {
        if ((i + 1) % width !== 0) break;
        const block = (i + 1) / width - 1;
        if (block >= level.length || level.count[block] !== 0) break;
        step = width;
        width *= fan;
      }
      i -= step;
    }
    return -1;
  }

  /** The value of a row (the mean of a merged one); undefined where it has none. */
  at(row: number): number | undefined {
    if (row < 0 || row >= this.#length || this.#counts?.[row] === 0) return undefined;
    return this.#values[row];
  }

  /** Adds the rows `from <= row < to` to a stretch. */
  add(from: number, to: number, into: Stretch): void {
    let a = from;
    const b = Math.min(to, this.#length);
    if (a >= b) return;
    let [level, width] = [0, 1];
    // Up while a larger block begins before the end …
    for (;;) {
      const wide = width * fan;
      const start = Math.ceil(a / wide) * wide;
      const blocks = this.#levels[level];
      if (blocks === undefined || start + wide > Math.min(b, blocks.length * wide)) break;
      this.#addBlocks(level, a / width, start / width, into);
      a = start;
      level++;
      width = wide;
    }
    // … and down to the rows that are left.
    for (; level >= 0; level--, width /= fan) {
      const whole = level === 0 ? b : Math.min(b, this.#levels[level - 1].length * width);
      const end = a + Math.max(0, Math.floor((whole - a) / width)) * width;
      this.#addBlocks(level, a / width, end / width, into);
      a = end;
    }
  }

  /** Builds the blocks that have become full. Called after rows were added; `add` is right without, and slower. */
  settle(): void {
    let below = this.#length;
    for (let k = 0; ; k++) {
      const full = Math.floor(below / fan);
      if (full === 0) return;
      let level = this.#levels[k];
      if (level === undefined) {
        level = newLevel(Math.max(16, full));
        this.#levels.push(level);
      }
      if (full > level.min.length) growLevel(level, Math.max(full, 2 * level.min.length));
      const stretch = newStretch();
      for (let block = level.length; block < full; block++) {
        stretch.count = 0;
        stretch.broken = 0;
        stretch.min = Number.POSITIVE_INFINITY;
        stretch.max = Number.NEGATIVE_INFINITY;
        stretch.sum = 0;
        this.#addBlocks(k, block * fan, (block + 1) * fan, stretch);
        level.min[block] = stretch.min;
        level.max[block] = stretch.max;
        level.sum[block] = stretch.sum;
        level.count[block] = stretch.count;
        level.broken[block] = stretch.broken;
      }
      level.length = full;
      below = full;
    }
  }

  /** Forgets the rows from `rows` on. */
  cut(rows: number): void {
    if (rows >= this.#length) return;
    const gone = newStretch();
    this.add(rows, this.#length, gone);
    this.#points -= gone.count;
    this.#length = Math.max(0, this.lastBefore(rows) + 1);
    this.#forgetBlocks(this.#length);
  }

  /** Makes one row of every two; `rows` is how many there are, of which this column may lack the last. */
  mergePairs(rows: number): void {
    const pairs = Math.ceil(rows / 2);
    const merged: Merged = this.#merged ?? {
      min: new Float64Array(this.#values.length),
      max: new Float64Array(this.#values.length),
      sum: new Float64Array(this.#values.length),
      broken: new Uint32Array(this.#values.length),
    };
    const fresh = this.#merged === undefined;
    this.#ones();
    const counts = this.#counts!;
    const stretch = newStretch();
    let length = 0;
    for (let i = 0; i < pairs; i++) {
      Object.assign(stretch, newStretch());
      if (fresh) this.#addRows(2 * i, Math.min(2 * i + 2, this.#length), stretch);
      else this.#addMerged(2 * i, Math.min(2 * i + 2, this.#length), stretch);
      merged.min[i] = stretch.min;
      merged.max[i] = stretch.max;
      merged.sum[i] = stretch.sum;
      merged.broken[i] = stretch.broken;
      counts[i] = stretch.count;
      if (stretch.count > 0) {
        length = i + 1;
        this.#values[i] =
          stretch.count > stretch.broken ? meanOf(stretch) : (this.#values[2 * i + 1] ?? Number.NaN);
      }
    }
    this.#merged = merged;
    this.#length = length;
    this.#levels.length = 0;
    this.settle();
  }

  #addTo(row: number, value: number): void {
    if (this.#merged === undefined) throw new RangeError(`row ${row} has a value already`);
    const { min, max, sum, broken } = this.#merged;
    const counts = this.#counts!;
    this.#forgetBlocks(row);
    const finite = value - value === 0;
    if (finite) {
      min[row] = Math.min(min[row], value);
      max[row] = Math.max(max[row], value);
      sum[row] = sum[row] + value;
    } else broken[row]++;
    counts[row]++;
    this.#points++;
    const good = counts[row] - broken[row];
    this.#values[row] = good === 0 ? value : sum[row] / good;
  }

  /** Blocks that reach beyond these rows are built again. */
  #forgetBlocks(rows: number): void {
    let full = Math.floor(rows / fan);
    for (const level of this.#levels) {
      level.length = Math.min(level.length, full);
      full = Math.floor(full / fan);
    }
  }

  /** Gives every row a count of its own. */
  #ones(): void {
    if (this.#counts !== undefined) return;
    this.#counts = new Uint32Array(this.#values.length);
    this.#counts.fill(1, 0, this.#length);
  }

  #grow(needed: number): void {
    const size = Math.max(needed, 2 * this.#values.length);
    this.#values = larger(this.#values, new Float64Array(size));
    if (this.#counts !== undefined) this.#counts = larger(this.#counts, new Uint32Array(size));
    const merged = this.#merged;
    if (merged === undefined) return;
    for (const name of ['min', 'max', 'sum'] as const)
      merged[name] = larger(merged[name], new Float64Array(size));
    merged.broken = larger(merged.broken, new Uint32Array(size));
  }

  #addBlocks(level: number, from: number, to: number, into: Stretch): void {
    if (level === 0) {
      if (this.#merged === undefined) this.#addRows(from, to, into);
      else this.#addMerged(from, to, into);
      return;
    }
    const { min, max, sum, count, broken } = this.#levels[level - 1];
    for (let i = from; i < to; i++) {
      if (min[i] < into.min) into.min = min[i];
      if (max[i] > into.max) into.max = max[i];
      into.sum += sum[i];
      into.count += count[i];
      into.broken += broken[i];
    }
  }

  #addRows(from: number, to: number, into: Stretch): void {
    const values = this.#values;
    const counts = this.#counts;
    let { min, max, sum, count, broken } = into;
    for (let i = from; i < to; i++) {
      if (counts !== undefined && counts[i] === 0) continue;
      const value = values[i];
      count++;
      if (value - value !== 0) {
        broken++;
        continue;
      }
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    }
    into.min = min;
    into.max = max;
    into.sum = sum;
    into.count = count;
    into.broken = broken;
  }

  #addMerged(from: number, to: number, into: Stretch): void {
    const { min, max, sum, broken } = this.#merged!;
    const counts = this.#counts;
    for (let i = from; i < to; i++) {
      if (counts !== undefined && counts[i] === 0) continue;
      if (min[i] < into.min) into.min = min[i];
      if (max[i] > into.max) into.max = max[i];
      into.sum += sum[i];
      into.count += counts?.[i] ?? 1;
      into.broken += broken[i];
    }
  }
}

function larger<T extends Float64Array | Uint32Array>(old: T, fresh: T): T {
  fresh.set(old);
  return fresh;
}

function newLevel(size: number): Level {
  return {
    length: 0,
    min: new Float64Array(size),
    max: new Float64Array(size),
    sum: new Float64Array(size),
    count: new Uint32Array(size),
    broken: new Uint32Array(size),
  };
}

function growLevel(level: Level, size: number): void {
  level.min = larger(level.min, new Float64Array(size));
  level.max = larger(level.max, new Float64Array(size));
  level.sum = larger(level.sum, new Float64Array(size));
  level.count = larger(level.count, new Uint32Array(size));
  level.broken = larger(level.broken, new Uint32Array(size));
}
