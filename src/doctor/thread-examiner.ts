/** Finds and examines runs in a thread of their own: a log that hangs or eats memory is left out, and the others are judged. */
import { statSync } from 'node:fs';
import { JobError, type JobOptions, type JobThread, jobThread } from '../base/job-thread.ts';
import { threadEntry } from '../base/thread-entry.ts';
import type { ExamineOptions, Examiner, Search } from './doctor.ts';
import type { Candidate } from './readers/candidate.ts';
import { type Outcome, type Unreadable, unreadable } from './report/run-report.ts';
import type { ExamineJob } from './thread.ts';

/** What a log may take to be read and judged. */
const LIMIT_MS = 20_000;
/** Large ones may take longer, on slow disks too: a second for so much more. */
const BYTES_A_SECOND = 4 * 2 ** 20;
/** Files at which a search may hang before it is given up. */
const MOST_LEFT_OUT = 10;

/** What reading files may take in milliseconds, by their size. */
export function limitFor(files: readonly string[], leastMs: number = LIMIT_MS): number {
  const bytes = files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
  return leastMs + (1000 * bytes) / BYTES_A_SECOND;
}

/** An examiner in a thread; `limitMs` is what a small log may take. `thread` is another than the process's one, for tests. */
export function threadExaminer(limitMs: number = LIMIT_MS, thread: JobThread = sharedThread()): Examiner {
  const ask = <T>(job: ExamineJob, options: JobOptions): Promise<T> => thread.ask<T>(job, options);

  async function search(paths: readonly string[], options: ExamineOptions = {}): Promise<Search> {
    const { limit, onProgress, signal } = options;
    const left: Unreadable[] = [];
    for (;;) {
      const leaveOut = left.map(({ path }) => path);
      const job: ExamineJob = {
        type: 'search',
        paths: paths.filter(path => !leaveOut.includes(path)),
        limit,
        leaveOut,
      };
      let opened = 0;
      const onAt = (): void => onProgress?.({ phase: 'looking', done: ++opened, total: 0 });
      try {
        const found = await ask<Search>(job, { limitMs, onAt, signal });
        return { ...found, failures: [...left, ...found.failures] };
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof JobError && error.isStopped) || error.at === undefined) throw error;
        const failure = unreadable(error.at, error.message);
        left.push(paths.includes(error.at) ? { ...failure, given: true } : failure);
        if (left.length > MOST_LEFT_OUT) throw error;
      }
    }
  }

  async function examine(candidate: Candidate, options: ExamineOptions = {}): Promise<Outcome> {
    const { map, trainer, whole, signal } = options;
    try {
      const job: ExamineJob = { type: 'examine', candidate, map, trainer, whole };
      return await ask<Outcome>(job, { limitMs: limitFor(candidate.files, limitMs), signal });
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof JobError)) throw error;
      return unreadable(candidate.path, error.message);
    }
  }

  return { search, examine };
}

let shared: JobThread | undefined;

/** One for all of a process: to start it takes as long as to read a small log. */
function sharedThread(): JobThread {
  shared ??= jobThread(threadEntry(import.meta.url, 'thread'), 'keel doctor');
  return shared;
}
