/** Asks the doctor's thread, which is started with the first question and again should it ever die. */
import { Worker } from 'node:worker_threads';
import { KeelError } from '../../base/errors.ts';
import { threadEntry } from '../../base/thread-entry.ts';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import type { Answer, FindAnswer, ForeignLog, Job, JudgedRun, Judgement } from './jobs.ts';
import { buffersOf } from './judged-run.ts';

/** A question that the doctor could not answer; the message is a sentence. */
class DoctorError extends KeelError {
  override name = 'DoctorError';
}

export interface Doctor {
  find(paths: readonly string[]): Promise<FindAnswer>;
  read(candidate: Candidate): Promise<ForeignLog>;
  judge(run: JudgedRun): Promise<Judgement>;
  report(path: string, shown: string): Promise<string>;
  close(): Promise<void>;
}

export function startDoctor(): Doctor {
  let worker: Worker | undefined;
  let next = 0;
  let closed = false;
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();

  function fail(why: string): void {
    worker = undefined;
    for (const { reject } of waiting.values()) reject(new DoctorError(why));
    waiting.clear();
  }

  function thread(): Worker {
    if (worker !== undefined) return worker;
    const made = new Worker(threadEntry(import.meta.url, 'thread'), { name: 'keel doctor', execArgv: [] });
    made.unref();
    made.on('message', (answer: Answer) => {
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (answer.ok) asked?.resolve(answer.value);
      else asked?.reject(new DoctorError(answer.message));
    });
    made.on('error', error => {
      if (worker === made) fail(`the doctor's thread died: ${error.message}`);
    });
    made.on('exit', () => {
      if (worker === made) fail("the doctor's thread ended");
    });
    worker = made;
    return made;
  }

  function ask<T>(job: Job, handOver: ArrayBuffer[] = []): Promise<T> {
    if (closed) return Promise.reject(new DoctorError('the server is closing'));
    const id = next++;
    return new Promise<T>((resolve, reject) => {
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      try {
        thread().postMessage({ id, job }, handOver);
      } catch (error) {
        waiting.delete(id);
        reject(error as Error);
      }
    });
  }

  return {
    find: paths => ask({ type: 'find', paths }),
    read: candidate => ask({ type: 'read', candidate }),
    judge: run => ask({ type: 'judge', run }, buffersOf(run)),
    report: (path, shown) => ask({ type: 'report', path, shown }),
    async close() {
      closed = true;
      const ending = worker;
      fail('the server is closing');
      await ending?.terminate();
    },
  };
}
