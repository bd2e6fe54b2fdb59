/**
 * SQLite databases, read only and by our own hands (docs/decisions/0013-sqlite.md): tables, indices, overflow pages and
 * the write-ahead log that a live writer keeps beside. https://www.sqlite.org/fileformat2.html
 */
import type { ByteSource } from './byte-source.ts';
import { ReadError } from './errors.ts';
import { openPlace } from './places.ts';
import { openWal } from './sqlite-wal.ts';

const magic = Buffer.from('SQLite format 3\0', 'latin1');
const deepest = 40;
const longestRecord = 2 ** 24;
const mostColumns = 256;
const mostObjects = 4096;
const keptPages = 512;

export const isSqlite = (head: Buffer): boolean => head.subarray(0, magic.length).equals(magic);

export type Value = number | string | Buffer | null;

/** A table, or an index of one. */
export interface Tree {
  readonly name: string;
  readonly root: number;
  readonly columns: readonly string[];
  /** The column that is the row's number, which is not stored. */
  readonly rowid: number;
}

interface Cell {
  readonly rowid: number;
  readonly record: readonly Value[];
}

export class Database {
  readonly #path: string;
  readonly #source: ByteSource;
  readonly #pageBytes: number;
  readonly #usable: number;
  readonly #pages = new Map<number, Buffer>();
  readonly #wal: { readonly source: ByteSource; readonly frames: ReadonlyMap<number, number> } | undefined;
  readonly #tables = new Map<string, Tree>();
  readonly #indices: (Tree & { readonly table: string })[] = [];

