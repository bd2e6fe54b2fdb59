/** Readers of PNG and GIF, written from their specifications and apart from the writers, so that tests compare two minds. */
import { crc32, inflateSync } from 'node:zlib';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** (height, width, 3) */
  readonly pixels: Uint8Array;
}

/** Eight-bit RGB or RGBA, not interlaced; opacity is dropped. */
export function decodePng(file: Buffer): Picture {
  if (file.toString('latin1', 1, 4) !== 'PNG') throw new Error('not a PNG');
  const data: Buffer[] = [];
  let [width, height, channels] = [0, 0, 3];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const name = file.toString('latin1', at + 4, at + 8);
    const body = file.subarray(at + 8, at + 8 + length);
    // Of name and body.
    if (crc32(file.subarray(at + 4, at + 8 + length)) !== file.readUInt32BE(at + 8 + length))
      throw new Error(`the checksum of ${name} is wrong`);
    if (name === 'IHDR') {
      [width, height] = [body.readUInt32BE(0), body.readUInt32BE(4)];
      channels = body[9] === 6 ? 4 : 3;
    } else if (name === 'IDAT') data.push(body);
    at += 12 + length;
  }
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * channels;
  const rows = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    for (let i = 0; i < stride; i++) {
      const a = i >= channels ? rows[y * stride + i - channels] : 0;
      const b = y > 0 ? rows[(y - 1) * stride + i] : 0;
      const c = i >= channels && y > 0 ? rows[(y - 1) * stride + i - channels] : 0;
      const p = a + b - c;
      const [pa, pb, pc] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)];
      const paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      const guess = [0, a, b, (a + b) >> 1, paeth][filter];
      rows[y * stride + i] = raw[y * (stride + 1) + 1 + i] + guess;
    }
  }
  const pixels = new Uint8Array(width * height * 3);
  for (let i = 0; i < width * height; i++)
    for (let k = 0; k < 3; k++) pixels[3 * i + k] = rows[channels * i + k];
  return { width, height, pixels };
}

/** All pictures of a GIF with one table of colours, as they are seen one on top of the other, and their delays. */
export function decodeGif(file: Uint8Array): { pictures: Picture[]; delays: number[] } {
  const two = (at: number): number => file[at] | (file[at + 1] << 8);
  const [width, height] = [two(6), two(8)];
  const colours = 1 << ((file[10] & 7) + 1);
  const table = file.subarray(13, 13 + 3 * colours);
  let at = 13 + 3 * colours;
  const shown = new Uint8Array(width * height * 3);
  const pictures: Picture[] = [];
  const delays: number[] = [];
  let transparent = -1;
  for (;;) {
    const kind = file[at++];
    if (kind === 0x3b) return { pictures, delays };
    if (kind === 0x21) {
      if (file[at] === 0xf9) {
        transparent = file[at + 2] & 1 ? file[at + 5] : -1;
        delays.push(two(at + 3));
      }
      at++;
      while (file[at] !== 0) at += file[at] + 1;
      at++;
      continue;
    }
    if (kind !== 0x2c) throw new Error(`unknown block ${kind} at ${at - 1} of ${file.length}`);
    at += 9;
    const least = file[at++];
    const bytes: number[] = [];
    while (file[at] !== 0) {
      bytes.push(...file.subarray(at + 1, at + 1 + file[at]));
      at += file[at] + 1;
    }
    at++;
    const indices = unpack(bytes, least);
    if (indices.length !== width * height) throw new Error(`${indices.length} pixels of ${width * height}`);
    indices.forEach((index, i) => {
      if (index !== transparent) shown.set(table.subarray(3 * index, 3 * index + 3), 3 * i);
    });
    pictures.push({ width, height, pixels: shown.slice() });
  }
}

function unpack(bytes: readonly number[], least: number): number[] {
  const [clear, end] = [1 << least, (1 << least) + 1];
  let words: number[][] = [];
  const begin = (): void => {
    words = Array.from({ length: end + 1 }, (_, i) => [i]);
  };
  begin();
  let [size, position] = [least + 1, 0];
  let before: number[] | undefined;
  const out: number[] = [];
  for (;;) {
    let code = 0;
    for (let bit = 0; bit < size; bit++, position++)
      code |= ((bytes[position >> 3] >> (position & 7)) & 1) << bit;
    if (code === clear) {
      begin();
      size = least + 1;
      before = undefined;
      continue;
    }
    if (code === end) return out;
    const word = words[code] ?? (before === undefined ? undefined : [...before, before[0]]);
    if (word === undefined || code > words.length) throw new Error(`code ${code} is not there yet`);
    for (const index of word) out.push(index);
    if (before !== undefined && words.length < 4096) words.push([...before, word[0]]);
    if (words.length === 1 << size && size < 12) size++;
    before = word;
  }
}
