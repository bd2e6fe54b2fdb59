/** A study from code: make it or go on with it, search, and confirm what was found on seeds that nothing was tuned on. */
import { resolve } from 'node:path';
import { algorithmFor } from '../algos/algorithms.ts';
import { resolveSubject } from '../algos/subject.ts';
import { ConfigError } from '../base/errors.ts';
import { resolveSettings } from '../settings/resolve.ts';
import type { RunConfig } from '../settings/spec.ts';
import { JournalWriter } from '../studies/journal.ts';
import type { Constraints, Halving, Method, Objective, RunOutcome, Study, Trial } from '../studies/schema.ts';
import { mostReportingSeeds, reportingSeeds } from '../studies/seeds.ts';
import { findStudy, studyPaths } from '../studies/store.ts';
import { type StudySummary, summaryOf } from '../studies/summary.ts';
import { type ConductOptions, conduct, confirm } from './conduct.ts';
import { type MakeStudyOptions, makeStudy } from './make-study.ts';
import type { Place } from './place.ts';
import { openHerePlace } from './places/here.ts';
import { makeSampler } from './samplers/make.ts';

/** How a study is conducted. */
export interface SweepOptions {
  /** Where its runs happen; processes of this machine unless told. Whoever opened a place closes it. */
  readonly place?: Place | undefined;
  /** Runs at once on this machine; as many as it has cores and memory for unless told. */
  readonly jobs?: number | undefined;
  /** Then trains the winner and the default on so many fresh seeds. */
  readonly confirm?: number | undefined;
  /** Ends it with every run saved; it goes on with the same call. */
  readonly signal?: AbortSignal | undefined;
  readonly onTrial?: ((trial: Trial) => void) | undefined;
  readonly onOutcome?: ((trial: Trial, outcome: RunOutcome) => void) | undefined;
}

/** What a study came to. */
export interface SweepResult {
  readonly dir: string;
  readonly status: 'finished' | 'stopped';
  readonly study: Study;
  readonly trials: readonly Trial[];
  readonly summary: StudySummary;
}

/** A new study: the keys of a study file (docs/sweeps.md), and how it is conducted. */
export interface NewSweep extends SweepOptions, MakeStudyOptions {
  readonly env?: string;
  readonly task?: string;
  readonly envOptions?: object;
  readonly taskOptions?: object;
  /** Settings that all runs have, over the preset. */
  readonly config?: object;
  /** `{ learningRate: { log: [1e-4, 1e-2] }, gamma: [0.98, 0.99] }`; the settings that matter most unless told. */
  readonly space?: object;
  readonly method?: Method;
  readonly halving?: boolean | Partial<Halving>;
  readonly trials?: number;
  readonly budgetSteps?: number;
  /** `'0..2'`, a list, or how many. */
  readonly seeds?: string | number | readonly number[];
  readonly searchSeed?: number;
  readonly objective?: string | Partial<Objective>;
  readonly constraints?: Partial<Constraints>;
}

/**
 * Searches: `await sweep({ env: 'cartpole', trials: 20 })` makes a study and conducts it, `await sweep('studies/cartpole')`
 * goes on with one.
 */
export async function sweep(what: string | NewSweep, options: SweepOptions = {}): Promise<SweepResult> {
  if (typeof what === 'string') {
    const { dir, study } = findStudy(what);
    return conductStudy(dir, study, options);
  }
  const { root, place, jobs, confirm: fresh, signal, onTrial, onOutcome, ...given } = what;
  const { dir, study } = await makeStudy(given, { root });
  return conductStudy(dir, study, { place, jobs, confirm: fresh, signal, onTrial, onOutcome, ...options });
}

/** Searches in the directory of a study, which is there already (`makeStudy`), from wherever it stands. */
export async function conductStudy(
  dir: string,
  study: Study,
  options: SweepOptions = {},
): Promise<SweepResult> {
  const paths = studyPaths(resolve(dir));
  const { signal, onTrial, onOutcome } = options;
  const fresh = options.confirm;
  // Said now, not after the search.
  if (fresh !== undefined && !(Number.isInteger(fresh) && fresh >= 1 && fresh <= mostReportingSeeds))
    throw new ConfigError(
      `confirm is ${fresh}: take a whole number from 1 to ${mostReportingSeeds}, such as 10`,
    );
  const maxSteps = await stepsIn(study);
  const log = new JournalWriter(paths.journal, study);
  const place =
    options.place ?? openHerePlace({ root: paths.runs, jobs: options.jobs, files: filesOf(study) });
  const common = { study, log, place, signal, onTrial, onOutcome } satisfies Partial<ConductOptions>;
  try {
    let status = await conduct({ ...common, maxSteps, sampler: makeSampler(study) });
    const { winner } = summaryOf(study, log.trials);
    if (status === 'finished' && options.confirm !== undefined && winner !== null) {
      const seeds = reportingSeeds(log.trials, winner.params, options.confirm);
      const ended = await confirm(common, [
        { params: winner.params, purpose: 'confirm-winner', seeds },
        { params: {}, purpose: 'confirm-default', seeds },
      ]);
      if (ended === undefined) status = 'stopped';
    }
    const trials = [...log.trials];
    return { dir: resolve(dir), status, study, trials, summary: summaryOf(study, trials) };
  } finally {
    if (options.place === undefined) await place.close();
    log.close();
  }
}

/** The user who conducts a study has named its file himself. */
const filesOf = ({ subject }: Study): string[] => (subject.sha256 === null ? [] : [subject.reference]);

/** How long a run of the study is: what `steps` comes to over preset and study. */
async function stepsIn(study: Study): Promise<number> {
  const { kind, reference, options } = study.subject;
  const subject = await resolveSubject(reference, options);
  if (subject.kind !== kind)
    throw new ConfigError(
      `${reference} is ${subject.kind === 'env' ? 'an environment' : 'a text task'} now, which it was not when ${study.name} was made: make the study anew`,
    );
  const { settings } = algorithmFor('train', subject);
  return (resolveSettings(settings, { preset: study.preset, given: study.config }) as RunConfig).steps;
}
