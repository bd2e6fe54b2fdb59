/**
 * Conducts a study: asks for settings, has their runs done somewhere, writes down what came of them, and says who goes on.
 *
 * The journal is the truth. Whatever is not in it is asked for again: a run that was done already is only looked at, one
 * that was stopped goes on where it was. So a study may be killed at any moment.
 */
import { VERSION } from '../base/version.ts';
import type { JournalWriter, TrialEnd } from '../studies/journal.ts';
import type { Direction, RunOutcome, Study, Trial } from '../studies/schema.ts';
import { sameParams } from '../studies/seeds.ts';
import { appliedParams } from '../studies/space.ts';
import { aggregate } from '../studies/statistics.ts';
import { runIdOf } from '../studies/store.ts';
import { finalist, nextPromotion, type Promotion, rungsOf } from './halving.ts';
import type { Place, RunJob } from './place.ts';
import type { Sampler } from './samplers/sampler.ts';
import { violationsOf } from './violations.ts';

/** The journal as the conductor writes it; what it has written can be read back at once. */
export type StudyLog = Pick<JournalWriter, 'trials' | 'createTrial' | 'setOutcome' | 'setRung' | 'endTrial'>;

export interface ConductOptions {
  readonly study: Study;
  /** Steps of a whole run: they say where rungs are. */
  readonly maxSteps: number;
  readonly log: StudyLog;
  readonly place: Place;
  readonly sampler: Sampler;
  readonly signal?: AbortSignal | undefined;
  readonly onOutcome?: ((trial: Trial, outcome: RunOutcome) => void) | undefined;
  readonly onTrial?: ((trial: Trial) => void) | undefined;
}

/** A part of a trial that is being done: all of its seeds up to so many steps, null for their end. */
interface Part {
  readonly trial: number;
  readonly until: number | null;
  readonly waiting: number[];
  underWay: number;
}

/** Searches until the trials or the steps are used up, nothing is left to try, or somebody stops it. */
export async function conduct(options: ConductOptions): Promise<'finished' | 'stopped'> {
  const { study, log, sampler, maxSteps } = options;
  const { halving, objective } = study;
  /** With what each has violated so far: who has cannot be promoted, and is nothing to search near. */
  const searching = (): Trial[] =>
    log.trials
      .filter(({ purpose }) => purpose === 'search')
      .map(trial =>
        trial.state === 'running' ? { ...trial, violations: violationsOf(study, trial) } : trial,
      );
  /** Where a new trial is looked at first; null for its end. */
  const [first = null] = halving === null ? [] : rungsOf(halving, maxSteps).slice(0, -1);
  // What goes on to a further rung, but has not reached it: the journal knows where trials are, not where they go.
  const promoted = new Set<number>();
  const next = (parts: readonly Part[]): Part | undefined => {
    const all = searching();
    const open = all.find(
      trial =>
        trial.state === 'running' &&
        trial.rungs.length === 0 &&
        !parts.some(part => part.trial === trial.number),
    );
    if (open !== undefined) return partOf(open, first);
    const sentOn = ({ trial: number, until }: Promotion): Part => {
      promoted.add(number);
      const trial = all.find(one => one.number === number)!;
      return partOf(trial, until < maxSteps ? until : null);
    };
    const promotion = halving && nextPromotion(all, halving, maxSteps, objective.direction, promoted);
    if (promotion) return sentOn(promotion);
    const fresh = newTrial(all);
    if (fresh !== undefined) return partOf(fresh, first);
    if (halving === null || parts.length > 0) return undefined;
    const last = finalist(all, halving, maxSteps, objective.direction);
    return last && sentOn(last);
  };
  /** Undefined where trials or steps are used up, or nothing is left to try. */
  const newTrial = (all: readonly Trial[]): Trial | undefined => {
    if (all.length >= study.trials || spent(all) >= (study.budgetSteps ?? Number.POSITIVE_INFINITY))
      return undefined;
    const params = sampler.ask(all.length, all);
    if (params === undefined) return undefined;
    const trial = log.createTrial({ params, seeds: study.seeds });
    options.onTrial?.(trial);
    return trial;
  };
  const settled = (trial: Trial, until: number | null): void => {
    promoted.delete(trial.number);
    const ended = endOf(study, trial);
    if (trial.outcomes.some(({ status }) => status === 'failed') || until === null) {
      log.endTrial(trial.number, ended);
      return;
    }
    log.setRung(trial.number, until, ended.value ?? worst(objective.direction));
  };
  const done = await work(options, next, settled);
  if (!done) return 'stopped';
  for (const trial of searching().filter(({ state }) => state === 'running'))
    log.endTrial(trial.number, { ...endOf(study, trial), state: 'pruned' });
  return 'finished';
}

/** Trains some settings on other seeds than those that searched, whole; gives the trials back, in the same order. */
export async function confirm(
  options: Omit<ConductOptions, 'sampler' | 'maxSteps'>,
  wanted: readonly Wanted[],
): Promise<Trial[] | undefined> {
  const { study, log } = options;
  const numbers = wanted.map(
    one => log.trials.find(trial => isWanted(trial, one))?.number ?? log.createTrial(one).number,
  );
  const begun = new Set<number>();
  const done = await work(
    options,
    () => {
      const trial = log.trials.find(
        ({ number, state }) => numbers.includes(number) && state === 'running' && !begun.has(number),
      );
      if (trial === undefined) return undefined;
      begun.add(trial.number);
      return partOf(trial, null);
    },
    trial => log.endTrial(trial.number, endOf(study, trial)),
  );
  return done ? numbers.map(number => log.trials.find(trial => trial.number === number)!) : undefined;
}

