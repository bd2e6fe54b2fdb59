/** A small writer of TensorBoard event files that shares nothing with Keel's reader or its own writer. */

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

function maskedCrc(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = table[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function record(data: Buffer): Buffer {
  const out = Buffer.alloc(data.length + 16);
  out.writeBigUInt64LE(BigInt(data.length), 0);
  out.writeUInt32LE(maskedCrc(out.subarray(0, 8)), 8);
  data.copy(out, 12);
  out.writeUInt32LE(maskedCrc(data), 12 + data.length);
  return out;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return [...bytes, left];
}

const field = (number: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([number * 8 + 2, ...varint(content.length)]), content]);

function double(number: number, value: number): Buffer {
  const out = Buffer.alloc(9);
  out[0] = number * 8 + 1;
  out.writeDoubleLE(value, 1);
  return out;
}

function float(number: number, value: number): Buffer {
  const out = Buffer.alloc(5);
  out[0] = number * 8 + 5;
  out.writeFloatLE(value, 1);
  return out;
}

const event = (wallTime: number, step: number, rest: Buffer): Buffer =>
  record(Buffer.concat([double(1, wallTime), Buffer.from([2 * 8, ...varint(step)]), rest]));

/** The record that every file begins with. */
export const versionEvent = (wallTime: number): Buffer =>
  event(wallTime, 0, field(3, Buffer.from('brain.Event:2')));

/** One number of one tag, as PyTorch's SummaryWriter writes it. */
export function scalarEvent(wallTime: number, step: number, tag: string, value: number): Buffer {
  const parts = Buffer.concat([field(1, Buffer.from(tag)), float(2, value)]);
  return event(wallTime, step, field(5, field(1, parts)));
}

/** A text of one tag, as `add_text` writes it. */
export function textEvent(wallTime: number, tag: string, text: string): Buffer {
  const metadata = field(9, field(1, field(1, Buffer.from('text'))));
  const shape = field(2, field(2, Buffer.from([8, 1])));
  const tensor = field(8, Buffer.concat([Buffer.from([8, 7]), shape, field(8, Buffer.from(text))]));
  const parts = Buffer.concat([field(1, Buffer.from(`${tag}/text_summary`)), metadata, tensor]);
  return event(wallTime, 0, field(5, field(1, parts)));
}
