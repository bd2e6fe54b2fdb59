/** Files of text as lines, in bounded memory, whatever their encoding and line breaks. */
import { type Ending, type Reading, readChunks } from './bytes.ts';
import type { RunBuilder } from './run-builder.ts';

/** RLlib repeats megabytes of settings in each line; beyond this a line is damage, and is not kept. */
const longestLine = 16 * 2 ** 20;

export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/** By the mark at the beginning, or by the zeros between the letters. Without either it is UTF-8. */
export function encodingOf(head: Uint8Array): { encoding: Encoding; mark: number } {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return { encoding: 'utf-8', mark: 3 };
  if (head[0] === 0xff && head[1] === 0xfe) return { encoding: 'utf-16le', mark: 2 };
  if (head[0] === 0xfe && head[1] === 0xff) return { encoding: 'utf-16be', mark: 2 };
  return { encoding: 'utf-8', mark: 0 };
}

/** The beginning of a file as text; characters that were cut in two are left out. */
export function decodeHead(head: Uint8Array): string {
  const { encoding, mark } = encodingOf(head);
  return new TextDecoder(encoding).decode(head.subarray(mark), { stream: true });
}

/** A line without its break. `whole` is false for a last line that has none: its writer may still be at it. */
export type OnLine = (text: string, whole: boolean) => void;

/** Splits text that comes in pieces. Breaks are LF and CRLF, and a lone CR if asked: progress bars write those. */
export class LineSplitter {
  readonly #onLine: OnLine;
  readonly #returns: boolean;
  #pending: string[] = [];
  #pendingLength = 0;
  /** Lines that were longer than {@link longestLine}. */
  tooLong = 0;

  constructor(onLine: OnLine, loneReturns = false) {
    this.#onLine = onLine;
    this.#returns = loneReturns;
  }

  push(text: string): void {
    let begin = 0;
    for (;;) {
      const at = text.indexOf('\n', begin);
      if (at < 0) break;
      this.#line(text.slice(begin, at), true);
      begin = at + 1;
    }
    if (begin < text.length) this.#keep(begin === 0 ? text : text.slice(begin));
  }

  end(): boolean {
    const half = this.#pendingLength > 0;
    if (half) this.#line('', false);
    return half;
  }

  #keep(piece: string): void {
    this.#pendingLength += piece.length;
    if (this.#pendingLength > longestLine) this.#pending = [];
    else this.#pending.push(piece);
  }

  #line(rest: string, whole: boolean): void {
    let line = rest;
    if (this.#pendingLength > 0) {
      this.#keep(rest);
      const length = this.#pendingLength;
      line = this.#pending.join('');
      this.#pending = [];
      this.#pendingLength = 0;
      if (length > longestLine) {
        this.tooLong++;
        return;
      }
    }
    if (line.charCodeAt(line.length - 1) === 13) line = line.slice(0, -1);
    if (!this.#returns || !line.includes('\r')) {
      this.#onLine(line, whole);
      return;
    }
    const parts = line.split('\r');
    parts.forEach((part, i) => {
      this.#onLine(part, whole || i < parts.length - 1);
    });
  }
}

/** Feeds the text of a file to `onText` in pieces. */
export async function forEachPiece(
  path: string,
  reading: Reading,
  onText: (piece: string) => void,
): Promise<Ending> {
  const ending: Ending = { cut: false };
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  let first = Buffer.alloc(0);
  for await (const chunk of readChunks(path, reading, ending)) {
    if (decoder !== undefined) {
      onText(decoder.decode(chunk, { stream: true }));
      continue;
    }
    // The mark may be torn between two chunks of a file that is unpacked.
    first = Buffer.concat([first, chunk]);
    if (first.length < 3) continue;
    const { encoding, mark } = encodingOf(first);
    decoder = new TextDecoder(encoding);
    onText(decoder.decode(first.subarray(mark), { stream: true }));
    first = Buffer.alloc(0);
  }
  if (decoder === undefined) onText(first.toString('utf8'));
  else onText(decoder.decode());
  return ending;
}

/**
 * Feeds the lines of a file to `onLine`, and tells the run about lines too long and files that are cut. Returns whether
 * the last line lacks its break.
 */
export async function forEachLine(
  path: string,
  reading: Reading,
  run: RunBuilder,
  onLine: OnLine,
  loneReturns = false,
): Promise<boolean> {
  const splitter = new LineSplitter(onLine, loneReturns);
  const ending = await forEachPiece(path, reading, piece => splitter.push(piece));
  const half = splitter.end();
  if (ending.problem !== undefined) run.note(`${path}: ${ending.problem}: what came before it is read`);
  if (ending.cut) run.unfinished = true;
  if (splitter.tooLong > 0) {
    run.note(`${path}: ${splitter.tooLong} lines longer than ${longestLine} characters are left out`);
  }
  return half;
}
