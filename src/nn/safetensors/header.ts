/** The header of a file, which is not believed before it agrees with the bytes that are there. */
import {
  byteCount,
  isCount,
  lengthBytes,
  maxDimensions,
  maxHeaderBytes,
  requireWellFormed,
  type TensorInfo,
} from './checks.ts';
import { isDtype, unknownDtype } from './dtypes.ts';
import { refuse, SafetensorsError, show } from './refuse.ts';

export interface Header {
  readonly metadata: Readonly<Record<string, string>>;
  /** By name, in the order of the data; a Map, so that no name means anything to JavaScript. */
  readonly tensors: ReadonlyMap<string, Placed>;
}

export interface Placed extends TensorInfo {
  readonly begin: number;
  readonly end: number;
}

/** A header nests three deep, and NumPy stops at 64 dimensions. `JSON.parse` makes 4 GB of 100 MB of `[],[],[],…`. */
const maxHeaderDepth = 8;

export function headerLength(source: string, bytes: Uint8Array, fileBytes: number): number {
  const length = new DataView(bytes.buffer, bytes.byteOffset, lengthBytes).getBigUint64(0, true);
  if (length === 0n || length > BigInt(maxHeaderBytes)) {
    refuse(
      source,
      `header length ${length}, must be 1 to ${maxHeaderBytes} bytes; not a safetensors file, or a damaged one`,
    );
  }
  const missing = Number(length) - (fileBytes - lengthBytes);
  if (missing > 0) {
    refuse(
      source,
      `header length ${length}, but ${fileBytes - lengthBytes} bytes follow: ${missing} are missing; copy or download it again`,
    );
  }
  return Number(length);
}

export function parseHeader(source: string, bytes: Uint8Array, dataBytes: number): Header {
  if (bytes[0] !== 0x7b) {
    refuse(source, `header starts with byte 0x${hex(bytes[0])}, must start with "{"; not a safetensors file`);
  }
  const members = Object.entries(parseJsonObject(source, bytes));
  const metadata: Record<string, string> = Object.create(null);
  const placed: [string, Placed][] = [];
  for (const [name, value] of members) {
    if (name === '__metadata__') {
      for (const [key, text] of Object.entries(requireObject(source, '__metadata__', value))) {
        if (typeof text !== 'string') {
          refuse(source, `metadata ${show(key)} is ${show(text)}, must be a string; quote it in the header`);
        }
        requireWellFormed(source, 'metadata key', key);
        requireWellFormed(source, `metadata ${show(key)}`, text);
        metadata[key] = text;
      }
    } else {
      requireWellFormed(source, 'tensor name', name);
      placed.push([name, parseEntry(source, `tensor ${show(name)}`, value)]);
    }
  }
  placed.sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end);
  requireCovered(source, placed, dataBytes);
  return { metadata, tensors: new Map(placed) };
}

function parseEntry(source: string, what: string, value: unknown): Placed {
  const entry = requireObject(source, what, value);
  for (const field of ['dtype', 'shape', 'data_offsets']) {
    if (!Object.hasOwn(entry, field)) {
      refuse(source, `${what} has no ${field}, needs dtype, shape and data_offsets; export the file again`);
    }
  }
  const { dtype, shape, data_offsets: offsets } = entry;
  if (!isDtype(dtype)) return refuse(source, unknownDtype(what, dtype));
  const wanted = byteCount(source, what, dtype, shape);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    return refuse(
      source,
      `${what}: data_offsets ${show(offsets)}, must be two integers from 0 to ${Number.MAX_SAFE_INTEGER}; export the file again`,
    );
  }
  const [begin, end] = offsets as [number, number];
  if (begin > end) {
    refuse(source, `${what}: data_offsets ${show(offsets)} end before they begin; export the file again`);
  }
  if (end - begin !== wanted) {
    refuse(
      source,
      `${what}: data_offsets ${show(offsets)} hold ${end - begin} bytes, but shape ${show(shape)} of ${dtype} takes ${wanted}; export the file again`,
    );
  }
  return { dtype, shape: shape as number[], begin, end };
}

