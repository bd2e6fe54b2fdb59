/**
 * Tensors on disk in the safetensors format (https://github.com/huggingface/safetensors#format): an 8-byte length,
 * a JSON header, the data. Nothing in a file can run code, and nothing in it is believed before it is checked
 * against the number of bytes that are really there.
 *
 * Writing gives the bytes that the reference implementation gives. Reading is as strict as the format's text, which
 * is stricter than that implementation in two places: it lets spaces stand before the header, and it keeps the last
 * of two tensors of one name.
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { endianness } from 'node:os';
import { dirname } from 'node:path';
import { KeelError } from '../base/errors.ts';
import { temporaryBeside } from '../base/files.ts';

/** A file that is not, or cannot become, valid safetensors. The message is one line: what, the limit, the remedy. */
export class SafetensorsError extends KeelError {
  override name = 'SafetensorsError';
}

/** The typed arrays that have a dtype of their own. */
export type TensorData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** What a header says about a tensor. Row-major; a scalar has shape `[]`. */
export interface TensorInfo {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

/** A tensor to write. `dtype` is what the array's class says; with bytes (`Uint8Array`) it may be any. */
export interface TensorInput {
  readonly shape: readonly number[];
  readonly data: TensorData;
  readonly dtype?: Dtype;
}

/** A checked file in memory. To copy a tensor into another file: `{ ...file.info(name), data: file.raw(name) }`. */
export interface Safetensors {
  /** The free text of the header's `__metadata__`; without a prototype, so every key is one from the file. */
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order of their data. */
  readonly names: readonly string[];
  info(name: string): TensorInfo;
  /** The tensor's little-endian bytes: shares the file's memory. */
  raw(name: string): Uint8Array;
  /**
   * The tensor as float32, rounded to nearest (a float64 beyond its range is ±Infinity); `BOOL` is 0 and 1.
   * F32 shares the file's memory where alignment allows: `slice()` it before writing to it.
   */
  float32(name: string): Float32Array;
}

/** The reference implementation's limit: a header that is longer is an attack or another format. */
const maxHeaderBytes = 100_000_000;
/** A header nests three deep, and NumPy stops at 64 dimensions. `JSON.parse` makes 4 GB of 100 MB of `[],[],[],…`. */
const maxHeaderDepth = 8;
const maxDimensions = 64;
/** Well under what one read or write may transfer on any system (2 GiB less a page on Linux). */
const maxTransferBytes = 2 ** 28;
const lengthBytes = 8;

interface DtypeSpec {
  readonly bits: number;
  /** Takes bytes aligned to the element; absent where float32 has no meaning or nobody needed it yet. */
  readonly toFloat32?: (bytes: Uint8Array) => Float32Array;
}

/** In the reference implementation's order, which is also how it orders tensors in a file: the last ones come first. */
const dtypes = {
  BOOL: { bits: 8, toFloat32: bytes => new Float32Array(bytes).map(value => (value === 0 ? 0 : 1)) },
  F4: { bits: 4 },
  F6_E2M3: { bits: 6 },
  F6_E3M2: { bits: 6 },
  U8: { bits: 8, toFloat32: bytes => new Float32Array(bytes) },
  I8: { bits: 8, toFloat32: bytes => new Float32Array(over(Int8Array, bytes)) },
  F8_E5M2: { bits: 8, toFloat32: bytes => lookUp(bytes, f8E5M2()) },
  F8_E4M3: { bits: 8, toFloat32: bytes => lookUp(bytes, f8E4M3()) },
  F8_E8M0: { bits: 8 },
  F8_E4M3FNUZ: { bits: 8 },
  F8_E5M2FNUZ: { bits: 8 },
  I16: { bits: 16, toFloat32: bytes => new Float32Array(over(Int16Array, bytes)) },
  U16: { bits: 16, toFloat32: bytes => new Float32Array(over(Uint16Array, bytes)) },
  F16: { bits: 16, toFloat32: bytes => lookUp(over(Uint16Array, bytes), f16()) },
  BF16: { bits: 16, toFloat32: bytes => bfloat16ToFloat32(over(Uint16Array, bytes)) },
  I32: { bits: 32, toFloat32: bytes => new Float32Array(over(Int32Array, bytes)) },
  U32: { bits: 32, toFloat32: bytes => new Float32Array(over(Uint32Array, bytes)) },
  F32: { bits: 32, toFloat32: bytes => over(Float32Array, bytes) },
  C64: { bits: 64 },
  F64: { bits: 64, toFloat32: bytes => new Float32Array(over(Float64Array, bytes)) },
  I64: { bits: 64, toFloat32: bytes => int64ToFloat32(over(BigInt64Array, bytes)) },
  U64: { bits: 64, toFloat32: bytes => int64ToFloat32(over(BigUint64Array, bytes)) },
} satisfies Record<string, DtypeSpec>;

/** The element types of the format. Sub-byte, complex and FNUZ ones can be read as `raw` only. */
export type Dtype = keyof typeof dtypes;

const dtypeNames = Object.keys(dtypes) as Dtype[];
const spec = (dtype: Dtype): DtypeSpec => dtypes[dtype];

/** By `Symbol.toStringTag`, which holds for subclasses (`Buffer`) and arrays of other realms too. */
const dtypeOfArray: Readonly<Record<TensorData[typeof Symbol.toStringTag], Dtype>> = {
  Float32Array: 'F32',
  Float64Array: 'F64',
  Int8Array: 'I8',
  Uint8Array: 'U8',
  Int16Array: 'I16',
  Uint16Array: 'U16',
  Int32Array: 'I32',
  Uint32Array: 'U32',
  BigInt64Array: 'I64',
  BigUint64Array: 'U64',
};

// ---------------------------------------------------------------------------------------------------- writing

/** The file as bytes. The same tensors and metadata give the same bytes, whatever the order of their keys. */
export function encodeSafetensors(
  tensors: Readonly<Record<string, TensorInput>>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const parts = layOut('encodeSafetensors', tensors, metadata);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/**
 * Writes the file so that it appears whole or not at all, also when the machine stops half way, and without a second
 * copy in memory: do not change the arrays before it resolves.
 */
export async function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, TensorInput>>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  const parts = layOut(path, tensors, metadata);
  const temporary = temporaryBeside(path);
  const handle = await open(temporary, 'wx');
  try {
    try {
      let at = 0;
      for (const part of parts) {
        await writeFully(handle, part, at);
        at += part.byteLength;
      }
      // Without it the rename can reach the disk before the data, and a power cut leaves an empty file.
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Checks everything and returns the file in pieces: the length, the header, each tensor's bytes. */
function layOut(
  source: string,
  tensors: Readonly<Record<string, TensorInput>>,
  metadata: Readonly<Record<string, string>>,
): Uint8Array[] {
  requireLittleEndian(source);
  const entries = Object.entries(tensors).map(([name, tensor]) => {
    const what = `tensor ${show(name)}`;
    if (name === '__metadata__') {
      refuse(source, `${what}: the format keeps this name for its metadata; rename the tensor`);
    }
    requireWellFormed(source, 'tensor name', name);
    const dtype = dtypeOf(source, what, tensor);
    const wanted = byteCount(source, what, dtype, tensor.shape);
    const { buffer, byteOffset, byteLength } = tensor.data;
    if (byteLength !== wanted) {
      refuse(
        source,
        `${what}: ${byteLength} bytes of data, but shape ${show(tensor.shape)} of ${dtype} takes ${wanted}; correct the shape or the data`,
      );
    }
    return { name, dtype, shape: tensor.shape, bytes: new Uint8Array(buffer, byteOffset, byteLength) };
  });
  entries.sort(
    (a, b) =>
      dtypeNames.indexOf(b.dtype) - dtypeNames.indexOf(a.dtype) ||
      // By UTF-8 like the reference; comparing JavaScript strings would order by UTF-16.
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
  );

  // Members are joined as text: an object would move names like "10" to the front, and swallow "__proto__".
  const members: string[] = [];
  const texts = Object.entries(metadata).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const [key, value] of texts) {
    if (typeof value !== 'string') {
      refuse(source, `metadata ${show(key)} is ${show(value)}, must be a string; use JSON.stringify`);
    }
    requireWellFormed(source, 'metadata key', key);
    requireWellFormed(source, `metadata ${show(key)}`, value);
  }
  if (texts.length > 0) {
    const pairs = texts.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
    members.push(`"__metadata__":{${pairs.join(',')}}`);
  }
  let begin = 0;
  for (const { name, dtype, shape, bytes } of entries) {
    const end = begin + bytes.byteLength;
    members.push(`${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`);
    begin = end;
  }
  const json = Buffer.from(`{${members.join(',')}}`);
  const headerBytes = Math.ceil(json.byteLength / 8) * 8;
  if (headerBytes > maxHeaderBytes) {
    refuse(
      source,
      `header of ${headerBytes} bytes, at most ${maxHeaderBytes} are readable; shorten the metadata or split the file`,
    );
  }
  const head = new Uint8Array(lengthBytes + headerBytes).fill(0x20); // spaces align the data to 8 bytes
  new DataView(head.buffer).setBigUint64(0, BigInt(headerBytes), true);
  head.set(json, lengthBytes);
  return [head, ...entries.map(entry => entry.bytes)];
}

function dtypeOf(source: string, what: string, { data, dtype }: TensorInput): Dtype {
  const tag = data[Symbol.toStringTag];
  const natural = Object.hasOwn(dtypeOfArray, tag) ? dtypeOfArray[tag] : undefined;
  if (natural === undefined) {
    refuse(source, `${what}: ${tag} has no dtype; use one of ${Object.keys(dtypeOfArray).join(', ')}`);
  }
  if (dtype === undefined || dtype === natural) return natural;
  if (!Object.hasOwn(dtypes, dtype)) refuse(source, unknownDtype(what, dtype));
  if (natural !== 'U8') {
    refuse(
      source,
      `${what}: ${tag} is ${natural}, not ${dtype}; leave dtype out, or give bytes (Uint8Array)`,
    );
  }
  return dtype;
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const length = Math.min(bytes.byteLength - done, maxTransferBytes);
    const { bytesWritten } = await handle.write(bytes, done, length, position + done);
    done += bytesWritten;
  }
}

/** Makes the rename itself survive a power cut, where the system can (Windows and some network drives cannot). */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

// ---------------------------------------------------------------------------------------------------- reading

/** Checks a whole file in memory. Its tensors share the memory of `bytes`; `source` names it in errors. */
export function decodeSafetensors(bytes: Uint8Array, source = 'safetensors data'): Safetensors {
  // A plain Uint8Array: `Buffer` has methods of the same name that do other things.
  const file = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  requireFileBytes(source, file.byteLength);
  const dataStart = lengthBytes + headerLength(source, file.subarray(0, lengthBytes), file.byteLength);
  const header = parseHeader(source, file.subarray(lengthBytes, dataStart), file.byteLength - dataStart);
  return tensorsOver(source, header, file.subarray(dataStart));
}

/** Reads a file into one buffer of its data's size, once its header agrees with the size that the disk reports. */
export async function readSafetensors(path: string): Promise<Safetensors> {
  const handle = await open(path, 'r');
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) refuse(path, 'is not a regular file; give the path of a .safetensors file');
    requireFileBytes(path, stat.size);
    const length = await readFully(path, handle, 0, lengthBytes);
    const dataStart = lengthBytes + headerLength(path, length, stat.size);
    const headerBytes = await readFully(path, handle, lengthBytes, dataStart - lengthBytes);
    const header = parseHeader(path, headerBytes, stat.size - dataStart);
    return tensorsOver(path, header, await readFully(path, handle, dataStart, stat.size - dataStart));
  } finally {
    await handle.close();
  }
}

