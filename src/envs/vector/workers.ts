import { availableParallelism } from 'node:os';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { isGymReference } from '../../base/code-reference.ts';
import { threadEntry } from '../../base/thread-entry.ts';
import { type AnyMakeOptions, createEnv } from '../definition.ts';
import type { Env, EnvSpec } from '../env.ts';
import { EnvError, fail, messageOf } from '../errors.ts';
import type { Json } from '../plain-data.ts';
import { prepareEnv, type RegisteredEnv } from '../registry.ts';
import { bytesFor, type VectorMemory, type VectorShape, vectorMemory } from './arrays.ts';
import { type Backend, Batch } from './batch.ts';
import { processVectorEnv } from './processes.ts';
import {
  COMMAND,
  type CommandName,
  commands,
  controlLength,
  currentOf,
  type ErrorReply,
  FAILED,
  NOTICED,
  type NoticeReply,
  PENDING,
  type ThreadData,
  turnOf,
} from './protocol.ts';
import { EnvSlice } from './slice.ts';
import { spinUntil } from './spin.ts';
import { Turns } from './turns.ts';
import { checkWorkers, nameOf, shapeFor, type VectorEnv } from './vector.ts';

/** How many environments, in how many threads. */
export interface WorkerVectorOptions {
  readonly envCount: number;
  /** Threads, each with an equal share of the environments; as many as the machine runs at once unless given. */
  readonly workers?: number;
  /** Whether this thread steps a share of the environments as well, while the workers step theirs. */
  readonly here?: boolean;
  /** The environments' own. */
  readonly options?: AnyMakeOptions;
}

/**
 * N environments in worker threads over shared memory, for slow ones: from about 20 microseconds a step. Waking threads
 * costs 10 to 90 microseconds a step of the vector, so below that `inProcessVectorEnv` is faster. The same results to the bit,
 * whatever the number of threads. With `here` and a core for each thread, none sleeps while steps follow each other.
 *
 * Each thread makes its own environments, so they must be Keel's or come from a file (`loadEnvFile`). Idle threads do
 * not keep the process alive.
 */
export async function workerVectorEnv(id: string, options: WorkerVectorOptions): Promise<VectorEnv> {
  const { envCount, here = false, workers = Math.min(envCount, availableParallelism()) } = options;
  const env = await prepareEnv(id);
  const { definition, file } = env;
  if (!canRunInWorkers(env)) {
    fail(
      'vector-invalid',
      `${env.id} was registered in code, which worker threads do not run: export it from a file and load that, or use no workers`,
    );
  }
  // A thread that waits for a process could not be ended before that is.
  if (definition.start !== undefined)
    return processVectorEnv(id, { ...options, workers: here ? workers + 1 : workers });
  const sample = createEnv(definition, options.options ?? {}, file);
  const shape = shapeFor(sample, envCount);
  sample.close?.();
  checkWorkers(workers);
  const memory = vectorMemory(shape);
  const threads = Math.min(here ? workers + 1 : workers, envCount);
  const own = Array.from({ length: here ? Math.floor(envCount / threads) : 0 }, () =>
    createEnv(definition, options.options ?? {}, file),
  );
  const pool = new WorkerPool(sample.spec, shape, memory, threads, own);
  await pool.started();
  return new Batch(sample, shape, memory, pool);
}

/** Whether a thread can make such environments by itself: they are Keel's or come from a file. */
export function canRunInWorkers({ id, file, isOwn }: RegisteredEnv): boolean {
  return file !== null || isOwn || isGymReference(id);
}

/** Of ES2024, which Node 20 has and the compiler's library for it does not. */
const { waitAsync } = Atomics as unknown as {
  waitAsync(
    array: Int32Array,
    index: number,
    value: number,
  ): { async: true; value: Promise<string> } | { async: false; value: string };
};

/**
 * How long a thread that has a core looks for what it waits for before it sleeps: about what it takes to be woken, so that
 * it never costs more than twice the better of the two. Where others want the core, longer is worse (0.2 was).
 */
const SPIN_MS = 0.03;
/** Where this thread steps a share, this often the event loop gets its turn. */
const TURN_MS = 20;

