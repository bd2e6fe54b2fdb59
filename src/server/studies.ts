/**
 * All studies under the roots, as they come, grow and go. What a study is on the disk is its source's business; here it is
 * looked at every second, told to everyone when it changed, and made into what the page shows.
 */
import { KeelError } from '../base/errors.ts';
import { isRunId } from '../runs/layout.ts';
import type { Study, Trial, TrialState } from '../studies/schema.ts';
import { type Confirmation, confirmationOf, winnerOf } from '../studies/summary.ts';
import type { WorkersView } from '../studies/workers-view.ts';
import type { StudyAnswer, StudyImportance, StudyList, StudyOverview, StudyRun, StudyTrial } from './api.ts';
import type { Hub } from './stream.ts';

/** A study that was found; none of its files has been read for this. */
export interface FoundStudy {
  /** What it is called in requests. */
  readonly id: string;
  readonly name: string;
  /** The root that it is under, as the user named it. */
  readonly root: string;
  /** Another one when the study or its journal has changed. */
  readonly version: string;
  /** When its journal was last written to. */
  readonly updatedAt: number;
  /** When its conductor last said who works on it. */
  readonly workersAt: number | null;
}

/** Where studies come from. */
export interface StudySource {
  /** Those that are there now; asked every second. */
  list(): readonly FoundStudy[];
  /** What is in one; undefined where it is gone, an error of ours where it cannot be read. */
  open(id: string): { readonly study: Study; readonly trials: readonly Trial[] } | undefined;
  workers(id: string): WorkersView | undefined;
  importance(study: Study, trials: readonly Trial[]): StudyImportance;
  /** The id under which one of its runs is among the runs. */
  runId(id: string, run: string): string;
  /** What the run of a trial and a seed is called before it has an outcome. */
  runName(study: Study, trial: Trial, seed: number): string;
}

export interface StudyIndex {
  start(): void;
  list(): StudyList;
  /** A study; without its trials where they are still those of the version that the asker has. */
  get(id: string, version: string | undefined): StudyAnswer | undefined;
  close(): void;
}

const pollMs = 1000;
/** Nothing was written for so long: nobody works on it. A conductor says every few seconds who does. */
const quietMs = 60_000;
const mostWords = 500;
/** How many studies are kept open at once: those that are shown, and those that grow. */
const mostOpen = 8;

interface Opened {
  readonly version: string;
  readonly study: Study;
  readonly trials: readonly Trial[];
  importance?: StudyImportance;
  confirmation?: Confirmation | null;
}

export function createStudyIndex(options: {
  readonly source: StudySource;
  readonly hub: Hub;
  readonly pollMs?: number | undefined;
  readonly now?: () => number;
}): StudyIndex {
  const { source, hub, now = Date.now } = options;
  const told = new Map<string, StudyOverview>();
  const opened = new Map<string, Opened>();
  let timer: NodeJS.Timeout | undefined;

  function open(found: FoundStudy): Opened | undefined {
    const { id, version } = found;
    let known = opened.get(id);
    opened.delete(id);
    if (known?.version !== version) {
      const read = source.open(id);
      if (read === undefined) return undefined;
      known = { version, ...read };
    }
    // The one that was used last is the last to be forgotten.
    opened.set(id, known);
    for (const old of opened.keys()) {
      if (opened.size <= mostOpen) break;
      opened.delete(old);
    }
    return known;
  }

  function overviewOf(found: FoundStudy): StudyOverview | undefined {
    const before = told.get(found.id);
    const { id, name, root, version, updatedAt, workersAt } = found;
    const place = { id, name, root, version, updatedAt, workersAt };
    const quiet = now() - Math.max(updatedAt, workersAt ?? 0) > quietMs;
    if (before?.version === version) {
      const state = before.state === 'running' || before.state === 'quiet' ? liveState(quiet) : before.state;
      return { ...before, ...place, state };
    }
    try {
      const { study, trials } = open(found) ?? {};
      if (study === undefined || trials === undefined) return undefined;
      return { ...place, ...summaryOf(study, trials, quiet) };
    } catch (error) {
      if (!(error instanceof KeelError)) throw error;
      return { ...place, ...unreadable(error.message) };
    }
  }

  function look(): void {
    const found = source.list();
    const changed: StudyOverview[] = [];
    const here = new Set<string>();
    for (const study of found) {
      const overview = overviewOf(study);
      if (overview === undefined) continue;
      here.add(study.id);
      if (JSON.stringify(overview) === JSON.stringify(told.get(study.id))) continue;
      told.set(study.id, overview);
      changed.push(overview);
    }
    const removed = [...told.keys()].filter(id => !here.has(id));
    for (const id of removed) {
      told.delete(id);
      opened.delete(id);
    }
    if (changed.length + removed.length > 0) hub.publish({ type: 'studies', changed, removed });
  }

  function tick(): void {
    const started = performance.now();
    look();
    // What takes long, on a slow disk, is done less often.
    timer = setTimeout(tick, Math.max(options.pollMs ?? pollMs, 5 * (performance.now() - started)));
    timer.unref();
  }

  return {
    start: tick,
    list: () => ({
      studies: [...told.values()].sort((a, b) => (b.startedAt ?? b.updatedAt) - (a.startedAt ?? a.updatedAt)),
    }),
    get(id, version) {
      const overview = told.get(id);
      if (overview === undefined) return undefined;
      const none = { space: [], seeds: [], halving: null, constraints: null, trials: [], importance: null };
      if (overview.state === 'unreadable') return { overview, ...none, confirmation: null, workers: null };
      const it = open(overview);
      if (it === undefined) return undefined;
      const { study, trials } = it;
      const known = version === overview.version;
      if (!known) {
        it.importance ??= source.importance(study, trials);
        it.confirmation ??= confirmationOf(study.objective, trials);
      }
      const { space, seeds, halving, constraints } = study;
      return {
        overview,
        space,
        seeds,
        halving,
        constraints,
        trials: known ? null : trials.map(trial => trialOf(id, study, trial, source)),
        importance: known ? null : (it.importance ?? null),
        confirmation: known ? null : (it.confirmation ?? null),
        workers: source.workers(id) ?? null,
      };
    },
    close: () => clearTimeout(timer),
  };
}