  constructor(path: string) {
    this.#path = path;
    this.#source = openPlace(path);
    try {
      const head = this.#source.read(0, 100);
      if (head.length < 100 || !isSqlite(head)) this.#refuse('no SQLite database any more');
      const size = head.readUInt16BE(16);
      this.#pageBytes = size === 1 ? 65_536 : size;
      if (this.#pageBytes < 512 || (this.#pageBytes & (this.#pageBytes - 1)) !== 0)
        this.#refuse('its size of pages is wrong');
      this.#usable = this.#pageBytes - head[20];
      if (this.#usable < 480) this.#refuse('its size of pages is wrong');
      if (head.readUInt32BE(56) > 1) this.#refuse('its text is UTF-16');
      this.#wal = openWal(`${path}-wal`, this.#pageBytes);
      this.#readSchema();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#source.close();
    this.#wal?.source.close();
  }

  get tableNames(): string[] {
    return [...this.#tables.keys()];
  }

  table(name: string): Tree | undefined {
    return this.#tables.get(name);
  }

  /** All rows of a table, in the order of their numbers. */
  *rows(table: Tree): Generator<readonly Value[]> {
    for (const cell of this.#walk(table.root, 0, new Set())) yield withRowid(cell, table);
  }

  /** The rows whose column has a value, by an index where there is one that begins with it. */
  *rowsWith(table: Tree, column: string, value: string): Generator<readonly Value[]> {
    const index = this.#indices.find(one => one.table === table.name && one.columns[0] === column);
    if (index === undefined) {
      const at = table.columns.indexOf(column);
      for (const row of this.rows(table)) if (row[at] === value) yield row;
      return;
    }
    for (const rowid of this.#seek(index.root, Buffer.from(value), 0, new Set())) {
      const cell = this.#rowAt(table.root, rowid, 0);
      if (cell !== undefined) yield withRowid(cell, table);
    }
  }

  #refuse(why: string): never {
    throw new ReadError(this.#path, `a damaged or unusual SQLite database, ${why}: export the run as CSV`);
  }

  #page(number: number): Buffer {
    const kept = this.#pages.get(number);
    if (kept !== undefined) return kept;
    const frame = this.#wal?.frames.get(number);
    const bytes =
      frame === undefined
        ? Buffer.from(this.#source.read((number - 1) * this.#pageBytes, this.#pageBytes))
        : Buffer.from(this.#wal!.source.read(frame, this.#pageBytes));
    if (number < 1 || bytes.length < this.#pageBytes) this.#refuse(`page ${number} is not there`);
    if (this.#pages.size >= keptPages) this.#pages.delete(this.#pages.keys().next().value!);
    this.#pages.set(number, bytes);
    return bytes;
  }

  #readSchema(): void {
    let count = 0;
    for (const { record } of this.#walk(1, 0, new Set())) {
      if (++count > mostObjects) this.#refuse(`it has more than ${mostObjects} tables`);
      const [type, name, table, root, sql] = record;
      if (
        typeof name !== 'string' ||
        typeof table !== 'string' ||
        typeof root !== 'number' ||
        typeof sql !== 'string'
      )
        continue;
      const tree = { name, root, ...columnsOf(sql) };
      if (type === 'table') this.#tables.set(name, tree);
      else if (type === 'index') this.#indices.push({ ...tree, table });
    }
  }

  /** Checks a page's beginning: its kind, the number of cells, where their pointers are. */
  #open(
    number: number,
    depth: number,
    seen: Set<number>,
  ): { page: Buffer; kind: number; count: number; cells: number; right: number } {
    // A page that is met twice leads in a circle.
    if (depth > deepest || seen.has(number)) this.#refuse('its pages lead in a circle');
    seen.add(number);
    const page = this.#page(number);
    const at = number === 1 ? 100 : 0;
    const kind = page[at];
    const isInner = kind === 2 || kind === 5;
    const count = page.readUInt16BE(at + 3);
    const cells = at + (isInner ? 12 : 8);
    if (![2, 5, 10, 13].includes(kind) || cells + 2 * count > page.length)
      this.#refuse(`page ${number} is no part of a table`);
    return { page, kind, count, cells, right: isInner ? page.readUInt32BE(at + 8) : 0 };
  }

  *#walk(number: number, depth: number, seen: Set<number>): Generator<Cell> {
    const { page, kind, count, cells, right } = this.#open(number, depth, seen);
    for (let i = 0; i < count; i++) {
      const at = page.readUInt16BE(cells + 2 * i);
      if (kind === 13) yield this.#leafCell(page, at);
      else if (kind === 5) yield* this.#walk(this.#child(page, at), depth + 1, seen);
      else this.#refuse('a table is an index');
    }
    if (kind === 5) yield* this.#walk(right, depth + 1, seen);
  }

  #rowAt(number: number, rowid: number, depth: number): Cell | undefined {
    const { page, kind, count, cells, right } = this.#open(number, depth, new Set());
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = page.readUInt16BE(cells + 2 * middle);
      const start = kind === 5 ? at + 4 : varint(page, at)[1];
      if (varint(page, start)[0] < rowid) low = middle + 1;
      else high = middle;
    }
    if (kind === 5)
      return this.#rowAt(
        low < count ? this.#child(page, page.readUInt16BE(cells + 2 * low)) : right,
        rowid,
        depth + 1,
      );
    if (kind !== 13 || low === count) return undefined;
    const cell = this.#leafCell(page, page.readUInt16BE(cells + 2 * low));
    return cell.rowid === rowid ? cell : undefined;
  }

  /** The numbers of rows in an index whose first column is a text. */
  *#seek(number: number, wanted: Buffer, depth: number, seen: Set<number>): Generator<number> {
    const { page, kind, count, cells, right } = this.#open(number, depth, seen);
    if (kind !== 2 && kind !== 10) this.#refuse('an index is a table');
    for (let i = 0; i < count; i++) {
      const at = page.readUInt16BE(cells + 2 * i);
      const record = this.#payload(page, kind === 2 ? at + 4 : at, false).record;
      const order = typeof record[0] === 'string' ? Buffer.compare(Buffer.from(record[0]), wanted) : -1;
      if (kind === 2 && order >= 0) yield* this.#seek(this.#child(page, at), wanted, depth + 1, seen);
      const rowid = record.at(-1);
      if (order === 0 && typeof rowid === 'number') yield rowid;
      if (order > 0) return;
    }
    if (kind === 2) yield* this.#seek(right, wanted, depth + 1, seen);
  }

  #child(page: Buffer, at: number): number {
    if (at + 4 > page.length) this.#refuse('a cell is cut');
    return page.readUInt32BE(at);
  }

