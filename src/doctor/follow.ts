/** Looks at live runs again and again, and tells what changed. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ExamineOptions, type Examiner, examine, search } from './doctor.ts';
import { signature } from './readers/find.ts';
import { type News, newsOf } from './report/news.ts';
import { isRead, type Outcome, unreadable } from './report/run-report.ts';

/** How a log that grows is followed. */
export interface FollowOptions extends ExamineOptions {
  /** Between two looks. A run that takes long to read is looked at less often. */
  readonly intervalMs: number;
  readonly signal: AbortSignal;
}

/** What is told of a log that grows. */
export interface FollowEvent {
  readonly path: string;
  readonly outcome: Outcome;
  /** Empty when only the length of the run changed. */
  readonly news: readonly News[];
}

interface Seen {
  readonly path: string;
  readonly signature: string;
  readonly outcome: Outcome;
  /** What was told of it once and is not told again. */
  readonly said: Set<string>;
}

/**
 * Every look at something that changed, until `signal` is aborted. Runs may appear, grow, be cut short, be replaced and
 * vanish; none of it ends the following.
 */
export async function* follow(
  paths: readonly string[],
  options: FollowOptions,
  examiner: Examiner = { search, examine },
): AsyncGenerator<FollowEvent> {
  const { signal, intervalMs } = options;
  const runs = new Map<string, Seen>();
  let failed = new Map<string, Outcome>();
  while (!signal.aborted) {
    const started = performance.now();
    try {
      const found = await examiner.search(paths, options);
      const here = new Set<string>();
      for (const candidate of found.candidates) {
        const place = resolve(candidate.path);
        here.add(place);
        const before = runs.get(place);
        const now = signature(candidate);
        if (before?.signature === now) continue;
        const outcome = await examiner.examine(candidate, options);
        const said = before?.said ?? new Set<string>();
        runs.set(place, { path: candidate.path, signature: now, outcome, said });
        yield { path: candidate.path, outcome, news: newsOf(before?.outcome, outcome, said) };
      }
      for (const [place, { path, outcome: before, said }] of runs) {
        if (here.has(place) || !isRead(before)) continue;
        const outcome = unreadable(path, 'its log is gone; it is looked for again');
        runs.set(place, { path, signature: '', outcome, said });
        yield { path, outcome, news: newsOf(before, outcome) };
      }
      const failures = new Map(found.failures.map(failure => [failure.path, failure]));
      for (const [path, outcome] of failures) {
        // That a run is gone has been said.
        const known = failed.get(path) ?? runs.get(resolve(path))?.outcome;
        yield { path, outcome, news: newsOf(known, outcome) };
      }
      failed = failures;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    const spent = performance.now() - started;
    await sleep(Math.max(intervalMs, 2 * spent), undefined, { signal }).catch(() => undefined);
  }
}
