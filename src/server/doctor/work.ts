/** The work of the doctor's thread. */
import { basename } from 'node:path';
import { RunError } from '../../base/errors.ts';
import { objectiveOf } from '../../doctor/canonical.ts';
import { contractOfRun, isBanded } from '../../doctor/contract.ts';
import { toCanonical } from '../../doctor/dialects/translate.ts';
import { examine, judged, understand } from '../../doctor/doctor.ts';
import type { RawRun } from '../../doctor/raw-run.ts';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import { ReadError } from '../../doctor/readers/errors.ts';
import { findRuns } from '../../doctor/readers/find.ts';
import { RunBuilder } from '../../doctor/readers/run-builder.ts';
import { addSaid } from '../../doctor/readers/said.ts';
import { renderHtml } from '../../doctor/report/html.ts';
import { isUnreadable, type Outcome } from '../../doctor/report/run-report.ts';
import type { Series } from '../../doctor/series.ts';
import { renderReport } from '../../report/page.ts';
import { type Setting, settingOf } from '../runs/flatten.ts';
import type {
  FindAnswer,
  ForeignLog,
  ForeignSeries,
  Job,
  JudgedRun,
  Judgement,
  ReportedRun,
} from './jobs.ts';

/** Does a job; `say` tells which file a search opens. */
export async function work(job: Job, say: (path: string) => void): Promise<unknown> {
  switch (job.type) {
    case 'find':
      return find(job.paths, job.leaveOut, say);
    case 'read':
      return readForeign(job.candidate);
    case 'judge':
      return judge(job.run);
    case 'report':
      return report(job.runs, job.whole);
    default:
      return job satisfies never;
  }
}

async function find(
  paths: readonly string[],
  leaveOut: readonly string[],
  onOpen: (path: string) => void,
): Promise<FindAnswer> {
  const candidates: Candidate[] = [];
  const notes: string[] = [];
  for (const path of paths) {
    try {
      const found = await findRuns(path, { leaveOut, onOpen });
      candidates.push(...found.candidates);
      notes.push(...found.notes);
    } catch (error) {
      // Nothing there yet: a log may come.
      if (!(error instanceof ReadError)) throw error;
      notes.push(error.message);
    }
  }
  return { candidates, notes };
}

/** Judges, or says why it is too early. */
function judgementOf(run: Parameters<typeof judged>[0]): Judgement {
  try {
    return { diagnosis: judged(run), reason: null };
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return { diagnosis: null, reason: error.why };
  }
}

function judge(run: JudgedRun): Judgement {
  const builder = new RunBuilder(run.path, 'keel', 'row');
  addSaid(builder, run);
  const raw: RawRun = {
    ...builder.finish(),
    series: new Map(run.series),
    restarts: run.restarts,
    unfinished: run.unfinished,
  };
  return judgementOf(toCanonical(raw, { trainer: 'keel' }));
}

async function readForeign(candidate: Candidate): Promise<ForeignLog> {
  const { raw, run } = await understand(candidate);
  const series: ForeignSeries[] = [];
  for (const { id, theirs, series: points, kl } of run.series.values()) {
    const banded = id === 'kl/step' && isBanded(kl);
    series.push({ id, theirs, series: plain(points), banded });
  }
  const place = placeOf(raw, run.series.values());
  for (const name of run.unknown) {
    const points = raw.series.get(name);
    if (points === undefined || series.length >= 2000) continue;
    series.push({
      id: name,
      theirs: name,
      series: plain({ ...points, x: points.x.map(place) }),
      banded: false,
    });
  }
  const config: Record<string, Setting> = {};
  for (const [name, value] of raw.config) config[name.replaceAll('/', '.')] = settingOf(value);
  const { diagnosis, reason } = judgementOf(run);
  return {
    trainer: run.trainer,
    unit: run.unit,
    series,
    config,
    notes: run.notes.map(note => pathless(note, candidate)),
    damage: (raw.damage ?? []).map(note => pathless(note, candidate)),
    task: run.config.task ?? null,
    totalSteps: run.config.totalSteps ?? null,
    klContract: contractOfRun(run),
    learningRate: run.config.learningRate ?? null,
    objective: objectiveOf(run)?.id ?? null,
    restarts: run.restarts.slice(0, 1000),
    error: run.error ?? null,
    ...(diagnosis === null
      ? { diagnosis, reason }
      : {
          diagnosis: { ...diagnosis, notes: diagnosis.notes.map(note => pathless(note, candidate)) },
          reason,
        }),
  };
}

/** A sentence about a file without the way to it. */
function pathless(note: string, { path, files }: Candidate): string {
  let text = note;
  for (const file of [...files, path]) text = text.replaceAll(file, basename(file));
  return text;
}

/** Where a position of the log is on the run's axis, told from the longest series that is on both. */
function placeOf(
  raw: RawRun,
  moved: Iterable<{ readonly theirs: string; readonly series: Series }>,
): (x: number) => number {
  let from: Series | undefined;
  let to: Series | undefined;
  for (const { theirs, series } of moved) {
    const before = raw.series.get(theirs);
    if (before === undefined || before.length !== series.length || series.length <= (to?.length ?? 0))
      continue;
    from = before;
    to = series;
  }
  if (from === undefined || to === undefined) return x => x;
  const [xs, places] = [from.x, to.x];
  return x => {
    let [low, high] = [0, xs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return places[Math.min(low, places.length - 1)];
  };
}

/** Arrays of their own: a view would send the whole memory behind it. */
function plain({ length, count, x, values, min, max, broken, wallTime }: Series): Series {
  const own = min !== values;
  const copy = values.slice();
  return {
    length,
    count,
    x: x.slice(),
    values: copy,
    min: own ? min.slice() : copy,
    max: own ? max.slice() : copy,
    broken: broken.slice(),
    wallTime: wallTime.slice(),
  };
}

async function report(runs: readonly ReportedRun[], whole: boolean): Promise<string> {
  const outcomes: Outcome[] = [];
  for (const { path, shown } of runs) {
    const { candidates } = await findRuns(path);
    const candidate = candidates.find(found => found.path === path) ?? candidates[0];
    if (candidate === undefined) throw new RunError(`there is no log of ${shown} any more`);
    const outcome = await examine(candidate, { whole });
    outcomes.push(
      isUnreadable(outcome)
        ? {
            path: shown,
            error: outcome.error.replaceAll(path, shown),
            why: outcome.why.replaceAll(path, shown),
          }
        : { ...outcome, diagnosis: { ...outcome.diagnosis, path: shown } },
    );
  }
  const madeAt = new Date().toISOString();
  return whole ? renderReport(outcomes, madeAt.slice(0, 10)) : renderHtml(outcomes, { madeAt });
}
