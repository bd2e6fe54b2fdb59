/** The pictures of a replay on a canvas: each is decoded when it is wanted, the next one ahead of time, and a few are kept. */
import { placeIn } from '../../src/view/drawing.ts';
import type { Pictures } from '../../src/view/pictures.ts';

/** Decoded ones that are kept: one of 640 x 640 takes 1.6 MB. */
const mostKept = 24;

export interface PicturePainter {
  /** Draws what stands at a frame into a canvas of this size, as soon as it is there. */
  paint(canvas: HTMLCanvasElement, width: number, height: number, frame: number): void;
  close(): void;
}

export function createPicturePainter(pictures: Pictures): PicturePainter {
  const { files, every } = pictures;
  const kept = new Map<number, Promise<ImageBitmap>>();
  let wanted = -1;

  function decoded(index: number): Promise<ImageBitmap> {
    const found =
      kept.get(index) ?? createImageBitmap(new Blob([files[index] as BlobPart], { type: 'image/png' }));
    // The newest last.
    kept.delete(index);
    kept.set(index, found);
    if (kept.size > mostKept) forget(kept.keys().next().value!);
    return found;
  }

  function forget(index: number): void {
    const found = kept.get(index);
    kept.delete(index);
    void found?.then(
      bitmap => bitmap.close(),
      () => {},
    );
  }

  return {
    paint(canvas, width, height, frame) {
      const index = Math.floor(frame / every);
      wanted = index;
      decoded(index).then(
        bitmap => {
          // Another may be wanted by now.
          if (wanted !== index) return;
          if (canvas.width !== width) canvas.width = width;
          if (canvas.height !== height) canvas.height = height;
          const { scale, left, top } = placeIn(pictures, width, height);
          const context = canvas.getContext('2d');
          context?.clearRect(0, 0, width, height);
          context?.drawImage(bitmap, left, top, scale * pictures.width, scale * pictures.height);
        },
        () => {}, // one that cannot be decoded leaves that before it
      );
      if (index + 1 < files.length) decoded(index + 1).catch(() => {});
    },
    close() {
      wanted = -1;
      for (const index of [...kept.keys()]) forget(index);
    },
  };
}