type Wanted = Pick<Trial, 'params' | 'purpose' | 'seeds'>;

const isWanted = (trial: Wanted, wanted: Wanted): boolean =>
  trial.purpose === wanted.purpose &&
  JSON.stringify(trial.seeds) === JSON.stringify(wanted.seeds) &&
  sameParams(trial.params, wanted.params);

/**
 * Keeps the place busy with the runs of parts, in the order in which they were asked for, and settles each part whose runs
 * are all done. False if it was stopped before that.
 */
async function work(
  { study, log, place, signal, onOutcome, onTrial }: Omit<ConductOptions, 'sampler' | 'maxSteps'>,
  next: (parts: readonly Part[]) => Part | undefined,
  settled: (trial: Trial, until: number | null) => void,
): Promise<boolean> {
  const parts: Part[] = [];
  const jobs = new Set<Promise<void>>();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  let failure: unknown;
  const trialOf = ({ trial }: Part): Trial => log.trials.find(({ number }) => number === trial)!;
  const settle = (part: Part): void => {
    if (part.waiting.length > 0 || part.underWay > 0 || !parts.includes(part)) return;
    parts.splice(parts.indexOf(part), 1);
    settled(trialOf(part), part.until);
    onTrial?.(trialOf(part));
  };
  const begin = (part: Part, seed: number): void => {
    part.underWay++;
    const job = jobOf(study, trialOf(part), seed, part.until);
    const doing = place
      .run(job, stop.signal)
      .then(outcome => {
        log.setOutcome(part.trial, outcome);
        onOutcome?.(trialOf(part), outcome);
        // One run that cannot be trained decides over the whole trial: the others would be work for nothing.
        if (outcome.status === 'failed') part.waiting.length = 0;
        part.underWay--;
        settle(part);
      })
      .catch((error: unknown) => {
        part.underWay--;
        if (stop.signal.aborted) return;
        failure = error;
        stop.abort(error);
      })
      .finally(() => jobs.delete(doing));
    jobs.add(doing);
  };
  try {
    while (!stop.signal.aborted) {
      while (jobs.size < place.slots && !stop.signal.aborted) {
        let part = parts.find(({ waiting }) => waiting.length > 0);
        if (part === undefined) {
          part = next(parts);
          if (part === undefined) break;
          parts.push(part);
        }
        const seed = part.waiting.shift();
        if (seed === undefined) settle(part);
        else begin(part, seed);
      }
      if (jobs.size === 0) break;
      await Promise.race(jobs);
    }
    await Promise.all(jobs);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
  if (failure !== undefined) throw failure;
  return !stop.signal.aborted;
}

/** The seeds of a trial that are not there yet. */
function partOf(trial: Trial, until: number | null): Part {
  const waiting = trial.seeds.filter(seed => {
    const outcome = trial.outcomes.find(one => one.seed === seed);
    return outcome === undefined || !isThere(outcome, until);
  });
  const failed = trial.outcomes.some(({ status }) => status === 'failed');
  return { trial: trial.number, until, waiting: failed ? [] : waiting, underWay: 0 };
}

const isThere = ({ status, finished, step }: RunOutcome, until: number | null): boolean =>
  status === 'failed' || finished || (until !== null && step >= until);

/** One run of a trial, up to so many steps. */
export function jobOf(
  study: Study,
  trial: Pick<Trial, 'number' | 'purpose' | 'params' | 'rungs'>,
  seed: number,
  until: number | null,
): RunJob {
  const { config, options } = appliedParams(trial.params);
  return {
    run: runIdOf(study, trial, seed),
    version: VERSION,
    subject: { ...study.subject, options: { ...study.subject.options, ...options } },
    config: { ...study.config, ...config },
    preset: study.preset,
    seed,
    until,
    objective: study.objective,
    // Who has got far first, so that the search learns of it soon; then in the order in which they were asked for.
    priority: (until === null ? 1 : 0) + trial.rungs.length,
  };
}

/** What the outcomes of a trial come to. */
function endOf(study: Study, { outcomes }: Trial): TrialEnd {
  const values = outcomes.flatMap(({ value }) => (value === null ? [] : [value]));
  const violations = violationsOf(study, { outcomes });
  // One that came to nothing is not left out: that would reward settings with which runs break down.
  if (values.length < outcomes.length || values.length === 0)
    return { state: 'failed', value: null, violations };
  return { state: 'complete', value: aggregate(study.objective.over, values), violations };
}

/** At a rung where nothing can be said yet, because no episode has ended. JSON has no infinity. */
const worst = (direction: Direction): number =>
  direction === 'maximize' ? -Number.MAX_VALUE : Number.MAX_VALUE;

/** Steps that all runs of some trials have done. */
const spent = (trials: readonly Trial[]): number =>
  trials.reduce((sum, { outcomes }) => sum + outcomes.reduce((steps, { step }) => steps + step, 0), 0);
