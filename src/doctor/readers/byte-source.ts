/** Bytes that can be read at any position: of a file, or in memory. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readingFlags } from '../../base/files.ts';
import { asReadError, ReadError } from './errors.ts';

export interface ByteSource {
  readonly size: number;
  /** Up to `length` bytes from `at` on, into `into` if given. */
  read(at: number, length: number, into?: Buffer): Buffer;
  close(): void;
}

/** A part of a file that is read as a file of its own. */
export interface Member {
  /** Its path in the container, with `/` between names and no `..`. */
  readonly name: string;
  bytes(container: ByteSource): Buffer;
}

export function openFile(path: string): ByteSource {
  let fd: number;
  try {
    fd = openSync(path, readingFlags);
  } catch (error) {
    throw asReadError(error, path);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new ReadError(path, 'is not a plain file: give a log file or a directory');
    return {
      size: stat.size,
      read(at, length, into = Buffer.allocUnsafe(Math.max(0, Math.min(length, stat.size - at)))) {
        try {
          return into.subarray(0, readSync(fd, into, 0, Math.min(length, into.length), at));
        } catch (error) {
          throw asReadError(error, path);
        }
      },
      close: () => closeSync(fd),
    };
  } catch (error) {
    closeSync(fd);
    throw asReadError(error, path);
  }
}

export function inMemory(bytes: Buffer): ByteSource {
  return {
    size: bytes.length,
    read: (at, length) => bytes.subarray(at, at + length),
    close() {},
  };
}
