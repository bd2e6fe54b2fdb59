/** PNG files of plain RGB pictures (W3C PNG, third edition). */
import { deflateSync, inflateSync } from 'node:zlib';
import { fail } from '../../base/errors.ts';
import { checkPng, PNG_SIGNATURE, PNG_START_BYTES as START_BYTES } from '../pictures.ts';

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = crcTable[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function chunk(name: string, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(name), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

/** Each byte is written as its difference from the one above: smooth pictures become mostly zeros. */
const UP = 2;

/** `pixels` are (height, width, 3) bytes; `level` is how hard zlib tries. */
export function encodePng(pixels: Uint8Array, width: number, height: number, level = 6): Uint8Array {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header.set([8, 2, 0, 0, 0], 8); // eight bits, RGB, the only compression and filter methods, not interlaced
  const stride = 3 * width;
  const rows = new Uint8Array(height * (stride + 1));
  for (let y = 0; y < height; y++) {
    const at = y * (stride + 1);
    rows[at] = UP;
    for (let i = 0; i < stride; i++)
      rows[at + 1 + i] = pixels[y * stride + i] - (y > 0 ? pixels[(y - 1) * stride + i] : 0);
  }
  const parts = [
    Uint8Array.from(PNG_SIGNATURE),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level })),
    chunk('IEND', new Uint8Array(0)),
  ];
  return Buffer.concat(parts);
}

/** The pixels, (height, width, 3) bytes, of a PNG as {@link encodePng} writes them: with one IDAT, every row by that above. */
export function decodePng(file: Uint8Array, width: number, height: number, source: string): Uint8Array {
  checkPng(file, width, height, source);
  const stride = 3 * width;
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const start = START_BYTES + 8;
  let rows: Uint8Array;
  try {
    rows = inflateSync(file.subarray(start, start + view.getUint32(START_BYTES)), {
      maxOutputLength: height * (stride + 1),
    });
  } catch {
    return fail(`${source} is damaged: its pixels cannot be read`, 'invalid');
  }
  if (rows.length !== height * (stride + 1)) fail(`${source} is damaged: it lacks pixels`, 'invalid');
  const pixels = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const at = y * (stride + 1);
    if (rows[at] !== UP) fail(`${source} has rows of another kind than Keel writes`, 'invalid');
    for (let i = 0; i < stride; i++)
      pixels[y * stride + i] = rows[at + 1 + i] + (y > 0 ? pixels[(y - 1) * stride + i] : 0);
  }
  return pixels;
}