async function readFully(
  source: string,
  handle: FileHandle,
  start: number,
  byteLength: number,
): Promise<Uint8Array> {
  const bytes = allocate(source, byteLength);
  for (let done = 0; done < byteLength; ) {
    const length = Math.min(byteLength - done, maxTransferBytes);
    const { bytesRead } = await handle.read(bytes, done, length, start + done);
    if (bytesRead === 0) {
      refuse(
        source,
        `ended at byte ${start + done} while being read, expected ${start + byteLength}; read it when nothing writes to it`,
      );
    }
    done += bytesRead;
  }
  return bytes;
}

function allocate(source: string, byteLength: number): Uint8Array {
  try {
    return new Uint8Array(byteLength);
  } catch {
    return refuse(source, `${byteLength} bytes do not fit in one buffer; split the file into shards`);
  }
}

interface Header {
  readonly metadata: Readonly<Record<string, string>>;
  /** By name, in the order of the data; a Map, so that no name means anything to JavaScript. */
  readonly tensors: ReadonlyMap<string, Placed>;
}

interface Placed extends TensorInfo {
  readonly begin: number;
  readonly end: number;
}

function tensorsOver(source: string, { metadata, tensors }: Header, data: Uint8Array): Safetensors {
  requireLittleEndian(source);
  const find = (name: string): Placed => {
    const found = tensors.get(name);
    if (found !== undefined) return found;
    const some = [...tensors.keys()].slice(0, 8).map(show).join(', ');
    return refuse(source, `no tensor ${show(name)}; it has ${tensors.size}: ${some || 'none'}`);
  };
  const raw = (name: string): Uint8Array => {
    const { begin, end } = find(name);
    return data.subarray(begin, end);
  };
  return {
    metadata,
    names: [...tensors.keys()],
    info: name => {
      const { dtype, shape } = find(name);
      return { dtype, shape };
    },
    raw,
    float32: name => {
      const { dtype } = find(name);
      const { bits, toFloat32 } = spec(dtype);
      if (toFloat32 === undefined) {
        const readable = dtypeNames.filter(each => spec(each).toFloat32 !== undefined).join(', ');
        return refuse(source, `tensor ${show(name)} is ${dtype}, float32 takes ${readable}; use raw`);
      }
      const bytes = raw(name);
      // A typed array must start at a multiple of its element: only then can it be a view.
      return toFloat32(bytes.byteOffset % (bits / 8) === 0 ? bytes : new Uint8Array(bytes));
    },
  };
}

