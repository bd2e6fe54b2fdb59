/**
 * A Python process that has environments, and the two named pipes between it and this thread. The thread waits in a read that
 * nothing can interrupt, which is what makes a round trip take ten microseconds. So that it always ends, a second small
 * process stands between (python/keel/_minder.py): it says when a call takes so long that this thread should see to something
 * else meanwhile, ends the group when a call takes too long or when this thread has gone, and writes down how the
 * environments' process ended.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as afterMs } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jsonOf } from '../../base/json.ts';
import { EnvError, show } from '../errors.ts';
import { howItEnded } from './ending.ts';
import { ChildGone, type Told, ToldError } from './faults.ts';
import type { Python } from './find-python.ts';
import {
  type Ask,
  asks,
  FAILED_ANSWER,
  HEADER_BYTES,
  MAGIC,
  MOST_BYTES,
  PROTOCOL,
  WAITING,
} from './frames.ts';

/** What the process is told when it starts. */
export interface ChildConfig {
  /** A file and what in it makes an environment, or an id of Gymnasium's. */
  readonly file?: string;
  readonly name?: string;
  readonly gym?: string;
  readonly args: object;
  /** Names of the numbers of `info` that are measured. */
  readonly info: readonly string[];
  readonly render: boolean;
  /** Seconds after which a call is taken for hung. */
  readonly stepSeconds: number;
  readonly startSeconds: number;
}

/** The folder that has the package `keel` for Python. */
const packageFolder = fileURLToPath(new URL('../../../python', import.meta.url));
const bootstrap =
  'import sys; sys.path = [sys.argv[1]] + [p for p in sys.path if p]; from keel.env_server import main; main(sys.argv[2])';
/** How long a Python that has started takes until it says so, at the very most. */
const HELLO_MS = 60_000;

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

/** A call that takes longer is one that this thread should not wait for. */
const SLOW_MS = 50;

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const sleep = (ms: number): void => {
  Atomics.wait(sleeper, 0, 0, ms);
};

/** A process, and what can be asked of it. */
export class Child {
  readonly pid: number;
  readonly #process: ChildProcess;
  readonly #folder: string;
  #reader: number;
  #writer: number;
  #sequence = 0;
  /** What has been sent and not been answered. */
  #asked: Ask | undefined;
  /** Whether the last call took so long that this thread should not wait for the next. */
  #isSlow = false;
  #isOpen = true;
  /** Header and payload of the last answer; grows. */
  #buffer = Buffer.alloc(2 ** 16);
  /** Bytes of an answer that have been read already. */
  #begun = 0;
  #request = Buffer.alloc(2 ** 16);

