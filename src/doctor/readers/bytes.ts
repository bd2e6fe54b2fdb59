/** Files as chunks of bytes, unpacked if they are gzip, in bounded memory and giving way to others as they come. */
import { setImmediate } from 'node:timers/promises';
import { constants, createGunzip } from 'node:zlib';
import type { ByteSource } from './byte-source.ts';
import { isGzip } from './containers.ts';
import { asReadError, ReadError } from './errors.ts';
import { openPlace } from './places.ts';

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

/**
 * The bytes of a file, up to the size it has now: one that grows as fast as it is read must not be read for ever. A chunk
 * is valid until the next one is asked for.
 * @internal
 */
export async function* readChunks(path: string, reading: Reading, ending: Ending): AsyncGenerator<Buffer> {
  const source = openPlace(path);
  try {
    const raw = rawChunks(source, reading);
    if (isGzip(source.read(0, 3))) {
      const tail = Buffer.alloc(4);
      source.read(Math.max(0, source.size - 4), 4).copy(tail);
      const length = { total: 0 };
      yield* unpack(path, raw, source.size, ending, length);
      // A gzip file ends in the length of what it holds (modulo 2^32). Unpacking itself forgives an early end.
      if (length.total % 2 ** 32 !== tail.readUInt32LE(0)) ending.cut = true;
    } else yield* raw;
  } finally {
    source.close();
  }
}

async function* rawChunks(source: ByteSource, reading: Reading): AsyncGenerator<Buffer> {
  const { size } = source;
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(chunkBytes, size)));
  for (let position = 0; position < size; ) {
    const chunk = source.read(position, Math.min(buffer.length, size - position), buffer);
    if (chunk.length === 0) return;
    position += chunk.length;
    yield chunk;
    const pause = reading.advance(chunk.length);
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
  const source = openPlace(path);
  const { size } = source;
  try {
    const head = source.read(0, Math.min(most, size));
    if (!isGzip(head)) return { head, size, packed: false };
  } finally {
    source.close();
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
