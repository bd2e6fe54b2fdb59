/**
 * Rows and events as lines of JSON. Runs in a browser.
 *
 * JSON has no NaN and no infinities, and what is not finite is what one looks for in a log: they are written as the
 * strings "NaN", "Infinity" and "-Infinity" (and -0 as `-0`), so that every number reads back as it was.
 *
 * What the clock said is only in keys that begin `time/`, and those come last in a line. The rest of a line is a
 * function of the configuration and the seed: two runs are the same if their lines are, after {@link withoutTimes}.
 */
import { fail, RunError, show } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { compareMetricIds, isMetricId, isTimeKey, requireMetric } from './registry.ts';

/** One iteration's measurements by registry name. `train/iteration` and `train/step` are always there. */
export type Row = Readonly<Record<string, number>>;

/** A number as JSON holds it. */
export type JsonNumber = number | 'NaN' | 'Infinity' | '-Infinity';

/** Something that happened, with whatever else it has to say; `runs/schema` knows the kinds and their fields. */
export interface LogEvent {
  readonly type: string;
  readonly [key: string]: unknown;
}

const maxEventDepth = 16;

/** A row as one line without its line break. Refuses names that are not in the registry and what is not a number. */
export function encodeRow(row: Row): string {
  for (const key of ['train/iteration', 'train/step']) requireCount(key, row[key]);
  const parts = Object.keys(row)
    .sort(compareMetricIds)
    .map(key => {
      requireMetric(key);
      return `${JSON.stringify(key)}:${encodeNumber(key, row[key])}`;
    });
  return `{${parts.join(',')}}`;
}

/**
 * A row from its line. Names that this version does not know are kept if they are well formed: a newer one may have
 * written them.
 */
export function decodeRow(line: string): Row {
  return rowFromJson(parseJson(line));
}

/** A row from parsed JSON, such as a server's answer. */
export function rowFromJson(json: unknown): Row {
  if (!isObject(json)) fail(`a row is ${show(json)}, must be an object of numbers`);
  const row: Record<string, number> = {};
  for (const [key, value] of Object.entries(json)) {
    if (!isMetricId(key)) fail(`${show(key)} is not a metric's name: expected one such as loss/value`);
    row[key] =
      decodeNumber(value) ?? fail(`${key} is ${show(value)}, must be a number, "NaN" or "±Infinity"`);
  }
  for (const key of ['train/iteration', 'train/step']) requireCount(key, row[key]);
  return row;
}

/** An event as one line without its line break: its type first, times last, otherwise in the order it was given. */
export function encodeEvent(event: LogEvent): string {
  const keys = Object.keys(event).filter(key => event[key] !== undefined && key !== 'type');
  const ordered = ['type', ...keys.filter(key => !isTimeKey(key)), ...keys.filter(isTimeKey)];
  const parts = ordered.map(key => `${JSON.stringify(key)}:${encodeValue(key, event[key], maxEventDepth)}`);
  return `{${parts.join(',')}}`;
}

/** An event from its line, with numbers that are not finite still as text: `runs/schema` knows which fields are numbers. */
export function decodeEvent(line: string): LogEvent {
  const json = parseJson(line);
  if (!isObject(json) || typeof json.type !== 'string') {
    fail(`an event is ${show(json)}, must be an object with a "type"`);
  }
  return json as unknown as LogEvent;
}

/** The number that JSON holds as text or as itself; undefined for anything else. */
export function decodeNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  return undefined;
}

/** A number as JSON can hold it. */
export function jsonNumber(value: number): JsonNumber {
  return Number.isFinite(value) ? value : (String(value) as JsonNumber);
}

/** The line of a row or event without what the clock said: for comparing runs. */
export function withoutTimes(line: string): string {
  const json = parseJson(line);
  if (!isObject(json)) fail(`a line of the log is ${show(json)}, must be an object`);
  const kept = Object.entries(json).filter(([key]) => !isTimeKey(key));
  return `{${kept.map(([key, value]) => `${JSON.stringify(key)}:${encodeValue(key, value, maxEventDepth)}`).join(',')}}`;
}

function encodeNumber(key: string, value: unknown): string {
  if (typeof value !== 'number') {
    fail(`${key} is ${show(value)}, must be a number: leave a metric out where it does not apply`);
  }
  if (Object.is(value, -0)) return '-0';
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

function encodeValue(path: string, value: unknown, depth: number): string {
  if (depth < 0) fail(`${path} is nested more than ${maxEventDepth} deep: keep events flat`);
  if (typeof value === 'number') return encodeNumber(path, value);
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) {
    return `[${value.map((item, i) => encodeValue(`${path}[${i}]`, item, depth - 1)).join(',')}]`;
  }
  if (isObject(value)) {
    const parts = Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => `${JSON.stringify(key)}:${encodeValue(`${path}.${key}`, item, depth - 1)}`);
    return `{${parts.join(',')}}`;
  }
  return fail(`${path} is ${show(value)}, which JSON cannot hold: use numbers, text, lists and objects`);
}

function requireCount(key: string, value: unknown): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    fail(`${key} is ${value === undefined ? 'missing' : show(value)}, must be a whole number from 0`);
  }
}

function parseJson(line: string): unknown {
  try {
    return jsonOf(line);
  } catch (cause) {
    throw new RunError(`not JSON: ${(cause as Error).message.replace(/\s+/g, ' ').slice(0, 100)}`, { cause });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
