/** From paths to reports: every run under them, one after the other. */
import { resolve } from 'node:path';
import type { ExamineOptions, Examiner, Search } from './doctor.ts';
import { isRead, type Outcome, type Unreadable } from './report/run-report.ts';

/** Every run under the paths, one after the other, read in this thread or by `examiner`. Failures of the search come first. */
export async function* examinePaths(
  paths: readonly string[],
  options: ExamineOptions = {},
  examiner?: Examiner,
): AsyncGenerator<Outcome, Search> {
  // Loaded where it is used: a thread that examines has its own.
  const { search, examine } = examiner ?? (await import('./doctor.ts'));
  const found = await search(paths, options);
  yield* found.failures;
  const given = new Set(paths.map(path => resolve(path)));
  const noLogs: Unreadable[] = [];
  let done = 0;
  let read = 0;
  for (const candidate of found.candidates) {
    options.onProgress?.({ phase: 'reading', done: done++, total: found.candidates.length });
    const outcome = await examine(candidate, options);
    if (isRead(outcome)) read++;
    else if (given.has(resolve(candidate.path))) {
      yield { ...outcome, given: true };
      continue;
    } else if (outcome.isNoLog) {
      noLogs.push(outcome);
      continue;
    }
    yield outcome;
  }
  // Tables of other things lie about in any directory: they are worth a line, unless there is nothing else.
  if (read === 0) yield* noLogs;
  else if (noLogs.length > 0) {
    const [first] = noLogs;
    const notes = `${noLogs.length} ${noLogs.length === 1 ? 'file has' : 'files have'} numbers but none that training logs, and ${noLogs.length === 1 ? 'was' : 'were'} passed over: ${first.path}${noLogs.length > 1 ? ' …' : ''}`;
    return { ...found, notes: [...found.notes, notes] };
  }
  return found;
}

/** Every run under one or more paths, each as it is read: a report, or why there is none. */
export async function* diagnosePath(
  paths: string | readonly string[],
  options: ExamineOptions = {},
): AsyncGenerator<Outcome, void> {
  yield* examinePaths(typeof paths === 'string' ? [paths] : paths, options);
}
