/** Five frames of an environment that draws itself, a picture for every two: all red, all green, all blue. */
import type { Replay } from '../../../src/runs/replay-format.ts';
import { encodePng } from '../../../src/view/images/png.ts';
import { boardReplay } from './board-replay.ts';

const size = { width: 30, height: 20 };
const colours = [
  [220, 0, 0],
  [0, 200, 0],
  [0, 0, 220],
];

/** (height, width, 3) */
const plainPicture = (which: number): Uint8Array =>
  Uint8Array.from({ length: 3 * size.width * size.height }, (_, i) => colours[which][i % 3]);

export const pictureReplay = (step: number): Replay => {
  const { drawings: _, ...rest } = boardReplay(step);
  return {
    ...rest,
    frames: 5,
    actions: new Float32Array(5),
    rewards: new Float32Array(5).fill(1),
    pictures: {
      ...size,
      every: 2,
      files: colours.map((_, i) => Uint8Array.from(encodePng(plainPicture(i), size.width, size.height))),
    },
  };
};
