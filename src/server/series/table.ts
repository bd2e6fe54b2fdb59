/** The rows of one Keel run in columns, with where each is on every axis, in bounded memory. */
import { Column } from './column.ts';

/** Values that one run may hold: a million rows of 60 metrics. Beyond it neighbouring rows are merged in pairs. */
export const defaultMaxCells = 2 ** 26;
const firstRows = 64;

/** Where rows are. Entries beyond `length` do not count. */
export interface Axes {
  readonly length: number;
  readonly step: Float64Array;
  readonly iteration: Float64Array;
  /** Milliseconds since 1970, never going back; NaN before the first that is known. */
  readonly time: Float64Array;
}

export class Table {
  readonly #maxCells: number;
  readonly columns = new Map<string, Column>();
  #rows = 0;
  #total = 0;
  #step = new Float64Array(firstRows);
  #iteration = new Float64Array(firstRows);
  #time = new Float64Array(firstRows);
  /** Where the line of a row ends in the file, in bytes. */
  #end = new Float64Array(firstRows);
  /** How many rows of the log one row here stands for, and how many the last one has. */
  #stride = 1;
  #inLast = 0;

  constructor(maxCells = defaultMaxCells) {
    this.#maxCells = maxCells;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Rows of the log; more than `rows` once they were merged. */
  get total(): number {
    return this.#total;
  }

  get isMerged(): boolean {
    return this.#stride > 1;
  }

  get cells(): number {
    return this.#rows * (this.columns.size + 4);
  }

  get axes(): Axes {
    return { length: this.#rows, step: this.#step, iteration: this.#iteration, time: this.#time };
  }

  get lastStep(): number {
    return this.#rows === 0 ? 0 : this.#step[this.#rows - 1];
  }

  get lastIteration(): number {
    return this.#rows === 0 ? 0 : this.#iteration[this.#rows - 1];
  }

  /** Where the line of a row ends; 0 before the first. */
  endOf(row: number): number {
    return row < 0 ? 0 : this.#end[row];
  }

  column(name: string): Column {
    let column = this.columns.get(name);
    if (column === undefined) {
      column = new Column();
      this.columns.set(name, column);
    }
    return column;
  }

  /** Begins a row, and says its number for {@link Column.set}. `timeMs` may be NaN. */
  begin(step: number, iteration: number, timeMs: number, end: number): number {
    this.#total++;
    if (this.#stride > 1 && this.#inLast < this.#stride && this.#rows > 0) this.#inLast++;
    else {
      if (this.#rows * (this.columns.size + 4) >= this.#maxCells && this.#rows > 1024) this.#mergePairs();
      if (this.#rows === this.#step.length) this.#grow();
      this.#rows++;
      this.#inLast = 1;
    }
    const row = this.#rows - 1;
    const before = row === 0 ? Number.NaN : this.#time[row - 1];
    this.#step[row] = step;
    this.#iteration[row] = iteration;
    this.#time[row] = timeMs >= before || Number.isNaN(before) ? timeMs : before;
    this.#end[row] = end;
    return row;
  }

  /** Builds the blocks of all columns; after each portion of rows. */
  settle(): void {
    for (const column of this.columns.values()) column.settle();
  }

  /** Forgets the rows from `rows` on. Not for a table with merged rows, which cannot be cut within one. */
  cut(rows: number): void {
    if (this.isMerged && rows > 0) throw new RangeError('merged rows cannot be cut: read the log again');
    for (const [name, column] of this.columns) {
      column.cut(rows);
      if (column.points === 0) this.columns.delete(name);
    }
    this.#rows = rows;
    this.#total = rows;
    if (rows === 0) {
      this.#stride = 1;
      this.#inLast = 0;
    }
  }

  #mergePairs(): void {
    const rows = this.#rows;
    for (const column of this.columns.values()) column.mergePairs(rows);
    const pairs = Math.ceil(rows / 2);
    for (const axis of [this.#step, this.#iteration, this.#time, this.#end]) {
      for (let i = 0; i < pairs; i++) axis[i] = axis[Math.min(2 * i + 1, rows - 1)];
    }
    this.#rows = pairs;
    this.#stride *= 2;
  }

  #grow(): void {
    const grown = (old: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> => {
      const fresh = new Float64Array(2 * old.length);
      fresh.set(old);
      return fresh;
    };
    this.#step = grown(this.#step);
    this.#iteration = grown(this.#iteration);
    this.#time = grown(this.#time);
    this.#end = grown(this.#end);
  }
}
