/** Tiny writers of the formats that are read, for what no library would write. */
import { crc32, deflateRawSync } from 'node:zlib';

/** Opcodes, text, and bytes as they are. */
export type Parts = readonly (string | number | Uint8Array)[];

/** Bytes out of opcodes and text. */
export const bytesOf = (...parts: Parts): Uint8Array =>
  Buffer.concat(
    parts.map(part =>
      typeof part === 'number'
        ? Buffer.of(part)
        : typeof part === 'string'
          ? Buffer.from(part, 'latin1')
          : Buffer.from(part),
    ),
  );

export const u32 = (value: number): Uint8Array => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u16 = (value: number): Uint8Array => u32(value).subarray(0, 2);

export interface ZipFile {
  readonly name: string;
  readonly content: Uint8Array;
  readonly deflate?: boolean;
  /** What the list of files says, where it lies. */
  readonly says?: {
    readonly size?: number;
    readonly crc?: number;
    readonly flags?: number;
    readonly method?: number;
  };
}

/** An archive as Python writes it. */
export function zipOf(files: readonly ZipFile[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const list: Uint8Array[] = [];
  let at = 0;
  for (const { name, content, deflate = false, says = {} } of files) {
    const data = deflate ? deflateRawSync(content) : content;
    const { size = content.length, crc = crc32(content), flags = 0, method = deflate ? 8 : 0 } = says;
    const facts = bytesOf(
      u16(20),
      u16(flags),
      u16(method),
      u32(0),
      u32(crc),
      u32(data.length),
      u32(size),
      u16(name.length),
    );
    const local = bytesOf('PK\x03\x04', facts, u16(0), name, data);
    list.push(bytesOf('PK\x01\x02', u16(20), facts, u16(0), u16(0), u16(0), u16(0), u32(0), u32(at), name));
    parts.push(local);
    at += local.length;
  }
  const directory = bytesOf(...list);
  const end = bytesOf(
    'PK\x05\x06',
    u32(0),
    u16(list.length),
    u16(list.length),
    u32(directory.length),
    u32(at),
    u16(0),
  );
  return bytesOf(...parts, directory, end);
}

/** A file of `torch.save`: this pickle, and storages by their keys. */
export const torchOf = (
  pickle: Uint8Array,
  storages: Readonly<Record<string, Uint8Array>> = {},
): Uint8Array =>
  zipOf([
    { name: 'archive/data.pkl', content: pickle },
    ...Object.entries(storages).map(([key, content]) => ({ name: `archive/data/${key}`, content })),
    { name: 'archive/version', content: Buffer.from('3\n') },
  ]);

/** A pickled tensor of float32, whatever its offset, shape and strides. */
export function tensorPickle({
  offset = 0,
  shape,
  stride,
  length,
  type = 'FloatStorage',
}: {
  offset?: number;
  shape: readonly number[];
  stride: readonly number[];
  length: number;
  type?: string;
}): Uint8Array {
  const int = (value: number): Uint8Array => bytesOf('J', u32(value));
  const list = (values: readonly number[]): Uint8Array => bytesOf('(', ...values.map(int), 't');
  const text = (value: string): Uint8Array => bytesOf('X', u32(value.length), value);
  const storage = bytesOf(
    '(',
    text('storage'),
    `ctorch\n${type}\n`,
    text('0'),
    text('cpu'),
    int(length),
    'tQ',
  );
  const call = bytesOf(
    'ctorch._utils\n_rebuild_tensor_v2\n(',
    storage,
    int(offset),
    list(shape),
    list(stride),
    0x89,
    '}tR',
  );
  return bytesOf(0x80, 2, '}', text('w'), call, 's.');
}

export const floats = (...values: readonly number[]): Uint8Array =>
  new Uint8Array(Float32Array.from(values).buffer);
