/** Asks the doctor's thread: a log that hangs or eats memory ends its thread, and the others get a new one. */
import { statSync } from 'node:fs';
import { JobError, type JobOptions, jobThread } from '../../base/job-thread.ts';
import { threadEntry } from '../../base/thread-entry.ts';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import { limitFor } from '../../doctor/thread-examiner.ts';
import type { FindAnswer, ForeignLog, Job, JudgedRun, Judgement, ReportedRun } from './jobs.ts';
import { buffersOf } from './judged-run.ts';

/** The doctor as the server asks it. What cannot be answered is a {@link JobError}, whose message is a sentence. */
export interface Doctor {
  find(paths: readonly string[]): Promise<FindAnswer>;
  read(candidate: Candidate): Promise<ForeignLog>;
  judge(run: JudgedRun): Promise<Judgement>;
  report(runs: readonly ReportedRun[], whole: boolean): Promise<string>;
  /** Ends the thread at once, whatever it does. */
  close(): Promise<void>;
}

/** `limitMs` is what a small log may take; default 20,000. */
export function startDoctor({ limitMs }: { readonly limitMs?: number | undefined } = {}): Doctor {
  const thread = jobThread(threadEntry(import.meta.url, 'thread'), 'keel doctor');
  const limit = (files: readonly string[]): number => limitFor(files, limitMs);
  const ask = <T>(job: Job, options: JobOptions): Promise<T> => thread.ask<T>(job, options);
  /** Files at which a search hung, as they were then: they are opened again when they have changed. */
  const hung = new Map<string, number>();

  async function find(paths: readonly string[]): Promise<FindAnswer> {
    const leaveOut = [...hung].filter(([path, time]) => changedAt(path) === time).map(([path]) => path);
    try {
      return await ask<FindAnswer>({ type: 'find', paths, leaveOut }, { limitMs: limit([]) });
    } catch (error) {
      // The next search goes on without it.
      if (error instanceof JobError && error.isStopped && error.at !== undefined) {
        hung.set(error.at, changedAt(error.at));
        throw new JobError(`${error.at}: ${error.message}`);
      }
      throw error;
    }
  }

  return {
    find,
    read: candidate => ask({ type: 'read', candidate }, { limitMs: limit(candidate.files) }),
    judge: run => ask({ type: 'judge', run }, { limitMs: limit([]), transfer: buffersOf(run) }),
    report: (runs, whole) =>
      ask({ type: 'report', runs, whole }, { limitMs: limit(runs.map(({ path }) => path)) }),
    close: () => thread.close(),
  };
}

const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
