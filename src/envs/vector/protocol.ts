/**
 * How a vector's thread and its workers talk. Numbers go through shared memory; what is rare and structured (seeds, states,
 * errors) goes through a message port, posted before the signal and read after it.
 *
 * The vector writes a command, counts the worker's turn up and wakes it; a worker sleeps until its turn changes, works, and
 * counts `PENDING` down; the one that reaches 0 wakes the vector. Where each thread has a core, both look for a moment before
 * they sleep.
 */
import type { MessagePort } from 'node:worker_threads';
import type { AnyMakeOptions } from '../definition.ts';
import type { EnvErrorCode, EnvErrorPlace } from '../errors.ts';
import type { VectorShape } from './arrays.ts';

/** Index of the number of workers that have not finished. */
export const PENDING = 0;
/** Index of the command, the same for all workers. */
export const COMMAND = 1;
/** Index of a flag: some worker has posted an error. */
export const FAILED = 2;
/** Index of a flag: some worker has posted notices. */
export const NOTICED = 3;
const HEADER = 4;
const PER_WORKER = 2;

/** Index of a worker's turn. */
export const turnOf = (worker: number): number => HEADER + PER_WORKER * worker;
/** Index of the environment that a worker has at work, -1 for none. */
export const currentOf = (worker: number): number => HEADER + PER_WORKER * worker + 1;
export const controlLength = (workers: number): number => HEADER + PER_WORKER * workers;

export const commands = { reset: 1, step: 2, state: 3, restore: 4, close: 5 } as const;
export type CommandName = keyof typeof commands;

/** What a worker is started with. */
export interface ThreadData {
  readonly worker: number;
  /** The definition: by id, from this file if it is a user's. */
  readonly id: string;
  readonly file: string | null;
  readonly options: AnyMakeOptions;
  /** Its environments: number `first` to `end - 1`. */
  readonly first: number;
  readonly end: number;
  readonly shape: VectorShape;
  readonly control: SharedArrayBuffer;
  readonly memory: SharedArrayBuffer;
  readonly port: MessagePort;
  /** How long it looks for its next turn before it sleeps; 0 where it has no core of its own. */
  readonly spinMs: number;
}

/** What happened to environments of other processes, as it crosses threads. */
export interface NoticeReply {
  readonly notices: readonly string[];
}

/** An error, as it crosses threads. */
export interface ErrorReply {
  readonly error: {
    readonly code: EnvErrorCode;
    readonly message: string;
    readonly stack: string | undefined;
    readonly place: EnvErrorPlace | undefined;
  };
}
