/**
 * A WebAssembly program on a thread of its own, in memory that both threads see: what it reads is written and what it
 * writes is read here, and nothing is sent but the word to begin.
 */
import { Worker } from 'node:worker_threads';
import { threadEntry } from '../../base/thread-entry.ts';
import { EngineError, fail } from '../errors.ts';
import type { SharedMemory, WasmCode } from './module.ts';
import type { WasmProgram } from './program.ts';

/** Places of the numbers that the threads talk by. */
export const signal = {
  /** Counts what was asked for; -1 ends the thread. */
  asked: 0,
  /** Counts what was done; -1 until the thread is there. */
  done: 1,
  /** 1 after a failure. */
  failed: 2,
} as const;

/** What the thread is started with. */
export interface AsideData {
  readonly code: WasmCode;
  readonly memory: SharedMemory;
  readonly control: SharedArrayBuffer;
}

/** Runs one program elsewhere. */
export interface Aside {
  /** Whether the thread has come up; until then, use the program here. */
  readonly isReady: boolean;
  /** Begins to execute the program. */
  begin(): void;
  /** Waits, blocking this thread, until it is done. */
  end(): void;
  dispose(): void;
}

/**
 * Starts a thread for a program that was compiled with `shared`; undefined where this process may start none. It does not
 * keep the process alive.
 */
export function openAside({ code, memory }: WasmProgram): Aside | undefined {
  if (!memory) return fail('aside: the program has memory of its own: compile it with { shared: true }');
  const control = new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT);
  const signals = new Int32Array(control);
  signals[signal.done] = -1;
  let asked = 0;
  let failure: unknown;
  let worker: Worker;
  try {
    worker = new Worker(threadEntry(import.meta.url, 'thread'), {
      workerData: { code, memory, control } satisfies AsideData,
      execArgv: [],
      name: 'value function',
    });
  } catch {
    return undefined;
  }
  worker.unref();
  // A thread that did not come up is never ready: all goes on in this one.
  worker.on('error', error => {
    failure = error;
    Atomics.store(signals, signal.done, -1);
  });
  return {
    get isReady() {
      return failure === undefined && Atomics.load(signals, signal.done) >= 0;
    },
    begin() {
      asked++;
      Atomics.store(signals, signal.failed, 0);
      Atomics.store(signals, signal.asked, asked);
      Atomics.notify(signals, signal.asked);
    },
    end() {
      for (let done = Atomics.load(signals, signal.done); done !== asked; ) {
        Atomics.wait(signals, signal.done, done);
        done = Atomics.load(signals, signal.done);
      }
      if (Atomics.load(signals, signal.failed) === 1)
        throw new EngineError(
          'run: the program failed on its own thread: an index may lie outside of its tensor',
        );
    },
    dispose() {
      Atomics.store(signals, signal.asked, -1);
      Atomics.notify(signals, signal.asked);
      void worker.terminate();
    },
  };
}
