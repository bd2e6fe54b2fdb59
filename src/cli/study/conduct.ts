/** Conducting a study under a terminal's eyes: progress, Ctrl-C, where it runs, what came of it. */
import { hostname } from 'node:os';
import { counted, duration, number } from '../../base/numbers.ts';
import { fit } from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { VERSION } from '../../base/version.ts';
import type { RunOutcome, Trial } from '../../studies/schema.ts';
import type { OpenStudy } from '../../studies/store.ts';
import { studyPaths } from '../../studies/store.ts';
import { writeWorkers } from '../../studies/workers.ts';
import type { WorkersView } from '../../studies/workers-view.ts';
import type { Place } from '../../sweep/place.ts';
import { openHerePlace } from '../../sweep/places/here.ts';
import { redisAddress, shownAddress } from '../../sweep/redis/address.ts';
import { conductStudy, type SweepResult } from '../../sweep/sweep.ts';
import type { Context } from '../context.ts';
import { ExitWith } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { paramsText, printNext, printStudy, verdictText } from './show.ts';

export interface ConductFlags {
  readonly jobs?: number | undefined;
  readonly queue?: string | undefined;
  readonly confirm?: number | undefined;
  readonly json?: boolean | undefined;
}

/** Searches until it is done or somebody stops it. */
export async function conductHere(
  context: Context,
  opened: OpenStudy,
  flags: ConductFlags,
): Promise<SweepResult> {
  const { dir, study } = opened;
  const { json = false } = flags;
  const controller = new AbortController();
  const stop = (): void => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, stop);
    context.note('stopping: runs are saved; again to quit at once');
    controller.abort(new ExitWith(exitCodes.interrupted));
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, stop);
  const startedAt = performance.now();
  const watched = watch(dir);
  let place: Place | undefined;
  try {
    place = await placeOf(opened, flags, watched, text => context.note(text));
    if (!json)
      context.print(
        `${context.paint(study.name, 'bold')}: ${study.space.length === 0 ? 'one trial' : `${study.method}, at most ${counted(study.trials, 'trial')}`} of ${study.seeds.length === 1 ? 'one seed' : `${study.seeds.length} seeds`}, ${flags.queue === undefined ? `${place.slots} at once` : 'on a queue'}`,
      );
    watched.look(place);
    if (place.view?.().workers.every(({ version }) => version !== VERSION))
      context.note(
        `no worker of Keel ${VERSION} takes jobs there yet: start some with ${typed('worker', '--queue', shownAddress(redisAddress(flags.queue!)))}`,
      );
    const live = liveLine(context, json);
    const result = await conductStudy(dir, study, {
      place,
      confirm: flags.confirm,
      signal: controller.signal,
      onOutcome(trial, outcome) {
        watched.ended(outcome);
        if (json) context.json({ kind: 'outcome', trial: trial.number, ...outcome });
        else live.outcome(trial, outcome, (performance.now() - startedAt) / 1000);
      },
      onTrial(trial) {
        if (json) context.json({ kind: 'trial', ...trial });
        else if (trial.state !== 'running') live.trial(trial);
      },
    }).finally(() => live.close());
    if (json) context.json({ kind: 'end', status: result.status, summary: result.summary });
    else {
      context.print();
      printStudy(context, opened, result.trials);
      printNext(context, opened, {
        finished: result.status === 'finished',
        hasWinner: result.summary.winner !== null,
        queue: flags.queue === undefined ? undefined : shownAddress(redisAddress(flags.queue)),
      });
    }
    return result;
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, stop);
    await place?.close();
    watched.close();
  }
}

async function placeOf(
  { dir, study }: OpenStudy,
  flags: ConductFlags,
  watched: Watched,
  onNote: (text: string) => void,
): Promise<Place> {
  const { runs: root } = studyPaths(dir);
  const events = { onStarted: watched.started, onRetried: watched.retried };
  if (flags.queue !== undefined) {
    const { openQueuePlace } = await import('../../sweep/places/queue.ts');
    return openQueuePlace(flags.queue, { study: study.name, runs: root, onNote, ...events });
  }
  const files = study.subject.sha256 === null ? [] : [study.subject.reference];
  return openHerePlace({ root, jobs: flags.jobs, files, ...events });
}

