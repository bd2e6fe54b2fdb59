/**
 * JSON documents that hold a whole run: columns (`{"reward": [1, 2], "kl": [...]}`, by
 * index as pandas writes them), a list of rows somewhere inside
 * (`{"config": {…}, "metrics": [{…}, {…}]}`), rows by their step (`{"100": {…}, "200": {…}}`), TensorBoard's triples of
 * time, step and value. What is in a document decides, not its name.
 */
import { isObject, type JsonObject } from './json.ts';
import { jsonCell } from './numbers.ts';

/** One point of TensorBoard's export: seconds since 1970, step, value. */
export type Triple = readonly [wallTime: number, step: number, value: number];

export type Shape =
  | { readonly kind: 'rows'; readonly rows: readonly JsonObject[]; readonly settings?: JsonObject }
  | { readonly kind: 'columns'; readonly columns: ReadonlyMap<string, readonly unknown[]> }
  | { readonly kind: 'triples'; readonly series: ReadonlyMap<string, readonly Triple[]> };

/** Shorter lists tell nothing about how a run goes, and settings are full of them. */
const shortest = 3;
const deepest = 4;

const isNumber = (value: unknown): boolean => typeof jsonCell(value) === 'number';

/** The points of a list of triples, or undefined if it is none. */
export function triplesOf(value: unknown): readonly Triple[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const out: Triple[] = [];
  for (const entry of value) {
    if (!Array.isArray(entry) || entry.length !== 3) return undefined;
    const [wallTime, step, point] = entry.map(jsonCell);
    if (typeof wallTime !== 'number' || typeof step !== 'number' || !Number.isInteger(step)) return undefined;
    if (typeof point === 'number') out.push([wallTime, step, point]);
  }
  // Three small numbers are a colour or a place: a time of day is what tells.
  return out.length > 0 && out[0][0] > 9e8 ? out : undefined;
}

function isColumn(value: unknown): value is readonly unknown[] {
  if (!Array.isArray(value) || value.length < shortest) return false;
  return value.every(cell => isNumber(cell) || cell === null) && value.some(isNumber);
}

/** A column as pandas writes it, by the rows' numbers: `{"0": 1.5, "1": 1.7}`. Engines keep such keys in order. */
function isIndexed(value: unknown): value is JsonObject {
  if (!isObject(value) || !Object.hasOwn(value, '0')) return false;
  return Object.keys(value).every((key, i) => key === String(i)) && isColumn(Object.values(value));
}

function isRows(value: unknown): value is readonly JsonObject[] {
  if (!Array.isArray(value) || value.length < shortest) return false;
  return value.every(isObject) && value.some(row => Object.values(row).some(isNumber));
}

/** What a document holds; of several things inside the one with most numbers. Undefined if it is no log. */
export function shapeOf(document: unknown): Shape | undefined {
  const found: { readonly shape: Shape; readonly size: number }[] = [];
  if (isRows(document)) return { kind: 'rows', rows: document };
  if (isObject(document)) look(document, 0, found);
  return found.reduce<(typeof found)[number] | undefined>(
    (best, one) => (best === undefined || one.size > best.size ? one : best),
    undefined,
  )?.shape;
}

function look(object: JsonObject, depth: number, found: { shape: Shape; size: number }[]): void {
  const columns = new Map<string, readonly unknown[]>();
  const series = new Map<string, readonly Triple[]>();
  const scalars: Record<string, unknown> = {};
  const stepped: JsonObject[] = [];
  let [cells, points] = [0, 0];
  for (const [key, value] of Object.entries(object)) {
    const triples = triplesOf(value);
    if (triples !== undefined) {
      series.set(key, triples);
      points += triples.length;
    } else if (isColumn(value) || isIndexed(value)) {
      const column = Array.isArray(value) ? value : Object.values(value);
      columns.set(key, column);
      cells += column.length;
    } else if (isRows(value)) {
      const wide = Object.values(value[value.length - 1]).filter(isNumber).length;
      found.push({ shape: { kind: 'rows', rows: value, settings: object }, size: value.length * wide });
    } else if (isObject(value)) {
      if (/^\d{1,15}$/.test(key)) stepped.push({ step: Number(key), ...value });
      else if (depth < deepest) look(value, depth + 1, found);
    } else scalars[key] = value;
  }
  if (series.size > 0) found.push({ shape: { kind: 'triples', series }, size: points });
  if (columns.size > 1) found.push({ shape: { kind: 'columns', columns }, size: cells });
  if (stepped.length >= shortest && isRows(stepped)) {
    const wide = Object.values(stepped[0]).filter(isNumber).length;
    found.push({ shape: { kind: 'rows', rows: stepped, settings: scalars }, size: stepped.length * wide });
  }
}
