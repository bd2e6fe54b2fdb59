/** A file as tensors. */
import { type FileHandle, open } from 'node:fs/promises';
import { lengthBytes, maxTransferBytes, requireLittleEndian, type TensorInfo } from './checks.ts';
import { dtypeNames, spec } from './dtypes.ts';
import { type Header, headerLength, type Placed, parseHeader } from './header.ts';
import { refuse, show } from './refuse.ts';

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
