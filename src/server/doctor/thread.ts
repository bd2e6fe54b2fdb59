/** The doctor's thread: one job after the other, so that long logs never hold up a request. */
import { parentPort } from 'node:worker_threads';
import { KeelError } from '../../base/errors.ts';
import type { Answer, Job } from './jobs.ts';
import { work } from './work.ts';

const port = parentPort!;
let queue = Promise.resolve();

port.on('message', ({ id, job }: { id: number; job: Job }) => {
  queue = queue.then(async () => {
    let answer: Answer;
    try {
      answer = { id, ok: true, value: await work(job) };
    } catch (error) {
      const { message } = error instanceof Error ? error : { message: String(error) };
      const known = error instanceof KeelError;
      answer = { id, ok: false, message: known ? message : `${message} (this is a fault in Keel)` };
    }
    port.postMessage(answer);
  });
});
