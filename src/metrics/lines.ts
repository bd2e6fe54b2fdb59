/** Reading files of lines in bounded memory. */
import { closeSync, fstatSync } from 'node:fs';
import { attempt, openRegular, readAt } from '../base/files.ts';

/** One line of a file. */
export interface Line {
  /** Without its line break; null if it is longer than is read (see `maxLineBytes`). */
  readonly text: string | null;
  /** From 1, counted from where reading began. */
  readonly number: number;
  /** Where it begins, and where the next one would, in bytes. */
  readonly start: number;
  readonly end: number;
}

/** A row of a hundred metrics has three thousand bytes: a longer line than this is damage, and is not kept in memory. */
export const maxLineBytes = 4 * 2 ** 20;
const chunkBytes = 2 ** 18;
const newline = 10;

/**
 * The whole lines of a file, from a byte offset on. A last line without its line break is not whole: its writer was
 * killed in the middle, or is just writing. Empty lines are lines.
 */
export function* readLines(path: string, from = 0): Generator<Line, void, undefined> {
  const fd = attempt('read', path, () => openRegular(path));
  try {
    const chunk = new Uint8Array(chunkBytes);
    let pending: Uint8Array[] = [];
    let pendingBytes = 0;
    let [number, start, position] = [1, from, from];
    for (;;) {
      const length = attempt('read', path, () => readAt(fd, chunk, chunkBytes, position));
      if (length === 0) return;
      let begin = 0;
      for (;;) {
        const at = chunk.subarray(0, length).indexOf(newline, begin);
        const piece = chunk.subarray(begin, at < 0 ? length : at);
        if (pendingBytes + piece.length <= maxLineBytes) pending.push(at < 0 ? piece.slice() : piece);
        else pending = [];
        pendingBytes += piece.length;
        if (at < 0) break;
        const end = position + at + 1;
        const text = pendingBytes > maxLineBytes ? null : Buffer.concat(pending).toString('utf8');
        yield { text: text?.endsWith('\r') ? text.slice(0, -1) : text, number, start, end };
        pending = [];
        pendingBytes = 0;
        number++;
        start = end;
        begin = at + 1;
      }
      position += length;
    }
  } finally {
    closeSync(fd);
  }
}

/** Where the last whole line of an open file ends: 0 if there is none. */
export function endOfLastLine(fd: number, size: number): number {
  const chunk = new Uint8Array(chunkBytes);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunkBytes);
    const length = readAt(fd, chunk, end - start, start);
    const at = chunk.subarray(0, length).lastIndexOf(newline);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** The last whole line, read from the end; undefined if there is none or it is longer than is read. */
export function readLastLine(path: string): string | undefined {
  const fd = attempt('read', path, () => openRegular(path));
  try {
    return attempt('read', path, () => {
      const end = endOfLastLine(fd, fstatSync(fd).size);
      if (end === 0) return undefined;
      const start = endOfLastLine(fd, end - 1);
      if (end - 1 - start > maxLineBytes) return undefined;
      const bytes = new Uint8Array(end - 1 - start);
      const length = readAt(fd, bytes, bytes.length, start);
      return Buffer.from(bytes.subarray(0, length)).toString('utf8').replace(/\r$/, '');
    });
  } finally {
    closeSync(fd);
  }
}
