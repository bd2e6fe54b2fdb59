import { availableParallelism } from 'node:os';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { threadEntry } from '../../base/thread-entry.ts';
import { builtIn } from '../built-in.ts';
import { type AnyMakeOptions, createEnv } from '../definition.ts';
import type { EnvSpec } from '../env.ts';
import { EnvError, fail, messageOf, show } from '../errors.ts';
import type { Json } from '../plain-data.ts';
import { prepareEnv, type RegisteredEnv } from '../registry.ts';
import { bytesFor, type VectorMemory, type VectorShape, vectorMemory } from './arrays.ts';
import { type Backend, Batch } from './batch.ts';
import {
  COMMAND,
  type CommandName,
  commands,
  controlLength,
  currentOf,
  type ErrorReply,
  FAILED,
  PENDING,
  type ThreadData,
  turnOf,
} from './protocol.ts';
import { nameOf, shapeFor, type VectorEnv } from './vector.ts';

/** How many environments, in how many threads. */
export interface WorkerVectorOptions {
  readonly envCount: number;
  /** Threads, each with an equal share of the environments; as many as the machine runs at once unless given. */
  readonly workers?: number;
  /** The environments' own. */
  readonly options?: AnyMakeOptions;
}

/**
 * N environments in worker threads over shared memory, for slow ones: from about 20 microseconds a step. Waking threads
 * costs 10 to 25 microseconds a step of the vector, so below that `inProcessVectorEnv` is faster. The same results to the bit, whatever the number of threads.
 *
 * Each thread makes its own environments, so they must be Keel's or come from a file (`loadEnvFile`). Idle threads do
 * not keep the process alive.
 */
export async function workerVectorEnv(id: string, options: WorkerVectorOptions): Promise<VectorEnv> {
  const { envCount, workers = Math.min(envCount, availableParallelism()) } = options;
  const env = await prepareEnv(id);
  const { definition, file } = env;
  if (!canRunInWorkers(env)) {
    fail(
      'vector-invalid',
      `${env.id} was registered in code, which worker threads do not run: export it from a file and load that, or use no workers`,
    );
  }
  const sample = createEnv(definition, options.options ?? {}, file);
  const shape = shapeFor(sample, envCount);
  sample.close?.();
  if (!Number.isSafeInteger(workers) || workers < 1 || workers > 256) {
    fail(
      'vector-invalid',
      `workers ${show(workers)} is not a whole number in 1..256: try ${availableParallelism()}`,
    );
  }
  const memory = vectorMemory(shape);
  const pool = new WorkerPool(sample.spec, shape, memory, Math.min(workers, envCount));
  await pool.started();
  return new Batch(sample, shape, memory, pool);
}

/** Whether a thread can make such environments by itself: they are Keel's or come from a file. */
export function canRunInWorkers({ file, definition }: RegisteredEnv): boolean {
  return file !== null || builtIn.includes(definition);
}

/** Of ES2024, which Node 20 has and the compiler's library for it does not. */
const { waitAsync } = Atomics as unknown as {
  waitAsync(
    array: Int32Array,
    index: number,
    value: number,
  ): { async: true; value: Promise<string> } | { async: false; value: string };
};

class WorkerPool implements Backend {
  readonly #spec: EnvSpec;
  readonly #shape: VectorShape;
  readonly #local: VectorMemory;
  readonly #shared: VectorMemory;
  readonly #control: Int32Array;
  readonly #workers: Worker[] = [];
  readonly #ports: MessagePort[] = [];
  readonly #exits: Promise<void>[] = [];
  #closing = false;
  #failure: EnvError | undefined;
  /** Rejects the call under way. */
  #reject: (error: EnvError) => void = () => {};

  constructor(spec: EnvSpec, shape: VectorShape, memory: VectorMemory, workers: number) {
    this.#spec = spec;
    this.#shape = shape;
    this.#local = memory;
    const sharedMemory = new SharedArrayBuffer(bytesFor(shape));
    const control = new SharedArrayBuffer(4 * controlLength(workers));
    this.#shared = vectorMemory(shape, sharedMemory);
    this.#control = new Int32Array(control);
    this.#control[PENDING] = workers;
    for (let w = 0; w < workers; w++) {
      this.#control[currentOf(w)] = -1;
      const { port1, port2 } = new MessageChannel();
      const data: ThreadData = {
        worker: w,
        id: spec.id,
        file: spec.file,
        options: remakeOptions(spec),
        first: Math.floor((w * shape.envCount) / workers),
        end: Math.floor(((w + 1) * shape.envCount) / workers),
        shape,
        control,
        memory: sharedMemory,
        port: port2,
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
    await this.#allDone();
    this.#checkReplies();
  }

  async reset(seeds: readonly number[] | undefined): Promise<void> {
    this.#shared.progress.set(this.#local.progress);
    await this.#call('reset', seeds);
    this.#takeResults();
  }

  async step(): Promise<void> {
    this.#shared.actions.set(this.#local.actions);
    this.#shared.progress.set(this.#local.progress);
    await this.#call('step');
    this.#takeResults();
  }

  async state(): Promise<Json[]> {
    await this.#call('state');
    return this.#ports.flatMap(port => receiveMessageOnPort(port)?.message as Json[]);
  }

  async restore(states: readonly unknown[]): Promise<void> {
    await this.#call('restore', states);
    this.#takeResults();
  }

  async close(): Promise<void> {
    const idle = this.#failure === undefined && Atomics.load(this.#control, PENDING) === 0;
    this.#closing = true;
    let failure: unknown;
    if (idle) {
      await this.#call('close').catch(error => {
        failure = error;
      });
    } else {
      this.#reject(new EnvError('env-closed', 'the environments were closed during the call'));
      for (const worker of this.#workers) void worker.terminate();
    }
    for (const worker of this.#workers) worker.ref();
    await Promise.all(this.#exits);
    for (const port of this.#ports) port.close();
    if (failure !== undefined) throw failure;
  }

  async #call(name: CommandName, message?: unknown): Promise<void> {
    if (this.#failure) throw this.#failure;
    const control = this.#control;
    Atomics.store(control, PENDING, this.#workers.length);
    Atomics.store(control, COMMAND, commands[name]);
    for (let w = 0; w < this.#workers.length; w++) {
      if (message !== undefined) this.#ports[w].postMessage(message);
      Atomics.add(control, turnOf(w), 1);
      Atomics.notify(control, turnOf(w));
    }
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
      const reply = receiveMessageOnPort(port)?.message as ErrorReply | undefined;
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
    for (const name of Object.keys(this.#local) as (keyof VectorMemory)[])
      this.#local[name].set(this.#shared[name]);
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
    for (const worker of this.#workers) void worker.terminate();
    this.#reject(error);
  }
}

/** The options that make the same environment again. */
function remakeOptions(spec: EnvSpec): AnyMakeOptions {
  return { ...spec.options, maxEpisodeSteps: spec.maxEpisodeSteps };
}

/** The thread's program. */
export const workerEntry = (): URL => threadEntry(import.meta.url, 'thread');
