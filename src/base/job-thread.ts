/**
 * A thread for what may hang or eat memory: it does one job after the other, each within a limit of time. A job that
 * takes longer is ended together with the thread, and the next one gets a new thread.
 */
import { parentPort, Worker } from 'node:worker_threads';
import { KeelError } from './errors.ts';

/** What a thread may hold: readers keep far less, whatever the size of a log. Buffers do not count. */
const MAX_HEAP_MEGABYTES = 1024;

/** A job without an answer: it took too long, needed too much, or failed; the message says which. */
export class JobError extends KeelError {
  override name = 'JobError';
  /** What the job was busy with when it was ended, if it said so. */
  readonly at: string | undefined;
  /** Whether it was ended because of a limit. */
  readonly isStopped: boolean;

  constructor(why: string, { at, isStopped = false }: { at?: string | undefined; isStopped?: boolean } = {}) {
    super(why);
    this.at = at;
    this.isStopped = isStopped;
  }
}

/** How one job is done. */
export interface JobOptions {
  /** From its beginning, or from when it last said what it is busy with, to its end. */
  readonly limitMs: number;
  /** Called with what the job is busy with. */
  readonly onAt?: (at: string) => void;
  /** Buffers that are handed over and not copied. */
  readonly transfer?: ArrayBuffer[];
  /** Ends the job, and its thread. */
  readonly signal?: AbortSignal | undefined;
}

/** Asks a thread. */
export interface JobThread {
  ask<T>(job: unknown, options: JobOptions): Promise<T>;
  /** Ends the thread at once, whatever it does; jobs that wait fail. */
  close(): Promise<void>;
}

type Message =
  | { readonly type: 'begun' }
  | { readonly type: 'at'; readonly at: string }
  | { readonly type: 'done'; readonly value: unknown }
  | { readonly type: 'failed'; readonly message: string };

/** In the thread: answers each job that comes. `say` tells what it is busy with, and begins the limit anew. */
export function answerJobs<T>(work: (job: T, say: (at: string) => void) => unknown): void {
  const port = parentPort!;
  const tell = (message: Message): void => port.postMessage(message);
  port.on('message', async (job: T) => {
    tell({ type: 'begun' });
    try {
      tell({ type: 'done', value: await work(job, at => tell({ type: 'at', at })) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const isKnown = error instanceof KeelError;
      tell({ type: 'failed', message: isKnown ? message : `${message} (this is a fault in Keel)` });
    }
  });
}

/** A thread that is started with its first job. It does not keep the process alive but while it works. */
export function jobThread(entry: URL, name: string, heapMegabytes: number = MAX_HEAP_MEGABYTES): JobThread {
  let worker: Worker | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const closing = new AbortController();

  function started(): Worker {
    if (worker !== undefined) return worker;
    const made = new Worker(entry, {
      name,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    // One that dies without a job is no news: the next job starts another.
    made.on('error', () => {});
    made.on('exit', () => {
      if (worker === made) worker = undefined;
    });
    worker = made;
    return made;
  }

  async function end(): Promise<void> {
    const ending = worker;
    worker = undefined;
    await ending?.terminate();
  }

  function run(job: unknown, { limitMs, onAt, transfer, signal }: JobOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const thread = started();
      let timer: NodeJS.Timeout | undefined;
      let at: string | undefined;
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        thread.off('message', onMessage).off('error', onError).off('exit', onExit).unref();
        for (const one of [closing.signal, signal]) one?.removeEventListener('abort', onAbort);
        act();
      };
      const stop = (why: string, isStopped: boolean): void =>
        settle(() => void end().then(() => reject(new JobError(why, { at, isStopped }))));
      const onAbort = (): void => stop('it was called off', false);
      const restart = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => stop(`took longer than ${inSeconds(limitMs)} s: left out`, true), limitMs);
      };
      const onMessage = (message: Message): void => {
        switch (message.type) {
          case 'begun':
            restart();
            return;
          case 'at':
            at = message.at;
            restart();
            onAt?.(at);
            return;
          case 'done':
            settle(() => resolve(message.value));
            return;
          case 'failed':
            settle(() => reject(new JobError(message.message)));
            return;
          default:
            message satisfies never;
        }
      };
      const onError = (error: NodeJS.ErrnoException): void => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
          stop(`needed more than ${heapMegabytes} MB of memory: left out`, true);
        else stop(`its thread died: ${error.message}`, false);
      };
      const onExit = (): void => stop('its thread ended', false);
      thread.on('message', onMessage).on('error', onError).on('exit', onExit);
      for (const one of [closing.signal, signal]) one?.addEventListener('abort', onAbort);
      if (closing.signal.aborted || signal?.aborted) return onAbort();
      thread.ref();
      try {
        thread.postMessage(job, transfer ?? []);
      } catch (error) {
        settle(() => reject(error));
      }
    });
  }

  return {
    ask<T>(job: unknown, options: JobOptions): Promise<T> {
      const mine = last.then(() => {
        if (closing.signal.aborted || options.signal?.aborted) throw new JobError('it was called off');
        return run(job, options) as Promise<T>;
      });
      last = mine.catch(() => {});
      return mine;
    },
    async close() {
      closing.abort();
      await end();
    },
  };
}

const inSeconds = (ms: number): number => Number((ms / 1000).toPrecision(3));
