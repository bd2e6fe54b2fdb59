/** Starts the server in a thread of its own. Training must not wait for it, nor fail because of it. */
import { Worker } from 'node:worker_threads';
import { threadEntry } from '../base/thread-entry.ts';
import type { ServeOptions } from './serve.ts';

export interface PageThreadData {
  readonly options: Omit<ServeOptions, 'onProblem'>;
}

export type PageMessage =
  | { readonly type: 'ready'; readonly url: string; readonly note: string | undefined }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'problem'; readonly sentence: string }
  | { readonly type: 'closed' };

export interface PageThread {
  readonly url: string;
  readonly note: string | undefined;
  /** When it is there no more, for whatever reason. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** How much it holds beside training: some 150 megabytes of series. */
const cellsBesideTraining = 2 ** 24;
const closeMs = 2000;

export function startPageThread(options: ServeOptions): Promise<PageThread> {
  const { onProblem, ...rest } = options;
  const data: PageThreadData = { options: { maxCells: cellsBesideTraining, ...rest } };
  const worker = new Worker(threadEntry(import.meta.url, 'thread'), {
    workerData: data,
    name: 'keel page',
    execArgv: [],
  });
  // It keeps no process: who wants it to stay waits.
  worker.unref();
  const ended = new Promise<void>(done => worker.once('exit', () => done()));
  return new Promise((resolve, reject) => {
    let closed: () => void = () => {};
    worker.on('message', (message: PageMessage) => {
      switch (message.type) {
        case 'ready':
          resolve({
            url: message.url,
            note: message.note,
            ended,
            close: () =>
              new Promise<void>(done => {
                const late = setTimeout(() => closed(), closeMs);
                closed = () => {
                  clearTimeout(late);
                  void worker.terminate().then(() => done());
                };
                worker.postMessage('close');
              }),
          });
          return;
        case 'failed':
          reject(new Error(message.message));
          return;
        case 'problem':
          onProblem?.(message.sentence);
          return;
        case 'closed':
          closed();
          return;
        default:
          message satisfies never;
      }
    });
    worker.on('error', error => {
      reject(error);
      onProblem?.(`the page's thread ended: ${error.message}`);
    });
    worker.on('exit', () => reject(new Error("the page's thread ended")));
  });
}
