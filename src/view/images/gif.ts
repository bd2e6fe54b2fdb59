/** Animated GIFs (GIF89a): one palette for all pictures; what has not changed since the one before is left out. */
import { cubeOf, type Palette } from './palette.ts';

/** One colour of the 256 says "as before". */
export const gifColours = 255;
const AS_BEFORE = 255;

/** A threshold for each place, in -.5 … .5: gradients become a fine pattern instead of bands (Bayer, 4 by 4). */
const BAYER = Float32Array.from(
  [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5],
  step => (step + 0.5) / 16 - 0.5,
);
/** How strong it is, in steps of a channel. */
const DITHER = 6;

export interface GifWriter {
  /** (height, width, 3) bytes. */
  add(pixels: Uint8Array): void;
  /** The whole file. */
  end(): Uint8Array;
}

/** `delayHundredths` is how long each picture stays, in hundredths of a second: players are unreliable below 2. */
export function createGif(
  width: number,
  height: number,
  palette: Palette,
  delayHundredths: number,
): GifWriter {
  const parts: Uint8Array[] = [header(width, height, palette)];
  const shown = new Uint8Array(width * height);
  const picture = new Uint8Array(width * height);
  let first = true;
  return {
    add(pixels) {
      for (let i = 0; i < picture.length; i++) {
        const shift = DITHER * BAYER[((Math.floor(i / width) & 3) << 2) | ((i % width) & 3)];
        const index =
          palette.nearest[
            cubeOf(
              clamp(pixels[3 * i] + shift),
              clamp(pixels[3 * i + 1] + shift),
              clamp(pixels[3 * i + 2] + shift),
            )
          ];
        picture[i] = !first && index === shown[i] ? AS_BEFORE : index;
        shown[i] = index;
      }
      parts.push(control(delayHundredths, !first), place(width, height), compressed(picture));
      first = false;
    },
    end: () => Buffer.concat([...parts, Uint8Array.of(0x3b)]),
  };
}

const clamp = (value: number): number => (value < 0 ? 0 : value > 255 ? 255 : value | 0);

const two = (value: number): [number, number] => [value & 255, value >> 8];

function header(width: number, height: number, { colours }: Palette): Uint8Array {
  const table = new Uint8Array(3 * 256);
  table.set(colours.subarray(0, 3 * gifColours));
  const text = (value: string): number[] => [...value].map(letter => letter.charCodeAt(0));
  return Uint8Array.from([
    ...text('GIF89a'),
    ...two(width),
    ...two(height),
    0xf7, // a table of 256 colours
    0,
    0,
    ...table,
    // Again and again.
    ...[0x21, 0xff, 11, ...text('NETSCAPE2.0'), 3, 1, 0, 0, 0],
  ]);
}

/** How long the next picture stays, and whether one colour of it lets the one before shine through. */
const control = (delay: number, transparent: boolean): Uint8Array =>
  Uint8Array.of(0x21, 0xf9, 4, (1 << 2) | Number(transparent), ...two(delay), AS_BEFORE, 0);

const place = (width: number, height: number): Uint8Array =>
  Uint8Array.of(0x2c, 0, 0, 0, 0, ...two(width), ...two(height), 0);

const CLEAR = 256;
const END = 257;
const MOST_CODES = 4096;

/** Which code follows a code and a byte; those of an earlier dictionary have its number and do not count. */
const followers = new Int32Array(MOST_CODES * 256);
let dictionary = 0;

/** The picture in LZW, in blocks of at most 255 bytes. */
function compressed(picture: Uint8Array): Uint8Array {
  const out: number[] = [8];
  let block: number[] = [];
  let [buffer, bits] = [0, 0];
  let [size, next] = [9, END + 1];
  const put = (code: number): void => {
    buffer |= code << bits;
    bits += size;
    while (bits >= 8) {
      block.push(buffer & 255);
      buffer >>>= 8;
      bits -= 8;
      if (block.length === 255) flush();
    }
  };
  const flush = (): void => {
    if (block.length === 0) return;
    out.push(block.length, ...block);
    block = [];
  };
  const begin = (): void => {
    dictionary = (dictionary + 1) % (1 << 18);
    if (dictionary === 0) {
      followers.fill(0);
      dictionary = 1;
    }
    size = 9;
    next = END + 1;
  };
  put(CLEAR);
  begin();
  let prefix = picture[0];
  for (let i = 1; i < picture.length; i++) {
    const byte = picture[i];
    const at = prefix * 256 + byte;
    const found = followers[at];
    if (found >> 12 === dictionary) {
      prefix = found & (MOST_CODES - 1);
      continue;
    }
    put(prefix);
    if (next < MOST_CODES) {
      followers[at] = (dictionary << 12) | next;
      // A reader's dictionary is one code behind.
      if (next === 1 << size && size < 12) size++;
      next++;
    } else {
      put(CLEAR);
      begin();
    }
    prefix = byte;
  }
  put(prefix);
  put(END);
  if (bits > 0) block.push(buffer & 255);
  flush();
  out.push(0);
  return Uint8Array.from(out);
}
