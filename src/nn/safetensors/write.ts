/** Tensors as a file. Gives the bytes that the reference implementation gives. */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { temporaryBeside } from '../../base/files.ts';
import {
  byteCount,
  lengthBytes,
  maxHeaderBytes,
  maxTransferBytes,
  requireLittleEndian,
  requireWellFormed,
} from './checks.ts';
import { type Dtype, dtypeNames, dtypeOfArray, dtypes, type TensorData, unknownDtype } from './dtypes.ts';
import { refuse, show } from './refuse.ts';

/** A tensor to write. `dtype` is what the array's class says; with bytes (`Uint8Array`) it may be any. */
export interface TensorInput {
  readonly shape: readonly number[];
  readonly data: TensorData;
  readonly dtype?: Dtype;
}

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
