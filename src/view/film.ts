/** A replay as pictures on disk: one, a directory of them, a GIF, or a video where ffmpeg is installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectories } from '../base/directories.ts';
import { fail, RunError } from '../base/errors.ts';
import { writeFileAtomic } from '../base/files.ts';
import { createBoardPainter } from './draw/board.ts';
import { createPainter } from './draw/painter.ts';
import { createGif, gifColours } from './images/gif.ts';
import { createHistogram } from './images/palette.ts';
import { decodePng, encodePng } from './images/png.ts';
import { type Motion, momentOf, secondsOf } from './motion.ts';
import { pictureAt } from './pictures.ts';

export interface FilmOptions {
  /** In pixels; of a motion that has pictures it is theirs. */
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
  /** How much faster than life it is shown. */
  readonly speed: number;
  readonly dark: boolean;
  /** The moment of a single picture, in seconds; the middle unless given. */
  readonly atSeconds?: number | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export type FilmKind = 'picture' | 'pictures' | 'gif' | 'video';

/** What a file's name asks for. */
export function filmKindOf(out: string): FilmKind {
  if (/[\\/]$/.test(out) || statSync(out, { throwIfNoEntry: false })?.isDirectory()) return 'pictures';
  if (/\.png$/i.test(out)) return 'picture';
  if (/\.gif$/i.test(out)) return 'gif';
  if (/\.(mp4|webm|mkv|mov)$/i.test(out)) return 'video';
  return fail(
    `--out ${out}: end it with .gif, .png, .mp4, .webm, .mkv, .mov, or / for a directory of pictures`,
    'file-invalid',
  );
}

/** Pictures for a palette: enough to have seen every colour. */
const SAMPLES = 12;

/** Draws a motion and writes what `out` asks for; returns how many pictures are in it. */
export async function film(motion: Motion, out: string, options: FilmOptions): Promise<number> {
  const paint = painterOf(motion, options);
  const seconds = secondsOf(motion);
  /** Three bytes a pixel; the array may be used again at the next moment. */
  const at = (moment: number): Uint8Array => {
    const { frame, part } = momentOf(motion, moment);
    return paint(frame, part);
  };
  const kind = filmKindOf(out);
  const { width, height, onProgress } = options;
  if (kind === 'picture') {
    writeFileAtomic(out, encodePng(at(options.atSeconds ?? seconds / 2), width, height), false);
    return 1;
  }
  // A GIF counts in hundredths of a second.
  const delay = Math.max(2, Math.round(100 / options.framesPerSecond));
  const pauseSeconds = kind === 'gif' ? delay / 100 : 1 / options.framesPerSecond;
  const total = Math.floor(seconds / (pauseSeconds * options.speed) + 1e-9) + 1;
  const picture = (i: number): Uint8Array => at(i * pauseSeconds * options.speed);
  switch (kind) {
    case 'pictures':
      makeDirectories(out);
      for (let i = 0; i < total; i++) {
        const name = `${String(i).padStart(5, '0')}.png`;
        writeFileAtomic(join(out, name), encodePng(picture(i), width, height), false);
        onProgress?.(i + 1, total);
      }
      break;
    case 'gif': {
      const histogram = createHistogram();
      for (let i = 0; i < SAMPLES; i++) histogram.add(picture(Math.round((i * (total - 1)) / (SAMPLES - 1))));
      const gif = createGif(width, height, histogram.palette(gifColours), delay);
      for (let i = 0; i < total; i++) {
        gif.add(picture(i));
        onProgress?.(i + 1, total);
      }
      writeFileAtomic(out, gif.end(), false);
      break;
    }
    case 'video':
      await video(out, options, total, picture);
      break;
    default:
      kind satisfies never;
  }
  return total;
}

/** What paints a moment into an array that is used again for the next. */
function painterOf(motion: Motion, options: FilmOptions): (frame: number, part: number) => Uint8Array {
  const { drawings, pictures } = motion;
  if (pictures !== undefined) {
    const { width, height } = pictures;
    return frame => decodePng(pictureAt(pictures, frame), width, height, `the picture of frame ${frame}`);
  }
  if (drawings === undefined) return createPainter(motion, options).paint;
  const paint = createBoardPainter(options.width, options.height, options.dark);
  // A board does not move between two frames.
  return frame => paint(drawings[frame]);
}

async function video(
  out: string,
  { width, height, framesPerSecond, onProgress }: FilmOptions,
  total: number,
  picture: (i: number) => Uint8Array,
): Promise<void> {
  const args = [
    ...['-hide_banner', '-loglevel', 'error', '-y'],
    ...['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', `${width}x${height}`, '-r', String(framesPerSecond)],
    ...['-i', '-', '-pix_fmt', 'yuv420p', '-vf', 'pad=ceil(iw/2)*2:ceil(ih/2)*2'],
    // What begins with a dash must not be taken for an option.
    out.startsWith('-') ? `./${out}` : out,
  ];
  const child = spawn('ffmpeg', args, { stdio: ['pipe', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2000);
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', error =>
      reject(
        (error as NodeJS.ErrnoException).code === 'ENOENT'
          ? new RunError(`${out} needs ffmpeg, which is not installed: install it, or write a .gif instead`, {
              code: 'file-invalid',
            })
          : error,
      ),
    );
    child.on('close', code => resolve(code ?? 1));
  });
  child.stdin.on('error', () => {}); // why it ended is told below
  const writeAll = async (): Promise<void> => {
    for (let i = 0; i < total && child.stdin.writable; i++) {
      // The painter's array is used again, so ffmpeg gets a copy.
      if (!child.stdin.write(Buffer.from(picture(i))))
        await Promise.race([once(child.stdin, 'drain'), ended]);
      onProgress?.(i + 1, total);
    }
    child.stdin.end();
  };
  const [code] = await Promise.all([ended, writeAll()]);
  if (code !== 0)
    fail(
      `ffmpeg could not write ${out}: ${said.trim().split('\n').at(-1) || `exit ${code}`}`,
      'file-invalid',
    );
}
