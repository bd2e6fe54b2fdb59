/** What an environment that draws itself shows in an episode, as files of a bounded size. */
import { TrainError } from '../../base/errors.ts';
import type { Picture } from '../../envs/env.ts';
import { encodePng } from '../../view/images/png.ts';
import type { Pictures } from '../../view/pictures.ts';

/** More in a second of the environment's time are not kept: no film of ours shows more. */
const MOST_A_SECOND = 25;
/** Larger ones are made smaller by a whole number. */
const MOST_SIDE = 640;
/** Of an episode; beyond it every other picture goes, and no more come in between. A run keeps 32 replays. */
export const MOST_PICTURE_BYTES = 4 * 2 ** 20;
/** How hard zlib tries: the training waits meanwhile. */
const LEVEL = 2;

export class PictureKeeper {
  readonly #show: () => Picture;
  readonly #env: string;
  #size: { width: number; height: number } | undefined;
  #files: Uint8Array[] = [];
  #bytes = 0;
  #every = 1;
  /** Seconds of the environment's time that a step takes. */
  stepSeconds = 1;

  constructor(env: string, show: () => Picture) {
    this.#env = env;
    this.#show = show;
  }

  /** Looks at frame 0 of an episode. */
  begin(): void {
    const first = this.#show();
    this.#files = [];
    this.#bytes = 0;
    this.#size = undefined;
    this.stepSeconds = first.stepSeconds;
    this.#every = Math.max(1, Math.round(1 / (MOST_A_SECOND * first.stepSeconds)));
    this.#keep(first);
  }

  /** Looks, if a picture of this frame is wanted. */
  look(frame: number): void {
    if (frame % this.#every !== 0) return;
    this.#keep(this.#show());
    while (this.#bytes > MOST_PICTURE_BYTES && this.#files.length > 1) {
      this.#files = this.#files.filter((_, i) => i % 2 === 0);
      this.#every *= 2;
      this.#bytes = this.#files.reduce((sum, { length }) => sum + length, 0);
    }
  }

  get pictures(): Pictures {
    return { ...this.#size!, every: this.#every, files: this.#files };
  }

  #keep(shown: Picture): void {
    const { width, height, rgb } = smaller(shown);
    this.#size ??= { width, height };
    if (width !== this.#size.width || height !== this.#size.height)
      throw new TrainError(
        `${this.#env} gave a picture of ${shown.width}x${shown.height} after others of another size: all must be alike`,
      );
    const file = encodePng(rgb, width, height, LEVEL);
    this.#files.push(file);
    this.#bytes += file.length;
  }
}

/** Each pixel the mean of so many: no side is longer than is shown. */
function smaller({ width, height, rgb }: Picture): Pick<Picture, 'width' | 'height' | 'rgb'> {
  const by = Math.ceil(Math.max(width, height) / MOST_SIDE);
  const [w, h] = [Math.floor(width / by), Math.floor(height / by)];
  if (by === 1 || w === 0 || h === 0) return { width, height, rgb };
  const out = new Uint8Array(3 * w * h);
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++)
      for (let k = 0; k < 3; k++) {
        let sum = 0;
        for (let dy = 0; dy < by; dy++)
          for (let dx = 0; dx < by; dx++) sum += rgb[3 * ((y * by + dy) * width + x * by + dx) + k];
        out[3 * (y * w + x) + k] = Math.round(sum / (by * by));
      }
  return { width: w, height: h, rgb: out };
}
