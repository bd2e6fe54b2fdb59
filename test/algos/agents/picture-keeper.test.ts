/** Pictures of an episode stay within their bounds, and each stands at its frame. */
import { expect, test } from 'vitest';
import { MOST_PICTURE_BYTES, PictureKeeper } from '../../../src/algos/agents/picture-keeper.ts';
import { TrainError } from '../../../src/base/errors.ts';
import type { Picture } from '../../../src/envs/env.ts';
import { Rng } from '../../../src/random/rng.ts';
import { decodePng } from '../../../src/view/images/png.ts';
import { pictureAt, pictureCount } from '../../../src/view/pictures.ts';

/** An episode of so many frames; the first byte of each picture is its frame's number. */
function played(frames: number, shownAt: (frame: number) => Picture) {
  let frame = 0;
  const looked: number[] = [];
  const keeper = new PictureKeeper('Painted-v0', () => {
    looked.push(frame);
    const shown = shownAt(frame);
    shown.rgb[0] = frame;
    return shown;
  });
  keeper.begin();
  for (frame = 1; frame < frames; frame++) keeper.look(frame);
  const { pictures } = keeper;
  const firstBytes = pictures.files.map(file => decodePng(file, pictures.width, pictures.height, 'it')[0]);
  return { pictures, looked, firstBytes };
}
const plain = (width: number, height: number, stepSeconds: number) => (): Picture => ({
  width,
  height,
  rgb: new Uint8Array(3 * width * height),
  stepSeconds,
});

test('at most 25 a second: at 50 frames a second every other, at 10 each', () => {
  const fast = played(7, plain(4, 3, 0.02));
  expect(fast.firstBytes).toEqual([0, 2, 4, 6]);
  expect(fast.looked).toEqual([0, 2, 4, 6]); // an environment is not asked for what is not kept
  expect(pictureAt(fast.pictures, 5)).toBe(fast.pictures.files[2]);
  expect(played(4, plain(4, 3, 0.1)).firstBytes).toEqual([0, 1, 2, 3]);
});

test('with too many bytes every other one goes', () => {
  const rng = new Rng(1);
  // Noise has nothing to press: 192 kB each.
  const rgb = Uint8Array.from({ length: 3 * 256 * 256 }, () => rng.integer(256));
  const { pictures, firstBytes } = played(30, () => ({ ...plain(256, 256, 0.1)(), rgb }));
  const bytes = pictures.files.reduce((sum, { length }) => sum + length, 0);
  expect(bytes).toBeLessThanOrEqual(MOST_PICTURE_BYTES);
  expect(bytes).toBeGreaterThan(MOST_PICTURE_BYTES / 2.5);
  expect(pictures.files.length).toBe(pictureCount(30, pictures.every));
  expect(firstBytes).toEqual(firstBytes.map((_, i) => i * pictures.every));
});

test('a large picture becomes smaller by a whole number, each pixel the mean of those that it covers', () => {
  const { pictures } = played(1, () => ({
    ...plain(1280, 4, 0.1)(),
    rgb: Uint8Array.from({ length: 3 * 1280 * 4 }, (_, i) => (i % 3 === 1 ? 2 * (Math.floor(i / 3) % 2) : 7)),
  }));
  expect([pictures.width, pictures.height]).toEqual([640, 2]);
  const pixels = decodePng(pictures.files[0], 640, 2, 'it');
  expect([...pixels.subarray(3, 9)]).toEqual([7, 1, 7, 7, 1, 7]);
  expect(played(1, plain(640, 640, 0.1)).pictures).toMatchObject({ width: 640, height: 640 });
});

test('all are of one size', () => {
  const sizes = [4, 4, 5];
  expect(() => played(3, frame => plain(sizes[frame], 3, 0.1)())).toThrow(TrainError);
});
