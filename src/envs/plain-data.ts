/**
 * Plain data as JSON without losing a bit. JSON turns -0 into 0 and NaN and Infinity into null; a checkpoint must not. So
 * those numbers become `{"$number":"-0"}`, and typed arrays `{"$Float64Array":[…]}`; all else stays readable as it is.
 */
import { fail, show } from './errors.ts';

/** What JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const typedArrays = {
  Float64Array,
  Float32Array,
  Int32Array,
  Uint32Array,
  Int16Array,
  Uint16Array,
  Int8Array,
  Uint8Array,
} as const;
type TypedArrayName = keyof typeof typedArrays;

const MAX_DEPTH = 64;

/** Encodes plain data: null, booleans, numbers, strings, arrays, typed arrays and object literals of them. */
export function toJson(value: unknown, where: string, depth = 0): Json {
  if (depth > MAX_DEPTH) fail('state-invalid', `${where} is nested deeper than ${MAX_DEPTH}: is it cyclic?`);
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return value;
    case 'number':
      return numberToJson(value);
    case 'object': {
      if (value === null) return null;
      if (Array.isArray(value)) return value.map((item, i) => toJson(item, `${where}[${i}]`, depth + 1));
      if (ArrayBuffer.isView(value)) {
        const name = (value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? '';
        if (!(name in typedArrays)) break;
        return { [`$${name}`]: Array.from(value as Float64Array, numberToJson) };
      }
      const prototype: unknown = Object.getPrototypeOf(value);
      if (prototype !== null && Object.getPrototypeOf(prototype) !== null) break; // a class's; realms differ
      const entries: [string, Json][] = [];
      for (const [key, item] of Object.entries(value)) {
        if (key.startsWith('$'))
          fail('state-invalid', `${where}.${key}: names with $ are taken, rename the field`);
        entries.push([key, toJson(item, `${where}.${key}`, depth + 1)]);
      }
      return Object.fromEntries(entries);
    }
  }
  const what = typeof value === 'object' ? `a ${value?.constructor?.name ?? 'class'}` : show(value);
  return fail(
    'state-invalid',
    `${where} is ${what}, which JSON cannot hold: keep numbers, strings, booleans, null, arrays and object literals in the state, or write save and load`,
  );
}

/** Decodes what {@link toJson} gave. */
export function fromJson(json: unknown, where: string): unknown {
  if (json === null || typeof json === 'boolean' || typeof json === 'string') return json;
  if (typeof json === 'number') return json;
  if (Array.isArray(json)) return json.map((item, i) => fromJson(item, `${where}[${i}]`));
  if (typeof json !== 'object')
    fail('state-invalid', `${where} is ${show(json)}, not JSON: pass what state() gave`);
  const entries = Object.entries(json as object);
  const [key, value] = entries[0] ?? ['', undefined];
  if (entries.length === 1 && key.startsWith('$')) {
    if (key === '$number') return numberFromJson(json, where);
    const name = key.slice(1) as TypedArrayName;
    if (Object.hasOwn(typedArrays, name) && Array.isArray(value)) {
      return typedArrays[name].from(value.map((item, i) => numberFromJson(item, `${where}[${i}]`)));
    }
    fail('state-invalid', `${where} is ${show(json)}, which this Keel did not write: pass what state() gave`);
  }
  return Object.fromEntries(entries.map(([name, item]) => [name, fromJson(item, `${where}.${name}`)]));
}

export function numberToJson(value: number): Json {
  return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: show(value) };
}

export function numberFromJson(json: unknown, where: string): number {
  if (typeof json === 'number') return json;
  switch ((json as { $number?: unknown } | null)?.$number) {
    case '-0':
      return -0;
    case 'NaN':
      return Number.NaN;
    case 'Infinity':
      return Number.POSITIVE_INFINITY;
    case '-Infinity':
      return Number.NEGATIVE_INFINITY;
    default:
      return fail('state-invalid', `${where} is ${show(json)}, not a number: pass what state() gave`);
  }
}

/** The fields of a saved state, checked to be exactly these. */
export function fieldsOf(json: unknown, fields: readonly string[], where: string): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    fail('state-invalid', `${where} is ${show(json)}, not an object: pass what state() gave`);
  }
  const record = json as Record<string, unknown>;
  for (const field of fields) {
    if (!Object.hasOwn(record, field))
      fail('state-invalid', `${where} has no ${field}: pass what state() gave`);
  }
  for (const field of Object.keys(record)) {
    if (!fields.includes(field))
      fail('state-invalid', `${where} has the unknown field ${show(field)}: pass what state() gave`);
  }
  return record;
}

/** A saved count: a whole number of at least 0. */
export function countOf(json: unknown, where: string): number {
  if (typeof json !== 'number' || !Number.isSafeInteger(json) || json < 0) {
    fail(
      'state-invalid',
      `${where} is ${show(json)}, not a whole number of at least 0: pass what state() gave`,
    );
  }
  return json;
}

/**
 * Checks restored data against data of the same making: the same fields, of the same types. Lengths of arrays may differ,
 * and what is null on either side may be any object: a state may hold a list, or nothing yet.
 */
export function checkAlike(value: unknown, template: unknown, where: string): void {
  if (template === null || template === undefined) return;
  const wanted = kindOf(template);
  const found = kindOf(value);
  if (found === 'null' && typeof template === 'object') return;
  if (found !== wanted) {
    fail(
      'state-invalid',
      `${where} is ${show(value)}, ${found}, not ${wanted}: the state is of another version`,
    );
  }
  if (wanted === 'an array') {
    const items = value as unknown[];
    const first = (template as unknown[])[0];
    if (first === undefined) return;
    for (const [i, item] of items.entries()) checkAlike(item, first, `${where}[${i}]`);
  } else if (wanted === 'an object') {
    const record = fieldsOf(value, Object.keys(template as object), where);
    for (const [key, item] of Object.entries(template as object))
      checkAlike(record[key], item, `${where}.${key}`);
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (ArrayBuffer.isView(value))
    return `a ${(value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag]}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
