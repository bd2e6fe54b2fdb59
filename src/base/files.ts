/**
 * Files that are whole or absent, and that fail with a sentence. Everything is synchronous: a line is in the system's
 * hands when `append` returns, so a kill in the next instruction cannot lose it.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fail, RunError } from './errors.ts';

/** What a system's error code means for someone who trains, and what to do about it. */
const remedies: Readonly<Record<string, string>> = {
  ENOSPC:
    'the disk is full: free some space or choose another run directory; what was saved before is intact',
  EDQUOT:
    'the disk quota is used up: free some space or choose another run directory; what was saved before is intact',
  EFBIG: 'the file would be larger than the file system allows: choose another run directory',
  EROFS: 'the file system is read-only: choose another run directory or mount it for writing',
  EACCES: 'permission denied: change its owner or mode, or choose another run directory',
  EPERM: 'the system does not permit it: change its owner or mode, or choose another run directory',
  ENOENT: 'it does not exist: check the path',
  ENOTDIR: 'part of the path is a file, not a directory: check the path',
  EISDIR: 'it is a directory, not a file: check the path',
  EEXIST: 'it exists already: choose another name',
  ENOTEMPTY: 'it exists already: choose another name',
  ENAMETOOLONG: 'the name is too long: choose a shorter one',
  EMFILE: 'too many files are open: close some or raise the limit (ulimit -n)',
  ENFILE: 'too many files are open on this machine: close some',
  EIO: 'the disk reports an error: check it before going on',
  EBUSY: 'another program has it open: close that program',
};

/** The error of a file operation as one line that says what was tried, where, and the remedy. */
export function fileError(error: unknown, doing: string, path: string): RunError {
  if (error instanceof RunError) return error;
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  const remedy = code === undefined ? undefined : remedies[code];
  const why = remedy ?? String((error as Error | undefined)?.message ?? error).replace(/\s+/g, ' ');
  const named = code === undefined || remedy === undefined ? '' : ` (${code})`;
  return new RunError(`cannot ${doing} ${path}: ${why}${named}`, { code, cause: error });
}

/** Runs a file operation; its errors become one-line {@link RunError}s. */
export function attempt<T>(doing: string, path: string, operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    throw fileError(error, doing, path);
  }
}

/** Names of files and directories that are being made. What is left of them after a kill may be deleted. */
export const temporaryPrefix = '.keel-tmp-';

/** This machine, in names: the number of a process says nothing on another. */
const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 6);

/** A name beside `path`, because a rename is atomic only within one file system. It says which process made it. */
export function temporaryBeside(path: string): string {
  const maker = `${machine}.${process.pid}.${randomBytes(6).toString('hex')}`;
  return join(dirname(path), `${temporaryPrefix}${basename(path)}-${maker}`);
}

const makerPattern = /-([0-9a-f]{6})\.(\d{1,10})\.[0-9a-f]{12}$/;