const liveState = (quiet: boolean): 'quiet' | 'running' => (quiet ? 'quiet' : 'running');

const noCounts: Readonly<Record<TrialState, number>> = {
  waiting: 0,
  running: 0,
  complete: 0,
  pruned: 0,
  failed: 0,
};

type Summary = Omit<StudyOverview, 'id' | 'name' | 'root' | 'version' | 'updatedAt' | 'workersAt'>;

function unreadable(problem: string): Summary {
  return {
    state: 'unreadable',
    subject: '',
    method: null,
    objective: null,
    counts: noCounts,
    trials: 0,
    steps: 0,
    budgetSteps: null,
    best: null,
    startedAt: null,
    problem: cut(problem),
  };
}

function summaryOf(study: Study, trials: readonly Trial[], quiet: boolean): Summary {
  const counts = { ...noCounts };
  const searched = trials.filter(({ purpose }) => purpose === 'search');
  for (const { state } of searched) counts[state]++;
  const isOver = ({ state }: Trial): boolean => state !== 'waiting' && state !== 'running';
  // A budget of steps may end a search before its last trial; then nothing is left that waits.
  const steps = searched.reduce((sum, { outcomes }) => outcomes.reduce((s, { step }) => s + step, sum), 0);
  const isDone =
    trials.every(isOver) &&
    (searched.length >= study.trials || (study.budgetSteps !== null && steps >= study.budgetSteps));
  const startedAt = Date.parse(study.createdAt);
  return {
    state: isDone ? 'finished' : liveState(quiet),
    // A file's name without its path: where it is on the disk is nobody's business who is not told otherwise.
    subject: cut(study.subject.reference.split(/[\\/]/).at(-1) ?? ''),
    method: study.method,
    objective: study.objective,
    counts,
    trials: study.trials,
    steps,
    budgetSteps: study.budgetSteps,
    best: bestOf(study, searched),
    startedAt: Number.isFinite(startedAt) ? startedAt : null,
    problem: null,
  };
}

function bestOf({ objective }: Study, trials: readonly Trial[]): StudyOverview['best'] {
  const winner = winnerOf(objective.direction, trials);
  return winner?.value == null ? null : { trial: winner.number, value: winner.value };
}

function trialOf(id: string, study: Study, trial: Trial, source: StudySource): StudyTrial {
  const { outcomes, violations, ...rest } = trial;
  const idOfRun = (run: string): string | null => (isRunId(run) ? source.runId(id, run) : null);
  const done = new Set(outcomes.map(({ seed }) => seed));
  return {
    ...rest,
    coming: trial.seeds
      .filter(seed => !done.has(seed))
      .map(seed => ({ seed, id: idOfRun(source.runName(study, trial, seed)) })),
    violations: violations.slice(0, 20).map(cut),
    runs: outcomes.map(
      (o): StudyRun => ({
        id: idOfRun(o.run),
        run: o.run,
        seed: o.seed,
        status: o.status,
        step: o.step,
        finished: o.finished,
        value: o.value,
        verdict: o.verdict,
        rootCause: o.rootCause,
        klMedian: o.klMedian,
        klLargest: o.klLargest,
        seconds: o.seconds,
        worker: o.worker,
        problem: o.problem === null ? null : cut(o.problem),
      }),
    ),
  };
}

const cut = (text: string): string => text.replace(/\s+/g, ' ').slice(0, mostWords);
