/** Files as chunks of bytes, unpacked if they are gzip, in bounded memory and giving way to others as they come. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { constants, createGunzip } from 'node:zlib';
import { readingFlags } from '../../base/files.ts';
import { asReadError, ReadError } from './errors.ts';

/** What a caller can watch and stop. */
export interface ReadOptions {
  /** Called now and then with the bytes read of the run's files so far, and their sum. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** What all the files of one reading share. */
export interface Reading {
  /** Counts bytes as read from the disk, and gives way to timers and other work every few milliseconds. */
  advance(bytes: number): Promise<void> | undefined;
  /** Gives way if it is time to. */
  breathe(): Promise<void> | undefined;
}

const workMs = 20;

export function startReading(total: number, options: ReadOptions = {}): Reading {
  let done = 0;
  let since = performance.now();
  async function rest(): Promise<void> {
    options.onProgress?.(done, Math.max(total, done));
    await setImmediate();
    options.signal?.throwIfAborted();
    since = performance.now();
  }
  const breathe = () => (performance.now() - since > workMs ? rest() : undefined);
  return {
    advance(bytes) {
      done += bytes;
      return breathe();
    },
    breathe,
  };
}

/** How a stream of bytes came to its end. */
export interface Ending {
  /** A gzip file that stops in the middle, as one does that is being written. */
  cut: boolean;
  /** What was wrong, if not only cut. */
  problem?: string;
}

const chunkBytes = 2 ** 18;
/**
 * A log of numbers packs ten to one, and repeated settings a hundred to one; zeros a thousand to one. What came out is
 * held to what went in so far, so that a bomb is known by its first megabytes, however long it is.
 */
const freeExpansion = 16 * 2 ** 20;
const largestRatio = 200;
const largestExpansion = 2 ** 30;

function isGzip(head: Uint8Array): boolean {
  return head.length > 2 && head[0] === 0x1f && head[1] === 0x8b && head[2] === 8;
}

/**
 * The bytes of a file, up to the size it has now: one that grows as fast as it is read must not be read for ever. A chunk
 * is valid until the next one is asked for.
 * @internal
 */
export async function* readChunks(path: string, reading: Reading, ending: Ending): AsyncGenerator<Buffer> {
  let fd: number;
  try {
    fd = openSync(path, readingFlags);
  } catch (error) {
    throw asReadError(error, path);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new ReadError(path, 'is not a plain file: give a log file or a directory');
    const head = Buffer.alloc(3);
    const raw = rawChunks(path, fd, stat.size, reading);
    if (readSync(fd, head, 0, 3, 0) === 3 && isGzip(head)) {
      const tail = Buffer.alloc(4);
      readSync(fd, tail, 0, 4, Math.max(0, stat.size - 4));
      const length = { total: 0 };
      yield* unpack(path, raw, stat.size, ending, length);
      // A gzip file ends in the length of what it holds (modulo 2^32). Unpacking itself forgives an early end.
      if (length.total % 2 ** 32 !== tail.readUInt32LE(0)) ending.cut = true;
    } else yield* raw;
  } finally {
    closeSync(fd);
  }
}

async function* rawChunks(path: string, fd: number, size: number, reading: Reading): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(chunkBytes, size)));
  for (let position = 0; position < size; ) {
    let count: number;
    try {
      count = readSync(fd, buffer, 0, Math.min(buffer.length, size - position), position);
    } catch (error) {
      throw asReadError(error, path);
    }
    if (count === 0) return;
    position += count;
    yield buffer.subarray(0, count);
    const pause = reading.advance(count);
    if (pause !== undefined) await pause;
  }
}

async function* unpack(
  path: string,
  raw: AsyncGenerator<Buffer>,
  packed: number,
  ending: Ending,
  length: { total: number },
): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: chunkBytes, finishFlush: constants.Z_SYNC_FLUSH });
  // Each piece is copied: the stream keeps it while the buffer is filled again.
  const feed = (async () => {
    for await (const piece of raw) {
      if (gunzip.destroyed) return;
      if (!gunzip.write(Buffer.from(piece))) {
        await new Promise<void>(resolve => {
          const go = (): void => {
            gunzip.off('drain', go);
            gunzip.off('close', go);
            resolve();
          };
          gunzip.once('drain', go);
          gunzip.once('close', go);
        });
      }
    }
    gunzip.end();
  })();
  let failure: unknown;
  feed.catch(error => {
    failure = error;
    gunzip.destroy();
  });
  try {
    for await (const piece of gunzip as AsyncIterable<Buffer>) {
      length.total += piece.length;
      const { bytesWritten: taken } = gunzip;
      if (length.total > Math.min(largestExpansion, freeExpansion + largestRatio * taken)) {
        throw new ReadError(
          path,
          `${taken} of its ${packed} bytes of gzip unpack to more than ${length.total - piece.length}, which no log does: unpack it and look at it`,
        );
      }
      yield piece;
    }
  } catch (error) {
    if (error instanceof ReadError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('Z_')) ending.problem = `its gzip data is damaged (${code})`;
    else if (failure === undefined) throw asReadError(error, path);
  } finally {
    gunzip.destroy();
    await feed.catch(() => {});
  }
  if (failure !== undefined) throw failure;
}

/** The first bytes of a file, unpacked if it is gzip: what its format is told by. @internal */
export async function readHead(
  path: string,
  most: number,
): Promise<{ head: Buffer; size: number; packed: boolean }> {
  let fd: number;
  try {
    fd = openSync(path, readingFlags);
  } catch (error) {
    throw asReadError(error, path);
  }
  let size = 0;
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new ReadError(path, 'is not a plain file: give a log file or a directory');
    size = stat.size;
    const head = Buffer.allocUnsafe(Math.min(most, size));
    const count = readSync(fd, head, 0, head.length, 0);
    if (!isGzip(head.subarray(0, count))) return { head: head.subarray(0, count), size, packed: false };
  } catch (error) {
    throw asReadError(error, path);
  } finally {
    closeSync(fd);
  }
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of readChunks(path, startReading(size), { cut: false })) {
    pieces.push(Buffer.from(piece.subarray(0, most - length)));
    length += piece.length;
    if (length >= most) break;
  }
  return { head: Buffer.concat(pieces).subarray(0, most), size, packed: true };
}