type Watched = ReturnType<typeof watch>;

/** Between two writings of who does what, for the page. */
const WATCH_MS = 2000;
const MOST_FAILURES = 20;

/** Keeps `workers.json` beside the journal up to date: who does what now. */
function watch(dir: string) {
  const doing = new Map<string, { worker: string; since: number }>();
  const failures: { run: string; why: string; at: number }[] = [];
  let changed = true;
  let place: Place | undefined;
  /** What a queue knows itself; of processes here, what they were heard to begin. */
  const view = (): WorkersView => {
    const known = place?.view?.();
    if (known !== undefined) return { ...known, failures };
    const names = [...new Set([...doing.values()].map(({ worker }) => worker))];
    return {
      workers: names.map(name => ({
        name,
        host: name.includes(':') ? name.slice(0, name.lastIndexOf(':')) : hostname(),
        version: VERSION,
        doing: [...doing].filter(([, { worker }]) => worker === name).map(([run]) => run),
        since: Math.min(
          ...[...doing.values()].filter(({ worker }) => worker === name).map(({ since }) => since),
        ),
      })),
      queue: { waiting: 0, active: doing.size, delayed: 0, failed: 0 },
      failures,
    };
  };
  const write = (): void => {
    if (!changed && place?.view === undefined) return;
    changed = false;
    try {
      writeWorkers(dir, view());
    } catch {
      // It is to be looked at; the study does not depend on it.
    }
  };
  const timer = setInterval(write, WATCH_MS);
  timer.unref();
  return {
    look: (at: Place): void => {
      place = at;
    },
    started: ({ run }: { readonly run: string }, worker: string): void => {
      doing.set(run, { worker, since: Date.now() });
      changed = true;
    },
    retried: ({ run }: { readonly run: string }, why: string): void => {
      failures.unshift({ run, why: why.slice(0, 300), at: Date.now() });
      failures.splice(MOST_FAILURES);
      doing.delete(run);
      changed = true;
    },
    ended: ({ run, problem }: RunOutcome): void => {
      doing.delete(run);
      if (problem !== null) failures.unshift({ run, why: problem.slice(0, 300), at: Date.now() });
      failures.splice(MOST_FAILURES);
      changed = true;
    },
    close(): void {
      clearInterval(timer);
      place = undefined;
      doing.clear();
      changed = true;
      write();
    },
  };
}

/** A line for each trial that is over, and below them one that says how far all of it is. */
function liveLine({ print, paint, columns, isTerminal }: Context, silent: boolean) {
  const isLive = isTerminal && !silent && process.env.TERM !== 'dumb';
  // One that is trained in parts is one run.
  const runs = new Set<string>();
  const draw = (text: string): void => {
    if (isLive) process.stdout.write(`\r\u001b[K${fit(text, columns - 1)}`);
  };
  const clear = (): void => {
    if (isLive) process.stdout.write('\r\u001b[K');
  };
  return {
    outcome(trial: Trial, { run, seed, value, status }: RunOutcome, seconds: number): void {
      runs.add(run);
      const what = status === 'failed' ? 'failed' : value === null ? 'no value yet' : number(value);
      draw(
        `${counted(runs.size, 'run')}, ${duration(seconds)}: trial ${trial.number}, seed ${seed}: ${what}`,
      );
    },
    trial(trial: Trial): void {
      clear();
      const verdict = verdictText(trial);
      const value = trial.value === null ? trial.state : number(trial.value);
      const problem = trial.outcomes.find(one => one.problem !== null)?.problem ?? null;
      const notes = trial.state === 'failed' && problem !== null ? [problem] : trial.violations;
      const pruned = trial.state === 'pruned' ? ' (pruned)' : '';
      const name =
        trial.purpose === 'search' ? `trial ${trial.number}` : trial.purpose.replace('confirm-', '');
      const parts = [`${paint(value, 'bold')}${pruned}`, paramsText(trial.params), verdict];
      print(
        `${name}: ${parts.filter(part => part !== '').join(', ')}${notes.map(note => `; ${note}`).join('')}`,
      );
    },
    close: clear,
  };
}
