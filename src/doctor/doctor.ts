/**
 * The doctor from end to end, for the command, the page and the library alike: find runs, read one, translate it into the
 * registry's names, judge it, and make the report, or say why it could not be read.
 */
import { type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { KeelError } from '../base/errors.ts';
import type { CanonicalRun } from './canonical.ts';
import { diagnose } from './diagnose.ts';
import { type CanonicalOptions, toCanonical } from './dialects/translate.ts';
import type { Diagnosis } from './findings.ts';
import type { RawRun } from './raw-run.ts';
import type { Candidate } from './readers/candidate.ts';
import { ReadError } from './readers/errors.ts';
import { type FindOptions, findRuns } from './readers/find.ts';
import { readRun } from './readers/read.ts';
import { runReport } from './report/report-of-run.ts';
import { type Outcome, type Unreadable, unreadable } from './report/run-report.ts';
import { wholeReport } from './report/whole-log.ts';

/** How logs are examined. */
export interface ExamineOptions extends CanonicalOptions {
  /** Runs that are looked at, at most. */
  readonly limit?: number;
  /** What is looked for and read at this moment, for a progress bar. */
  readonly onProgress?: (progress: ExamineProgress) => void;
  readonly signal?: AbortSignal;
  /** Reports with every series, the settings and the events, not with what the findings cite alone. */
  readonly whole?: boolean;
}

/** Who finds and examines runs: these functions, or a thread that can be stopped (`thread-examiner.ts`). */
export interface Examiner {
  search(paths: readonly string[], options?: ExamineOptions): Promise<Search>;
  examine(candidate: Candidate, options?: ExamineOptions): Promise<Outcome>;
}

/** How far an examination is. */
export interface ExamineProgress {
  readonly phase: 'looking' | 'reading';
  /** Entries looked at, or runs read. */
  readonly done: number;
  /** Runs in all; 0 while they are looked for. */
  readonly total: number;
}

/** What was found under some paths. */
export interface Search {
  readonly candidates: readonly Candidate[];
  /** Paths without a run. */
  readonly failures: readonly Unreadable[];
  /** What the search left out. */
  readonly notes: readonly string[];
}

const DEFAULT_LIMIT = 10_000;

/** A path without a run is a failure, not an exception: the others are looked at all the same. */
export async function search(
  paths: readonly string[],
  options: ExamineOptions & Pick<FindOptions, 'onOpen' | 'leaveOut'> = {},
): Promise<Search> {
  const { limit = DEFAULT_LIMIT, onProgress, onOpen, leaveOut, signal } = options;
  const candidates = new Map<string, Candidate>();
  const failures: Unreadable[] = [];
  const notes: string[] = [];
  for (const path of paths) {
    try {
      refuseSpecial(path);
      const found = await findRuns(path, {
        onProgress: done => onProgress?.({ phase: 'looking', done, total: 0 }),
        onOpen,
        leaveOut,
        ...(signal === undefined ? {} : { signal }),
      });
      // One run may lie under two of the paths.
      for (const candidate of found.candidates) {
        const place = resolve(candidate.path);
        if (!candidates.has(place)) candidates.set(place, candidate);
      }
      notes.push(...found.notes);
    } catch (error) {
      signal?.throwIfAborted();
      failures.push({ ...failureOf(path, error), given: true });
    }
  }
  const all = [...candidates.values()];
  if (all.length > limit)
    notes.push(
      `${all.length} runs were found, and the first ${limit} are looked at: --limit ${all.length} looks at all`,
    );
  return { candidates: all.slice(0, limit), failures, notes };
}

/** To open a pipe is to wait for whoever writes to it, perhaps for ever. */
function refuseSpecial(path: string): void {
  let stat: Stats;
  try {
    stat = statSync(path);
  } catch {
    // The search says why.
    return;
  }
  if (stat.isFile() || stat.isDirectory()) return;
  const what = stat.isFIFO() ? 'a pipe' : stat.isSocket() ? 'a socket' : 'a device';
  throw new ReadError(
    path,
    `looked for a log file or a directory, and found ${what}: write it to a file first`,
  );
}

/** Rows without which nothing can be said: not even whether something goes up or down. */
const FEWEST_ROWS = 3;
/** Rows below which silence says little; a fault may be plain before. */
const FEW_ROWS = 6;

/** Reads one run and translates it: as its files tell it, and in the registry's names. */
export async function understand(
  candidate: Candidate,
  { signal, map, trainer }: ExamineOptions = {},
): Promise<{ readonly raw: RawRun; readonly run: CanonicalRun }> {
  const raw = await readRun(candidate, signal === undefined ? {} : { signal });
  const options = {
    ...(map === undefined ? {} : { map }),
    ...(trainer === undefined ? {} : { trainer }),
  };
  return { raw, run: toCanonical(raw, options) };
}

/** Reads one run and says what is wrong with it. Never throws but for an aborted `signal`. */
export async function examine(candidate: Candidate, options: ExamineOptions = {}): Promise<Outcome> {
  const { signal } = options;
  try {
    const { raw, run } = await understand(candidate, options);
    const diagnosis = judged(run);
    return options.whole ? wholeReport(diagnosis, run, raw) : runReport(diagnosis, run);
  } catch (error) {
    signal?.throwIfAborted();
    const failure = failureOf(candidate.path, error);
    return error instanceof ReadError && error.isNoLog ? { ...failure, isNoLog: true } : failure;
  }
}

/** A diagnosis, or a {@link ReadError} for what is too little to judge. */
export function judged(run: CanonicalRun): Diagnosis {
  const rows = [...run.series.values()].reduce((most, { series }) => Math.max(most, series.count), 0);
  if (run.series.size === 0) {
    const names = run.unknown.slice(0, 5).join(', ');
    throw new ReadError(
      run.path,
      `looked for metrics that are known (KL, returns, losses, entropy …), and found none${
        names === ''
          ? ''
          : ` in ${names}${run.unknown.length > 5 ? ` and ${run.unknown.length - 5} more names` : ''}`
      }: say which is which, as in --map ${run.unknown[0] ?? 'theirs'}=episode/return`,
      { isNoLog: true },
    );
  }
  if (rows < FEWEST_ROWS) {
    throw new ReadError(
      run.path,
      `looked for at least ${FEWEST_ROWS} rows, without which there is no telling how a run goes, and found ${rows}: let it log more, or train for longer`,
    );
  }
  const diagnosis = diagnose(run);
  if (rows >= FEW_ROWS || diagnosis.verdict === 'watch' || diagnosis.verdict === 'sick') return diagnosis;
  return {
    ...diagnosis,
    confidence: Math.min(diagnosis.confidence, 0.3),
    notes: [...diagnosis.notes, `only ${rows} rows: most faults show later, so look again`],
  };
}

function failureOf(path: string, error: unknown): Unreadable {
  if (error instanceof ReadError) {
    if (error.path === path) return unreadable(path, error.why);
    // The sentence names a file below the path: that says more.
    if (error.path.startsWith(path)) return { path, error: error.message, why: error.message };
  }
  // Their messages are sentences for users.
  if (error instanceof KeelError) return unreadable(path, error.message);
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  const cause = error instanceof Error && process.env.KEEL_DEBUG === '1' ? `\n${error.stack}` : '';
  return unreadable(path, `${name}: ${message} (this is a fault in Keel: KEEL_DEBUG=1 shows where)${cause}`);
}
