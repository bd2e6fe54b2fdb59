/** The rows of one `metrics.jsonl` in columns: read on from where they ended, and from the cut on after a resume. */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonOf } from '../../base/json.ts';
import { longestLine, RowScanner } from '../series/row-scanner.ts';
import { Table } from '../series/table.ts';
import { openIfThere, sizeOf } from './reading.ts';
import type { Row } from './run.ts';

const chunkBytes = 2 ** 20;
/** How long reading may hold the thread before requests have their turn. */
const turnMs = 12;

export class MetricsFile {
  readonly #path: string;
  readonly #maxCells: number;
  #table: Table;
  #scanner: RowScanner;
  #offset = 0;
  #broken = 0;
  #brokenReason: string | undefined;
  #modifiedAt = 0;

  constructor(path: string, maxCells: number) {
    this.#path = path;
    this.#maxCells = maxCells;
    this.#table = new Table(maxCells);
    this.#scanner = new RowScanner(this.#table);
  }

  get table(): Table {
    return this.#table;
  }

  /** When the file was written to, as of the last read, in milliseconds since 1970. */
  get modifiedAt(): number {
    return this.#modifiedAt;
  }

  /** What is said of lines that are no rows; null if there are none. */
  get brokenNote(): string | null {
    if (this.#broken === 0) return null;
    const lines = this.#broken === 1 ? 'one line is' : `${this.#broken} lines are`;
    return `metrics.jsonl: ${lines} damaged and left out (${this.#brokenReason ?? ''})`;
  }

  /** The row that was read last, for who is told of each. */
  lastRow(): Row {
    return this.#scanner.lastRow();
  }

  /** Forgets all that was read. */
  clear(): void {
    this.#table = new Table(this.#maxCells);
    this.#scanner = new RowScanner(this.#table);
    this.#offset = 0;
    this.#broken = 0;
  }

  /** After a resume the file is another from some row on: the rows before it stay. Whether it was so. */
  rewindIfCut(): boolean {
    const table = this.#table;
    if (table.rows === 0) {
      // Nothing was understood yet: begin again if the file is shorter than what was passed over.
      if (this.#offset === 0 || sizeOf(this.#path) >= this.#offset) return false;
      this.clear();
      return true;
    }
    const fd = openIfThere(this.#path);
    if (fd === undefined) {
      this.clear();
      return true;
    }
    try {
      const { size } = fstatSync(fd);
      if (size >= this.#offset && this.#isRow(fd, table.rows - 1)) return false;
      if (table.isMerged) {
        this.clear();
        return true;
      }
      // Rows are as they were up to the cut, and differ after it at least in their time.
      let [low, high] = [0, table.rows];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (table.endOf(middle) <= size && this.#isRow(fd, middle)) low = middle + 1;
        else high = middle;
      }
      table.cut(low);
      this.#scanner.reset();
      this.#offset = table.endOf(low - 1);
      this.#broken = 0;
      return true;
    } finally {
      closeSync(fd);
    }
  }

  /** Whether the file still has this row where it was read, by its iteration and time. */
  #isRow(fd: number, row: number): boolean {
    const table = this.#table;
    const end = table.endOf(row);
    // Of a merged row, or after a broken line, the one before ends further up: the last line counts.
    const start = Math.max(row === 0 ? 0 : table.endOf(row - 1), end - 2 ** 16);
    const bytes = Buffer.alloc(end - start);
    if (readSync(fd, bytes, 0, bytes.length, start) < bytes.length) return false;
    const text = bytes.toString('utf8');
    if (!text.endsWith('\n')) return false;
    try {
      const line = jsonOf(text.slice(text.lastIndexOf('\n', text.length - 2) + 1)) as Record<string, unknown>;
      const { axes } = table;
      const time = line['time/unix_s'];
      return (
        line['train/iteration'] === axes.iteration[row] &&
        line['train/step'] === axes.step[row] &&
        (typeof time !== 'number' || !(Math.abs(time * 1000 - axes.time[row]) > 0.01))
      );
    } catch {
      return false;
    }
  }

  /** Reads what is new, a portion at a time. */
  async read(signal: AbortSignal, onRow: () => void): Promise<void> {
    const fd = openIfThere(this.#path);
    if (fd === undefined) return;
    try {
      const stat = fstatSync(fd);
      this.#modifiedAt = stat.mtimeMs;
      let buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(4096, stat.size - this.#offset + 4096)));
      let have = 0;
      let turn = performance.now();
      for (;;) {
        const count = readSync(fd, buffer, have, buffer.length - have, this.#offset + have);
        if (count === 0) return;
        have += count;
        const { consumed, broken, reason } = this.#scanner.scan(buffer, have, this.#offset, onRow);
        this.#broken += broken;
        this.#brokenReason = reason ?? this.#brokenReason;
        this.#offset += consumed;
        buffer.copyWithin(0, consumed, have);
        have -= consumed;
        if (have === buffer.length) {
          if (have >= longestLine) {
            this.#offset += have;
            have = 0;
            this.#broken++;
            this.#brokenReason = 'the line is far too long to be ours';
          } else {
            const larger = Buffer.allocUnsafe(2 * buffer.length);
            buffer.copy(larger, 0, 0, have);
            buffer = larger;
          }
        }
        if (performance.now() - turn > turnMs) {
          this.#table.settle();
          await nextTurn();
          signal.throwIfAborted();
          turn = performance.now();
        }
      }
    } finally {
      closeSync(fd);
    }
  }
}
