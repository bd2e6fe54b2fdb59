/**
 * What an environment that draws itself has shown in an episode: PNG files, all of one size, one for every so many frames.
 * Runs in a browser, which decodes them; src/view/images/png.ts does so without one.
 */
import { fail } from '../base/errors.ts';

export interface Pictures {
  readonly width: number;
  readonly height: number;
  /** Frames from one picture to the next. */
  readonly every: number;
  /** (ceil(frames / every)) */
  readonly files: readonly Uint8Array[];
}

/** What they may be at most, as they come from a file too. */
export const pictureLimits = { side: 4096, bytes: 32 * 2 ** 20 } as const;

/** How many there are of so many frames. */
export const pictureCount = (frames: number, every: number): number => Math.ceil(frames / every);

/** The picture that stands at a frame. */
export const pictureAt = ({ files, every }: Pictures, frame: number): Uint8Array =>
  files[Math.floor(frame / every)];

export const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** The signature and the first chunk: sizes, eight bits of RGB, not interlaced. */
export const PNG_START_BYTES = 33;

/** Refuses what does not begin as a PNG of this size: whoever decodes it makes room for what its beginning says. */
export function checkPng(file: Uint8Array, width: number, height: number, source: string): void {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const isPng =
    file.length > PNG_START_BYTES &&
    PNG_SIGNATURE.every((byte, i) => file[i] === byte) &&
    view.getUint32(12) === 0x49484452 && // IHDR
    view.getUint32(16) === width &&
    view.getUint32(20) === height &&
    view.getUint32(24) === 0x08020000 &&
    file[28] === 0;
  if (!isPng) fail(`${source} is no PNG of ${width}x${height} in eight bits of RGB`, 'invalid');
}