function requireFileBytes(source: string, fileBytes: number): void {
  if (fileBytes >= lengthBytes) return;
  refuse(
    source,
    `${fileBytes} bytes, a safetensors file has at least ${lengthBytes}; it was cut short or is another format`,
  );
}

function headerLength(source: string, bytes: Uint8Array, fileBytes: number): number {
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

function parseHeader(source: string, bytes: Uint8Array, dataBytes: number): Header {
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

// ---------------------------------------------------------------------------------------------------- checks

function byteCount(source: string, what: string, dtype: Dtype, shape: unknown): number {
  if (!Array.isArray(shape) || !shape.every(isCount)) {
    return refuse(
      source,
      `${what}: shape ${show(shape)}, must be integers from 0 to ${Number.MAX_SAFE_INTEGER}; correct the shape`,
    );
  }
  if (shape.length > maxDimensions) {
    refuse(source, `${what}: ${shape.length} dimensions, at most ${maxDimensions}; merge some`);
  }
  let total = spec(dtype).bits;
  for (const size of shape as number[]) {
    total *= size;
    if (total > Number.MAX_SAFE_INTEGER) {
      refuse(
        source,
        `${what}: shape ${show(shape)} of ${dtype} has more than ${Number.MAX_SAFE_INTEGER} bits; correct the shape`,
      );
    }
  }
  if (total % 8 !== 0) {
    refuse(source, `${what}: shape ${show(shape)} of ${dtype} is ${total} bits, must be whole bytes; pad it`);
  }
  return total / 8;
}

/** A size or an offset. JSON can also say -0, which is nobody's size. */
const isCount = (value: unknown): boolean =>
  Number.isSafeInteger(value) && !(Object.is(value, -0) || Number(value) < 0);

const isDtype = (value: unknown): value is Dtype => typeof value === 'string' && Object.hasOwn(dtypes, value);

const unknownDtype = (what: string, dtype: unknown): string =>
  `${what}: unknown dtype ${show(dtype)}; convert it to one of ${dtypeNames.join(', ')}`;

function requireObject(source: string, what: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  return refuse(source, `${what} is ${show(value)}, must be an object; export the file again`);
}

/** Half of a surrogate pair has no UTF-8: two names could become one, and the reference refuses its JSON escape. */
function requireWellFormed(source: string, what: string, text: string): void {
  if (!/\p{Surrogate}/u.test(text)) return;
  refuse(source, `${what} ${show(text)} has half of a surrogate pair, which UTF-8 cannot hold; rename it`);
}

/** onnxruntime-node exists for x64 and arm64 only, so byte swapping would be code that never runs. */
function requireLittleEndian(source: string): void {
  if (endianness() === 'LE') return;
  refuse(source, 'safetensors is little-endian and this machine is not; use an x64 or arm64 machine');
}

function refuse(source: string, problem: string): never {
  // A file's own text must not break the line, nor reach a terminal as control characters.
  throw new SafetensorsError(`${source}: ${problem}`.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' '));
}

/** A value of the file for a message: quoted, and cut where it would fill the screen. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

const hex = (byte: number): string => byte.toString(16).padStart(2, '0');

// ---------------------------------------------------------------------------------------------------- conversion

type ArrayOver<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

const over = <T>(type: ArrayOver<T>, bytes: Uint8Array): T =>
  new type(bytes.buffer, bytes.byteOffset, bytes.byteLength / type.BYTES_PER_ELEMENT);

function lookUp(patterns: Uint8Array | Uint16Array, table: Float32Array): Float32Array {
  const values = new Float32Array(patterns.length);
  for (let i = 0; i < values.length; i++) values[i] = table[patterns[i]];
  return values;
}

const f16 = tableOnUse({ exponentBits: 5, mantissaBits: 10, special: 'ieee' });
const f8E5M2 = tableOnUse({ exponentBits: 5, mantissaBits: 2, special: 'ieee' });
const f8E4M3 = tableOnUse({ exponentBits: 4, mantissaBits: 3, special: 'onlyNaN' });

/**
 * Every pattern of a small float, by the definition of the format; built when first asked for.
 * `ieee`: the top exponent is infinity and NaN. `onlyNaN`: no infinity, and NaN only where all other bits are set, as
 * in OCP's e4m3 (https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0).
 */
function tableOnUse(format: { exponentBits: number; mantissaBits: number; special: 'ieee' | 'onlyNaN' }) {
  const { exponentBits, mantissaBits, special } = format;
  const signBit = 2 ** (exponentBits + mantissaBits);
  const topExponent = 2 ** exponentBits - 1;
  const bias = 2 ** (exponentBits - 1) - 1;
  const magnitude = (pattern: number): number => {
    const exponent = pattern >> mantissaBits;
    const fraction = (pattern % 2 ** mantissaBits) / 2 ** mantissaBits;
    if (special === 'onlyNaN' && pattern === signBit - 1) return Number.NaN;
    if (special === 'ieee' && exponent === topExponent)
      return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
  };
  let table: Float32Array | undefined;
  return () => {
    table ??= Float32Array.from({ length: 2 * signBit }, (_, pattern) =>
      pattern < signBit ? magnitude(pattern) : -magnitude(pattern - signBit),
    );
    return table;
  };
}

/** bfloat16 is the upper half of a float32. */
function bfloat16ToFloat32(patterns: Uint16Array): Float32Array {
  const bits = new Uint32Array(patterns.length);
  for (let i = 0; i < bits.length; i++) bits[i] = patterns[i] << 16;
  return new Float32Array(bits.buffer);
}

/**
 * Rounds once. Through a double it would be twice, and from 2^53 on that can give the wrong neighbour: so the low 16
 * bits, too low to matter but for telling "half" from "more than half", are first folded into one (round to odd).
 */
function int64ToFloat32(integers: BigInt64Array | BigUint64Array): Float32Array {
  const values = new Float32Array(integers.length);
  for (let i = 0; i < values.length; i++) {
    const integer = integers[i];
    const double = Number(integer);
    if (Number.isSafeInteger(double)) {
      values[i] = double;
    } else {
      const high = integer >> 16n;
      const sticky = (integer & 0xffffn) === 0n ? 0n : 1n;
      values[i] = Number(high | sticky) * 2 ** 16;
    }
  }
  return values;
}