  #leafCell(page: Buffer, at: number): Cell {
    return this.#payload(page, at, true);
  }

  /** A record, with what it has on pages of its own. */
  #payload(page: Buffer, start: number, isTable: boolean): Cell {
    const [size, afterSize] = varint(page, start);
    const [rowid, at] = isTable ? varint(page, afterSize) : [0, afterSize];
    if (size > longestRecord) this.#refuse(`a row has ${size} bytes`);
    const usable = this.#usable;
    const most = isTable ? usable - 35 : Math.floor(((usable - 12) * 64) / 255) - 23;
    if (size <= most) return { rowid, record: this.#record(page.subarray(at, at + size)) };
    const least = Math.floor(((usable - 12) * 32) / 255) - 23;
    const rest = least + ((size - least) % (usable - 4));
    const local = rest <= most ? rest : least;
    const parts = [page.subarray(at, at + local)];
    if (at + local + 4 > page.length) this.#refuse('a cell is cut');
    let next = page.readUInt32BE(at + local);
    for (let left = size - local; left > 0; ) {
      const more = this.#page(next);
      parts.push(Buffer.from(more.subarray(4, 4 + Math.min(left, usable - 4))));
      left -= usable - 4;
      next = more.readUInt32BE(0);
    }
    return { rowid, record: this.#record(Buffer.concat(parts)) };
  }

  #record(bytes: Buffer): Value[] {
    const [headerBytes, first] = varint(bytes, 0);
    if (headerBytes > bytes.length) this.#refuse('a row is cut');
    const values: Value[] = [];
    let data = headerBytes;
    for (let at = first; at < headerBytes && values.length < mostColumns; ) {
      const [type, next] = varint(bytes, at);
      at = next;
      const length = lengths[type] ?? (type >= 12 ? (type - 12) >> 1 : 0);
      if (data + length > bytes.length || length < 0) this.#refuse('a row is cut');
      values.push(cellOf(bytes, type, data, length));
      data += length;
    }
    return values;
  }
}

const lengths: Readonly<Record<number, number>> = {
  0: 0,
  1: 1,
  2: 2,
  3: 3,
  4: 4,
  5: 6,
  6: 8,
  7: 8,
  8: 0,
  9: 0,
};

function cellOf(bytes: Buffer, type: number, at: number, length: number): Value {
  if (type === 0) return null;
  if (type === 6) return Number(bytes.readBigInt64BE(at));
  if (type === 7) return bytes.readDoubleBE(at);
  if (type === 8 || type === 9) return type - 8;
  if (type < 7) return bytes.readIntBE(at, length);
  return type % 2 === 1
    ? bytes.toString('utf8', at, at + length)
    : Buffer.from(bytes.subarray(at, at + length));
}

/** A number in one to nine bytes, and where it ends. */
function varint(bytes: Buffer, start: number): [value: number, next: number] {
  let value = 0;
  for (let i = 0; i < 9; i++) {
    const byte = bytes[start + i] ?? 0;
    if (i === 8) return [value * 256 + byte, start + 9];
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return [value, start + i + 1];
  }
  return [value, start + 9];
}

function withRowid({ rowid, record }: Cell, { rowid: column }: Tree): readonly Value[] {
  if (column < 0) return record;
  const row = [...record];
  row[column] = rowid;
  return row;
}

/** The names of the columns in `CREATE TABLE … (…)` or `CREATE INDEX … (…)`, by hand: other texts are no names. */
export function columnsOf(sql: string): { columns: string[]; rowid: number } {
  const columns: string[] = [];
  let rowid = -1;
  let depth = 0;
  let part = '';
  const add = (): void => {
    const found = /^\s*(?:"([^"]*)"|`([^`]*)`|\[([^\]]*)\]|([^\s(]+))\s*(.*)$/s.exec(part.slice(0, 2000));
    part = '';
    if (found === null) return;
    const [, quoted, ticked, bracketed, bare, rest] = found;
    if (bare !== undefined && /^(?:constraint|primary|foreign|unique|check)$/i.test(bare)) return;
    if (/^integer\b.*\bprimary\s+key\b/is.test(rest)) rowid = columns.length;
    if (columns.length < mostColumns) columns.push(quoted ?? ticked ?? bracketed ?? bare);
  };
  for (const c of sql.slice(0, 2 ** 16)) {
    if (c === '(' && depth++ === 0) continue;
    if (c === ')' && --depth === 0) break;
    if (depth === 0) continue;
    if (c === ',' && depth === 1) add();
    else part += c;
  }
  add();
  return { columns, rowid };
}