  constructor({ executable, environment }: Python, config: ChildConfig) {
    this.#folder = mkdtempSync(join(tmpdir(), 'keel-python-'));
    const [inward, outward] = ['in', 'out'].map(name => join(this.#folder, name));
    this.#writer = -1;
    this.#reader = -1;
    try {
      execFileSync('mkfifo', ['-m', '600', inward, outward], { stdio: 'ignore' });
      writeFileSync(join(this.#folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
      // Opened for both, a pipe waits for nobody, and nobody else waits for it. Only until the other side has it.
      this.#writer = openSync(inward, constants.O_RDWR);
      this.#reader = openSync(outward, constants.O_RDONLY | constants.O_NONBLOCK);
      this.#process = spawn(executable, ['-c', bootstrap, packageFolder, this.#folder], {
        detached: true,
        // Its first pipe is what tells the minder that this thread is there; what is printed goes straight on.
        stdio: ['pipe', 'ignore', 'inherit'],
        env: {
          // Sets in the same order, and no threads that fight for the cores of other environments, unless told.
          PYTHONHASHSEED: '0',
          OMP_NUM_THREADS: '1',
          OPENBLAS_NUM_THREADS: '1',
          PYGAME_HIDE_SUPPORT_PROMPT: '1',
          // Nobody listens, and where there is no sound card pygame complains in ten lines.
          SDL_AUDIODRIVER: 'dummy',
          ...process.env,
          ...environment,
        },
      });
      // Also what goes wrong is waited for elsewhere.
      for (const one of [this.#process, this.#process.stdin]) one?.on('error', () => {});
      this.pid = this.#process.pid ?? 0;
      if (this.pid === 0) throw new EnvError('python-missing', `${executable} could not be started`);
      this.#process.unref();
      (this.#process.stdin as unknown as { unref(): void }).unref();
      this.#waitForHello();
      this.#reader = this.#blocking(this.#reader, outward, constants.O_RDONLY);
      this.#writer = this.#blocking(this.#writer, inward, constants.O_WRONLY);
      const hello = this.#answer('hello', 0);
      const { protocol } = jsonOf(hello.toString('utf8')) as { protocol?: unknown };
      if (protocol !== PROTOCOL)
        throw new EnvError(
          'python-failed',
          `the Python side speaks protocol ${show(protocol)}, this one ${PROTOCOL}`,
        );
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /**
   * Asks, and waits for the answer's bytes, which stay until the next question. `payload` has been written to `room(bytes)`.
   * Throws `ChildGone`, or a `ToldError` with what an environment threw.
   */
  ask(what: Ask, bytes: number): Buffer {
    this.send(what, bytes);
    return this.receive();
  }

  /** Asks without waiting: the process is at work until its answer is received. */
  send(what: Ask, bytes: number): void {
    if (this.#asked !== undefined) throw new Error(`${what} was asked before ${this.#asked} was answered`);
    const sequence = ++this.#sequence;
    const request = this.#request;
    request.writeUInt32LE(MAGIC, 0);
    request.writeUInt32LE(asks[what], 4);
    request.writeUInt32LE(sequence, 8);
    request.writeUInt32LE(bytes, 12);
    const whole = HEADER_BYTES + bytes;
    this.#asked = what;
    try {
      for (let done = 0; done < whole; ) done += writeSync(this.#writer, request, done, whole - done);
    } catch {
      // It has ended, which is found out where the answer is.
    }
  }

  /** The answer to what was sent. */
  receive(): Buffer {
    if (!this.#isOpen) throw new ChildGone('it was ended');
    const asked = this.#asked!;
    this.#asked = undefined;
    return this.#answer(asked, this.#sequence);
  }

  /** Whether there is something to receive that was asked for before. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  /** Waits in this thread for the answer to begin; false where that takes so long that `later` should wait for it. */
  begins(): boolean {
    if (this.#begun >= HEADER_BYTES) return true;
    if (this.#isSlow) return false;
    try {
      this.#isSlow = !this.#hasBegun(this.#reader);
    } catch {
      // As at its end, which is found out where the answer is.
    }
    return !this.#isSlow;
  }

  /** Waits for the answer to begin while this thread does other things. Ends early where the process is ended. */
  async later(): Promise<void> {
    const from = performance.now();
    const reader = openSync(join(this.#folder, 'out'), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      for (let tries = 0; this.#isOpen; tries++) {
        try {
          if (this.#hasBegun(reader)) break;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
          await afterMs(tries < 100 ? 1 : 5);
        }
      }
    } finally {
      closeSync(reader);
    }
    this.#isSlow = performance.now() - from > SLOW_MS;
  }

  /** Reads until a header is there; false where it only says that the call takes long. True at the end of the pipe, too. */
  #hasBegun(reader: number): boolean {
    while (this.#begun < HEADER_BYTES) {
      const count = readSync(reader, this.#buffer, this.#begun, this.#buffer.length - this.#begun, null);
      if (count === 0) return true;
      this.#begun += count;
    }
    return !this.#skipsWaiting();
  }

  /** Takes a frame away that says that the call takes long. */
  #skipsWaiting(): boolean {
    const buffer = this.#buffer;
    if (buffer.readUInt32LE(4) !== WAITING || buffer.readUInt32LE(0) !== MAGIC) return false;
    buffer.copyWithin(0, HEADER_BYTES, this.#begun);
    this.#begun -= HEADER_BYTES;
    return true;
  }

  /** Where so many bytes of a question are written, before it is asked. */
  room(bytes: number): Buffer {
    if (this.#request.length < HEADER_BYTES + bytes) this.#request = Buffer.alloc(HEADER_BYTES + bytes);
    return this.#request.subarray(HEADER_BYTES, HEADER_BYTES + bytes);
  }

  /** Lets its environments close, and waits until it has ended. */
  quit(): void {
    if (!this.#isOpen) return;
    if (this.isAsked) {
      this.end(); // it is at work on what nobody waits for any more
      return;
    }
    try {
      this.ask('quit', 0);
    } catch {
      // It does not answer, it ends.
    }
    this.end();
  }

  /** Ends it now. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (this.pid > 0) signal(-this.pid, 'SIGKILL');
    for (const fd of [this.#reader, this.#writer]) if (fd >= 0) closeSync(fd);
    this.#process?.stdin?.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Until the other side has opened both pipes and written. The first byte is left there. */
  #waitForHello(): void {
    const until = performance.now() + HELLO_MS;
    const header = Buffer.alloc(HEADER_BYTES);
    for (;;) {
      try {
        const count = readSync(this.#reader, header, 0, HEADER_BYTES, null);
        if (count > 0) {
          header.copy(this.#buffer, 0, 0, count);
          this.#begun = count;
          return;
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      if (performance.now() > until || isZombie(this.pid))
        throw new EnvError('python-failed', `the Python process did not start; what it printed is above`);
      sleep(1);
    }
  }

  /** The same pipe again, for reads or writes that wait. */
  #blocking(before: number, path: string, how: number): number {
    const hold = openSync(path, constants.O_RDWR);
    const fd = openSync(path, how);
    closeSync(hold);
    closeSync(before);
    return fd;
  }

  #answer(asked: Ask, sequence: number): Buffer {
    do {
      while (this.#begun < HEADER_BYTES) this.#begun = this.#more(this.#begun);
    } while (this.#skipsWaiting());
    let done = this.#begun;
    this.#begun = 0;
    const header = this.#buffer;
    const [magic, what, number, length] = [0, 4, 8, 12].map(at => header.readUInt32LE(at));
    const isAnswer = what === asks[asked] || what === asks[asked] + FAILED_ANSWER;
    if (magic !== MAGIC || number !== sequence || !isAnswer || length > MOST_BYTES) {
      signal(-this.pid, 'SIGKILL');
      this.#gone(
        `it answered with bytes that are no frame (${header.subarray(0, HEADER_BYTES).toString('hex')}): nothing but Keel may write to its pipes`,
      );
    }
    const whole = HEADER_BYTES + length;
    if (whole > this.#buffer.length) {
      const larger = Buffer.alloc(whole);
      this.#buffer.copy(larger, 0, 0, done);
      this.#buffer = larger;
    }
    while (done < whole) done = this.#more(done, whole);
    const payload = this.#buffer.subarray(HEADER_BYTES, whole);
    if (what !== asks[asked]) throw new ToldError(jsonOf(payload.toString('utf8')) as Told);
    return payload;
  }

  #more(done: number, end = this.#buffer.length): number {
    let count = 0;
    try {
      count = readSync(this.#reader, this.#buffer, done, end - done, null);
    } catch {
      // As at its end.
    }
    if (count === 0) this.#gone();
    return done + count;
  }

  /** Says how it ended. The minder keeps the pipe open until it has written that down. */
  #gone(reason?: string): never {
    const rest = Buffer.alloc(4096);
    try {
      while (readSync(this.#reader, rest, 0, rest.length, null) > 0);
    } catch {
      // It is at its end.
    }
    const why = reason ?? howItEnded(this.#folder);
    this.end();
    throw new ChildGone(why);
  }
}

/** Whether it has ended and nobody has asked how. Only Linux says so; elsewhere it is waited for. */
function isZombie(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ''));
  } catch {
    return process.platform === 'linux';
  }
}