/** Whether the process that made a temporary file or directory is gone; undefined if its name does not say, or not here. */
export function makerIsGone(name: string): boolean | undefined {
  const [, where, pid] = makerPattern.exec(name) ?? [];
  if (where !== machine) return undefined;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    // EPERM: it is there and belongs to someone else.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/**
 * Writes a file so that it appears whole or not at all, also when the machine stops half way: temporary name, fsync,
 * rename, fsync of the directory. On an error the old file is as it was. Not `durable`, it skips the syncs: whole or
 * absent after a kill, but after a power cut perhaps empty; for what can be made again. `mode` says who may read and write it.
 */
export function writeFileAtomic(path: string, data: string | Uint8Array, durable = true, mode = 0o666): void {
  const temporary = temporaryBeside(path);
  attempt('write', path, () => {
    try {
      // Synced, or the rename can reach the disk before the data, and a power cut leaves an empty file.
      create(temporary, data, durable, mode);
      renamePatiently(temporary, path);
      if (durable) syncDirectory(dirname(path));
    } catch (error) {
      // Only tidying: on a read-only disk it fails too, and must not hide why.
      try {
        rmSync(temporary, { force: true });
      } catch {}
      throw error;
    }
  });
}

/** Writes a file that is not there yet, and returns when it is on the disk. Not atomic. */
export function writeNewFile(path: string, data: string | Uint8Array): void {
  attempt('write', path, () => create(path, data, true));
}

function create(path: string, data: string | Uint8Array, durable: boolean, mode = 0o666): void {
  const fd = openSync(path, 'wx', mode);
  try {
    writeFully(fd, toBytes(data), 0);
    if (durable) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Renames over what is there and makes that survive a power cut. */
export function replaceFile(from: string, to: string): void {
  renamePatiently(from, to);
  syncDirectory(dirname(to));
}

/**
 * On Windows a rename fails while a virus scanner or an editor has the target open, which passes: try for a second.
 */
export function renamePatiently(from: string, to: string): void {
  for (let waitMs = 10; ; waitMs *= 2) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      const passes = process.platform === 'win32' && ['EPERM', 'EACCES', 'EBUSY'].includes(code);
      if (!passes || waitMs > 640) throw error;
      sleepSync(waitMs);
    }
  }
}

/** Waits without giving up the thread. */
export function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Makes creations and renames in a directory durable, where the system can (Windows and some network drives cannot). */
export function syncDirectory(path: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    fsyncSync(fd);
  } catch {
    // Not supported here: the rename is still atomic, only its durability is up to the system.
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * A file that only grows, by whole pieces. A piece that does not fit on the disk is taken back, so that the file never
 * ends in half a line because of an error (only because of a kill).
 */
export class AppendFile {
  readonly path: string;
  #fd: number | undefined;
  #size = 0;

  /** Opens, and creates if need be. `recover` may say where the whole pieces end; what is after is cut off. */
  constructor(path: string, recover?: (fd: number, size: number) => number) {
    this.path = path;
    attempt('open', path, () => {
      // Not "append" mode: on Windows such a handle cannot be cut back.
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o666);
      try {
        const size = fstatSync(fd).size;
        this.#size = recover === undefined ? size : recover(fd, size);
        if (this.#size < size) ftruncateSync(fd, this.#size);
      } catch (error) {
        closeSync(fd);
        throw error;
      }
      this.#fd = fd;
    });
  }

  get size(): number {
    return this.#size;
  }

  /** Fails if what is at the path is no longer the file that is written: the system would take lines that nobody finds. */
  requireThere(): void {
    const own = fstatSync(this.#open());
    const there = attempt('find', this.path, () => statSync(this.path, { throwIfNoEntry: false }));
    if (there !== undefined && there.ino === own.ino && there.dev === own.dev) return;
    const run = dirname(this.path);
    const [gone, rest] =
      statSync(run, { throwIfNoEntry: false }) === undefined
        ? [run, 'nothing of it is left: put it back, or start anew']
        : [
            this.path,
            'what the directory still has, its checkpoints above all, is safe: put the file back and resume the run, or begin another from its checkpoint',
          ];
    throw new RunError(
      `${gone} was ${there === undefined ? 'deleted' : 'replaced'} while it was written, so the run stops here; ${rest}`,
      { code: 'gone' },
    );
  }

  append(data: string | Uint8Array): void {
    const fd = this.#open();
    const bytes = toBytes(data);
    attempt('write', this.path, () => {
      try {
        writeFully(fd, bytes, this.#size);
      } catch (error) {
        try {
          ftruncateSync(fd, this.#size);
        } catch {
          // A reader takes the half line for one that a kill left, and so does the next start.
        }
        throw error;
      }
    });
    this.#size += bytes.byteLength;
  }

  /** Returns when what was appended is on the disk, not only in the system's memory. */
  sync(): void {
    const fd = this.#open();
    attempt('write', this.path, () => fsyncSync(fd));
  }

  close(): void {
    if (this.#fd === undefined) return;
    const fd = this.#fd;
    this.#fd = undefined;
    attempt('close', this.path, () => closeSync(fd));
  }

  #open(): number {
    if (this.#fd === undefined) throw new RunError(`${this.path} is closed: write before closing it`);
    return this.#fd;
  }
}

/** A named pipe is not waited for: who puts one into a directory must not hang whoever looks. */
export const readingFlags: number = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Opens a file to read; what is none, such as a pipe or a device that never ends, is refused. */
export function openRegular(path: string): number {
  const fd = openSync(path, readingFlags);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return fail(`${path} is not a file: remove it or check the path`);
}

/** Reads a whole file of at most `limit` bytes: the size is looked at before anything is allocated. @internal */
export function readBounded(path: string, limit: number): Buffer {
  return attempt('read', path, () => {
    const fd = openRegular(path);
    try {
      const stat = fstatSync(fd);
      if (stat.size > limit) {
        fail(`${path} has ${stat.size} bytes, at most ${limit} are expected: it is damaged or not ours`);
      }
      const bytes = Buffer.alloc(stat.size);
      return bytes.subarray(0, readAt(fd, bytes, stat.size, 0));
    } finally {
      closeSync(fd);
    }
  });
}

/** Reads up to `length` bytes at `position` into the start of `target`; fewer only at the end of the file. */
export function readAt(fd: number, target: Uint8Array, length: number, position: number): number {
  let done = 0;
  while (done < length) {
    const count = readSync(fd, target, done, length - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  // Well under what one call may transfer on any system (2 GiB less a page on Linux).
  const most = 2 ** 28;
  for (let done = 0; done < bytes.byteLength; ) {
    done += writeSync(fd, bytes, done, Math.min(bytes.byteLength - done, most), position + done);
  }
}

function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data;
}
