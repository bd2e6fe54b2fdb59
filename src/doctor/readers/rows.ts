/**
 * Tables: rows of named cells. x is the row's number, from 1. A counter of steps that goes back means that the log was
 * taken up again from an earlier point: what it then repeats replaces what was there.
 */

import { processNames, stepNames } from '../counters.ts';
import type { SeriesBuilder } from '../series.ts';
import type { Cell } from './numbers.ts';
import { findRestarts } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';

/** Columns that hold the time of day, in seconds since 1970. */
export const clockNames = new Set(['time/unix_s', 'timestamp', '_timestamp', 'Wall time', 'wall_time']);
const [earliest, latest] = [9e8, 1e11];

/** A time of day in seconds; NaN for what is none, such as the seconds since the start. */
export const clockOf = (cell: Cell): number =>
  typeof cell === 'number' && cell > earliest && cell < latest ? cell : Number.NaN;

/** Strings that are kept of a table: names of hosts, of experiments. */
const mostTextColumns = 64;

/** What takes a row's cells. */
export type Rows = Pick<RowSink, 'number' | 'text' | 'blank' | 'end' | 'rows'>;

export class RowSink {
  readonly #run: RunBuilder;
  #series: (SeriesBuilder | undefined)[] = [];
  #values = new Float64Array(64);
  #length = 0;
  #clock = Number.NaN;
  #textColumns = 0;
  /** How many rows there are so far. */
  rows = 0;

  constructor(run: RunBuilder) {
    this.#run = run;
  }

  number(name: string, value: number): void {
    if (clockNames.has(name) && value > earliest && value < latest) this.#clock = value;
    if (this.#run.blanks.size > 0) this.#run.blanks.delete(name);
    this.add(this.#run.of(name), value);
  }

  /** A cell that is there and empty. */
  blank(name: string): void {
    const before = this.#run.blanks.get(name);
    if (before !== undefined) this.#run.blanks.set(name, { ...before, rows: before.rows + 1 });
    // What never had a value is no series.
    else if ((this.#run.series.get(name)?.length ?? 0) > 0)
      this.#run.blanks.set(name, { from: this.rows + 1, rows: 1, kind: 'null' });
  }

  /** A cell of a column that was looked up before. */
  add(series: SeriesBuilder | undefined, value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#series[this.#length] = series;
    this.#values[this.#length++] = value;
  }

  /** The time of the row, in seconds since 1970. */
  clock(seconds: number): void {
    if (seconds > earliest && seconds < latest) this.#clock = seconds;
  }

  text(name: string, value: string): void {
    if (value === '' || value.length > 200) return;
    if (!this.#run.texts.has(name) && ++this.#textColumns > mostTextColumns) return;
    this.#run.text(name, value);
  }

  /** Ends a row; one without any cell does not count. */
  end(): void {
    if (this.#length === 0) return;
    const x = ++this.rows;
    for (let i = 0; i < this.#length; i++) this.#series[i]?.append(x, this.#values[i], this.#clock);
    this.#run.counted(this.#length);
    this.#length = 0;
    this.#clock = Number.NaN;
  }

  /** Forgets the cells of a row that turned out to be half. */
  discard(): void {
    this.#length = 0;
    this.#clock = Number.NaN;
  }

  /** Marks the next row as the first of a new beginning. */
  restart(): void {
    if (this.rows > 0) this.#run.restarts.add(this.rows + 1);
  }

  /** To be called once at the end: drops what was repeated later. */
  finish(): void {
    const run = this.#run;
    const name = stepNames.find(({ theirs }) => (run.series.get(theirs)?.length ?? 0) > 1)?.theirs;
    if (name !== undefined) {
      const counter = run.series.get(name)!;
      const series = counter.build();
      const { restarts, replaced, late, anew } = findRestarts(series.x, series.values, series.length, true);
      for (const { row, by } of anew) {
        counter.shift(row, by);
        run.note(`${name} begins anew at row ${row}: it is counted on from ${by}`);
      }
      let dropped = 0;
      for (const { from, to } of replaced) {
        for (const one of run.series.values()) one.remove(from, to);
        dropped += to - from;
      }
      // A late row counts where it was logged, not where it says: x must not go back.
      for (const row of late) run.series.get(name)!.remove(row, row + 1);
      if (late.length > 0) {
        run.note(
          `${name} is behind in ${late.length} rows that came late: they count where they were logged`,
        );
      }
      for (const { row } of restarts) run.restarts.add(row);
      const back = restarts.filter(({ row }) => !anew.some(one => one.row === row));
      if (back.length > 0) {
        const first = back[0];
        const times = back.length === 1 ? 'once' : `${back.length} times`;
        run.note(
          `${name} goes back ${times}, first from ${first.before} to ${first.after} at row ${first.row}: the log was taken up again, and the ${dropped} rows that it repeats count only as they were last`,
        );
      }
    }
    for (const process of processNames) {
      const counter = run.series.get(process)?.build();
      if (counter === undefined) continue;
      const { restarts } = findRestarts(counter.x, counter.values, counter.length);
      const fresh = restarts.filter(({ row }) => !run.restarts.has(row));
      if (fresh.length === 0) continue;
      for (const { row } of fresh) run.restarts.add(row);
      const [before, after] = [fresh[0].before, fresh[0].after];
      run.note(
        `${process} goes from ${before} back to ${after} at row ${fresh[0].row}: the trainer was started again there`,
      );
      break;
    }
  }
}
