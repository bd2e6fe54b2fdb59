import { describe, expect, test } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { createGif, gifColours } from '../../src/view/images/gif.ts';
import { createHistogram } from '../../src/view/images/palette.ts';
import { encodePng } from '../../src/view/images/png.ts';
import { decodeGif, decodePng } from './support/decode.ts';

function noise(count: number, seed: number, levels = 256): Uint8Array {
  const rng = new Rng(seed);
  return Uint8Array.from({ length: count }, () =>
    Math.floor((rng.integer(levels) * 255) / Math.max(1, levels - 1)),
  );
}

test('a PNG reads back byte for byte', () => {
  for (const [width, height] of [
    [1, 1],
    [7, 5],
    [64, 33],
  ] as const) {
    const pixels = noise(3 * width * height, width);
    expect(decodePng(Buffer.from(encodePng(pixels, width, height)))).toEqual({ width, height, pixels });
  }
});

describe('GIF', () => {
  const gifOf = (pictures: Uint8Array[], width: number, height: number, delay = 4) => {
    const histogram = createHistogram();
    for (const picture of pictures) histogram.add(picture);
    const gif = createGif(width, height, histogram.palette(gifColours), delay);
    for (const picture of pictures) gif.add(picture);
    return decodeGif(gif.end());
  };

  test('pictures of few colours come back as they were, near enough not to be seen', () => {
    const [width, height] = [40, 30];
    // Far apart, so that the pattern of dithering cannot take one for another.
    const colours = [
      [250, 250, 250],
      [200, 30, 30],
      [20, 60, 200],
      [20, 20, 20],
    ];
    const pictures = [1, 2, 3].map(seed => {
      const rng = new Rng(seed);
      return Uint8Array.from({ length: width * height }, () => rng.integer(4)).reduce(
        (pixels, colour, i) => {
          pixels.set(colours[colour], 3 * i);
          return pixels;
        },
        new Uint8Array(3 * width * height),
      );
    });
    const { pictures: read, delays } = gifOf(pictures, width, height, 5);
    expect(delays).toEqual([5, 5, 5]);
    read.forEach((picture, n) => {
      expect([picture.width, picture.height]).toEqual([width, height]);
      const farthest = picture.pixels.reduce(
        (most, value, i) => Math.max(most, Math.abs(value - pictures[n][i])),
        0,
      );
      expect(farthest).toBeLessThanOrEqual(6);
    });
  });

  test('noise of all colours, which fills the dictionary many times, still has all its pixels', () => {
    const [width, height] = [160, 120];
    const pictures = [noise(3 * width * height, 1), noise(3 * width * height, 2)];
    const { pictures: read } = gifOf(pictures, width, height);
    expect(read).toHaveLength(2);
    let error = 0;
    read[1].pixels.forEach((value, i) => {
      error += Math.abs(value - pictures[1][i]);
    });
    // 255 colours for all of them: each is some way off, and none far.
    expect(error / read[1].pixels.length).toBeLessThan(24);
  });

  test('a picture that does not change takes next to nothing', () => {
    const [width, height] = [100, 80];
    const picture = noise(3 * width * height, 5, 4);
    const histogram = createHistogram();
    histogram.add(picture);
    const sizes = [1, 11].map(count => {
      const gif = createGif(width, height, histogram.palette(gifColours), 4);
      for (let i = 0; i < count; i++) gif.add(picture);
      return gif.end().length;
    });
    expect((sizes[1] - sizes[0]) / 10).toBeLessThan(300);
  });

  test('a palette keeps every colour where there are few', () => {
    const histogram = createHistogram();
    histogram.add(Uint8Array.from([10, 20, 30, 200, 100, 50, 10, 20, 30]));
    const { colours } = histogram.palette(255);
    expect(new Set([[...colours.subarray(0, 3)].join(), [...colours.subarray(3, 6)].join()])).toEqual(
      new Set(['10,20,30', '200,100,50']),
    );
  });
});