class WorkerPool implements Backend {
  readonly #spec: EnvSpec;
  readonly #shape: VectorShape;
  readonly #local: VectorMemory;
  readonly #shared: VectorMemory;
  /** The same two as wholes, to be copied at once: their layouts are alike. */
  readonly #localBytes: Uint8Array;
  readonly #sharedBytes: Uint8Array;
  readonly #control: Int32Array;
  readonly #workers: Worker[] = [];
  readonly #ports: MessagePort[] = [];
  readonly #exits: Promise<void>[] = [];
  /** The share of this thread: the first environments, or none. */
  readonly #own: EnvSlice | undefined;
  readonly #turns = new Turns(TURN_MS);
  #notices: string[] = [];
  readonly #spinMs: number;
  #closing = false;
  #failure: EnvError | undefined;
  /** Rejects the call under way. */
  #reject: (error: EnvError) => void = () => {};

  /** `own` are the environments of this thread; without any, all `threads` are workers. */
  constructor(spec: EnvSpec, shape: VectorShape, memory: VectorMemory, threads: number, own: readonly Env[]) {
    const here = own.length > 0 ? 1 : 0;
    const workers = threads - here;
    this.#spec = spec;
    this.#shape = shape;
    this.#local = memory;
    const sharedMemory = new SharedArrayBuffer(bytesFor(shape));
    const control = new SharedArrayBuffer(4 * controlLength(workers));
    this.#shared = vectorMemory(shape, sharedMemory);
    this.#localBytes = new Uint8Array(memory.rewards.buffer);
    this.#sharedBytes = new Uint8Array(sharedMemory);
    this.#control = new Int32Array(control);
    this.#control[PENDING] = workers;
    this.#own = here ? new EnvSlice(own, 0, shape, this.#shared) : undefined;
    this.#spinMs = workers + 1 <= availableParallelism() ? SPIN_MS : 0;
    for (let w = 0; w < workers; w++) {
      this.#control[currentOf(w)] = -1;
      const { port1, port2 } = new MessageChannel();
      const data: ThreadData = {
        worker: w,
        id: spec.id,
        file: spec.file,
        options: remakeOptions(spec),
        first: Math.floor(((here + w) * shape.envCount) / threads),
        end: Math.floor(((here + w + 1) * shape.envCount) / threads),
        shape,
        control,
        memory: sharedMemory,
        port: port2,
        spinMs: this.#spinMs,
      };
      const worker = new Worker(workerEntry(), {
        workerData: data,
        transferList: [port2],
        name: `${spec.id} ${data.first}..${data.end - 1}`,
        execArgv: [], // those of the main thread may load what a worker must not
      });
      worker.on('error', error => this.#fail(this.#diedOf(w, messageOf(error), error)));
      this.#exits.push(
        new Promise(resolve => {
          worker.on('exit', code => {
            if (!this.#closing) this.#fail(this.#diedOf(w, `it ended with exit code ${code}`));
            resolve();
          });
        }),
      );
      this.#workers.push(worker);
      this.#ports.push(port1);
    }
  }

  /** Resolves when all workers have made their environments. */
  async started(): Promise<void> {
    await this.#finish();
  }

  async reset(seeds: readonly number[] | undefined): Promise<void> {
    this.#shared.progress.set(this.#local.progress);
    this.#begin('reset', seeds);
    this.#here(own => own.reset(seeds));
    await this.#finish();
    this.#takeResults();
  }

  step(): Promise<void> | undefined {
    this.#shared.actions.set(this.#local.actions);
    this.#shared.progress.set(this.#local.progress);
    this.#begin('step');
    if (!this.#own) return this.#stepLater();
    this.#here(own => own.step());
    if (!spinUntil(this.#control, PENDING, 'same', 0, this.#spinMs)) return this.#stepLater();
    this.#checkReplies();
    this.#takeResults();
    return this.#turns.due() ? this.#turns.give() : undefined;
  }

  async #stepLater(): Promise<void> {
    await this.#finish();
    this.#takeResults();
  }

  async state(): Promise<Json[]> {
    this.#begin('state');
    const states: Json[] = [];
    this.#here(own => states.push(...own.state()));
    await this.#finish();
    return states.concat(this.#ports.flatMap(port => this.#received(port) as Json[]));
  }

  async restore(states: readonly unknown[]): Promise<void> {
    this.#begin('restore', states);
    this.#here(own => own.restore(states));
    await this.#finish();
    this.#takeResults();
  }

  async close(): Promise<void> {
    const idle = this.#failure === undefined && Atomics.load(this.#control, PENDING) === 0;
    this.#closing = true;
    let failure: unknown;
    if (idle) {
      this.#begin('close');
      await this.#finish().catch(error => {
        failure = error;
      });
    } else {
      this.#reject(new EnvError('env-closed', 'the environments were closed during the call'));
      this.#terminate();
    }
    for (const worker of this.#workers) worker.ref();
    await Promise.all(this.#exits);
    for (const port of this.#ports) port.close();
    try {
      this.#own?.close();
    } catch (error) {
      failure ??= error;
    }
    if (failure !== undefined) throw failure;
  }

  /** Sets the workers to work. */
  #begin(name: CommandName, message?: unknown): void {
    if (this.#failure) throw this.#failure;
    const control = this.#control;
    Atomics.store(control, PENDING, this.#workers.length);
    Atomics.store(control, COMMAND, commands[name]);
    for (let w = 0; w < this.#workers.length; w++) {
      if (message !== undefined) this.#ports[w].postMessage(message);
      Atomics.add(control, turnOf(w), 1);
      Atomics.notify(control, turnOf(w));
    }
  }

  /** Does this thread's share meanwhile. */
  #here(work: (own: EnvSlice) => void): void {
    if (!this.#own) return;
    try {
      work(this.#own);
    } catch (error) {
      this.#fail(error as EnvError); // a slice throws nothing else
      throw error;
    }
  }

  /** Resolves when the workers are done; throws what one of them threw. */
  async #finish(): Promise<void> {
    await this.#allDone();
    this.#checkReplies();
  }

  /** Resolves when no worker is at work; rejects when one dies. Keeps the process alive meanwhile. */
  async #allDone(): Promise<void> {
    for (const worker of this.#workers) worker.ref();
    try {
      await new Promise<void>((resolve, reject) => {
        this.#reject = reject;
        if (this.#failure) reject(this.#failure);
        const look = (): void => {
          for (;;) {
            const pending = Atomics.load(this.#control, PENDING);
            if (pending === 0) {
              resolve();
              return;
            }
            const wait = waitAsync(this.#control, PENDING, pending);
            if (wait.async) {
              void wait.value.then(look);
              return;
            }
          }
        };
        look();
      });
    } finally {
      for (const worker of this.#workers) worker.unref();
    }
  }

  /** Throws the error that a worker posted. */
  #checkReplies(): void {
    if (Atomics.load(this.#control, FAILED) === 0) return;
    for (const port of this.#ports) {
      const reply = this.#received(port) as ErrorReply | undefined;
      if (reply?.error === undefined) continue;
      const { code, message, stack, place } = reply.error;
      const cause = new Error(message);
      if (stack !== undefined) cause.stack = stack;
      const error = new EnvError(code, message, place ? { cause, place } : { cause });
      this.#fail(error);
      throw error;
    }
  }

  #takeResults(): void {
    this.#localBytes.set(this.#sharedBytes);
  }

  #diedOf(worker: number, reason: string, cause?: unknown): EnvError {
    const index = Atomics.load(this.#control, currentOf(worker));
    if (index < 0) {
      return new EnvError('worker-died', `worker ${worker} of ${this.#spec.id} died: ${reason}`, { cause });
    }
    const place = { index, seed: this.#shared.seeds[index], step: this.#shared.steps[index] };
    const name = nameOf(place, this.#shape.envCount, this.#spec.id);
    return new EnvError('worker-died', `${name} took its worker down: ${reason}`, { cause, place });
  }

  /** Ends all workers: those that live would wait for a step that never comes. */
  #fail(error: EnvError): void {
    if (this.#closing || this.#failure) return;
    this.#failure = error;
    this.#closing = true;
    this.#terminate();
    this.#reject(error);
  }

  #terminate(): void {
    for (const worker of this.#workers) void worker.terminate();
  }

  notices(): string[] {
    if (Atomics.exchange(this.#control, NOTICED, 0) !== 0)
      for (const port of this.#ports) while (this.#isNotice(receiveMessageOnPort(port)?.message));
    return [...(this.#own?.takeNotices() ?? []), ...this.#notices.splice(0)];
  }

  /** The next message of a worker that is an answer. */
  #received(port: MessagePort): unknown {
    for (;;) {
      const message: unknown = receiveMessageOnPort(port)?.message;
      if (!this.#isNotice(message)) return message;
    }
  }

  #isNotice(message: unknown): boolean {
    const { notices } = (message ?? {}) as Partial<NoticeReply>;
    if (notices === undefined) return false;
    this.#notices.push(...notices);
    return true;
  }
}

/** The options that make the same environment again. */
function remakeOptions(spec: EnvSpec): AnyMakeOptions {
  return { ...spec.options, maxEpisodeSteps: spec.maxEpisodeSteps };
}

/** The thread's program. */
export const workerEntry = (): URL => threadEntry(import.meta.url, 'thread');