/** Every byte of the data belongs to exactly one tensor: nothing can hide in a file, nothing is read twice. */
function requireCovered(
  source: string,
  placed: readonly (readonly [string, Placed])[],
  dataBytes: number,
): void {
  let covered = 0;
  let previous = 'the header';
  for (const [name, { begin, end }] of placed) {
    if (begin < covered) {
      refuse(
        source,
        `tensor ${show(name)} begins at data byte ${begin}, inside ${previous}, which ends at ${covered}; tensors must not overlap: export the file again`,
      );
    }
    if (begin > covered) {
      refuse(
        source,
        `tensor ${show(name)} begins at data byte ${begin}, but ${previous} ends at ${covered}: ${begin - covered} bytes belong to no tensor; export the file again`,
      );
    }
    covered = end;
    previous = `tensor ${show(name)}`;
  }
  if (covered > dataBytes) {
    const cut = placed.find(([, { end }]) => end > dataBytes)!;
    refuse(
      source,
      `data of ${dataBytes} bytes, the header promises ${covered}: ${covered - dataBytes} are missing, from tensor ${show(cut[0])} on; copy or download it again`,
    );
  }
  if (covered < dataBytes) {
    refuse(
      source,
      `data of ${dataBytes} bytes, but the tensors end at ${covered}: ${dataBytes - covered} trailing bytes belong to no tensor; export the file again`,
    );
  }
}

function parseJsonObject(source: string, bytes: Uint8Array): Record<string, unknown> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse(source, 'header is not UTF-8; not a safetensors file, or a damaged one');
  }
  try {
    requirePlainHeader(source, text);
    return JSON.parse(text); // an object, for it starts with "{"
  } catch (error) {
    if (error instanceof SafetensorsError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return refuse(source, `header is not JSON (${reason}); not a safetensors file, or a damaged one`);
  }
}

/**
 * What must be known before `JSON.parse`. It keeps the last of two equal keys without a word, so two readers could
 * see two different models in one file; and it builds whatever it is given, at many times the size of the text.
 * Text that is not JSON may pass here.
 */
function requirePlainHeader(source: string, text: string): void {
  // One for each open bracket: an object's keys, or a list's length.
  const open: { keys?: Set<string>; values?: number }[] = [];
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '{':
      case '[':
        open.push(text[at] === '[' ? { values: 1 } : { keys: new Set() });
        if (open.length > maxHeaderDepth) {
          refuse(
            source,
            `header nests deeper than ${maxHeaderDepth}, a tensor's entry needs 3; export the file again`,
          );
        }
        break;
      case ',': {
        const list = open.at(-1);
        if (list?.values !== undefined && ++list.values > maxDimensions) {
          refuse(
            source,
            `header has a list of more than ${maxDimensions} values, a shape's limit; merge dimensions`,
          );
        }
        break;
      }
      case '}':
      case ']':
        open.pop();
        break;
      case '"': {
        const start = at;
        for (at++; at < text.length && text[at] !== '"'; at++) {
          if (text[at] === '\\') at++;
        }
        let next = at + 1;
        while (next < text.length && ' \t\n\r'.includes(text[next])) next++;
        if (text[next] !== ':') break; // a value
        const key: string = JSON.parse(text.slice(start, at + 1)); // "a" and "\u0061" are one name
        const keys = open.at(-1)?.keys;
        if (keys?.has(key)) {
          refuse(
            source,
            `header has the name ${show(key)} twice, names must be unique; export the file again`,
          );
        }
        keys?.add(key);
        break;
      }
    }
  }
}

function requireObject(source: string, what: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  return refuse(source, `${what} is ${show(value)}, must be an object; export the file again`);
}

const hex = (byte: number): string => byte.toString(16).padStart(2, '0');
