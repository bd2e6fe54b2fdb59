/** What the reports are made of: a diagnosis with what is drawn beside it, or why a run could not be read. */
import { withoutControls } from '../../base/controls.ts';
import type { Beside } from '../beside.ts';
import { type Diagnosis, type Verdict, verdictRank, verdicts, worstOf } from '../findings.ts';
import type { Plot } from './plot.ts';
import type { WholeLog } from './whole-log.ts';

/** A run that was read. It keeps what is drawn, not the whole series. */
export interface RunReport {
  readonly diagnosis: Diagnosis;
  /** What x counts: `steps`, `iterations` … */
  readonly unit: string;
  readonly plots: readonly Plot[];
  /** Positions at which the log began anew. */
  readonly restarts: readonly number[];
  /** Only of a report that shows the whole log: then the plots are all that it has. */
  readonly log?: WholeLog;
  /** Where it was asked for. */
  readonly beside?: Beside;
}

/** A run that could not be read. */
export interface Unreadable {
  readonly path: string;
  /** A sentence: the path, or that of a file below it, what was looked for and what was found. */
  readonly error: string;
  /** The same where the path is said beside it. */
  readonly why: string;
  /** It was asked for by its path, and not found in a directory. */
  readonly given?: true;
  /** It has numbers, but none that training logs. */
  readonly isNoLog?: true;
}

/** Its sentences may be shown in a terminal; the path names a file, and stays as it is. */
export const unreadable = (path: string, why: string): Unreadable => ({
  path,
  error: withoutControls(`${path}: ${why}`),
  why: withoutControls(why),
});

/** What came of a log: a report, or why there is none. */
export type Outcome = RunReport | Unreadable;

/** Whether a log could not be read. */
export const isUnreadable = (outcome: Outcome): outcome is Unreadable => 'error' in outcome;
/** Whether a log could be read. */
export const isRead = (outcome: Outcome): outcome is RunReport => !isUnreadable(outcome);

/** Worst first; among equals the surer, then as they came. Those that could not be read come last. */
export function worstFirst(outcomes: readonly Outcome[]): Outcome[] {
  const rank = (outcome: Outcome): number =>
    isUnreadable(outcome) ? -1 : verdictRank[outcome.diagnosis.verdict];
  const sure = (outcome: Outcome): number => (isUnreadable(outcome) ? 0 : outcome.diagnosis.confidence);
  return [...outcomes].sort((a, b) => rank(b) - rank(a) || sure(b) - sure(a));
}

/** What could not be read at all has the code of what nobody can tell, and so has wrong use. */
const COULD_NOT_READ = verdicts.indexOf('cannot-tell');

/**
 * The worst verdict's code: 0 healthy, 1 watch, 2 sick, and 3 if nothing could be read or nothing can be told of it (of
 * several runs, 3 only if none is worse). A path that was given and holds no run is 3 too where no verdict is worse than
 * healthy: a script that mistyped it must not see a success. With `failOn` sick, a run that only needs watching is no
 * failure.
 */
export function exitCodeOf(outcomes: readonly Outcome[], failOn: 'watch' | 'sick' = 'watch'): number {
  const judged = outcomes.filter(isRead).map(({ diagnosis }) => diagnosis.verdict);
  const forgiven = failOn === 'sick' ? judged.map(one => (one === 'watch' ? 'healthy' : one)) : judged;
  const worst = worstOf(forgiven);
  if (worst === null) return COULD_NOT_READ;
  const code = verdicts.indexOf(worst);
  return code === 0 && outcomes.some(outcome => isUnreadable(outcome) && outcome.given)
    ? COULD_NOT_READ
    : code;
}

/** How many runs there are of each verdict, worst first. */
export function tally(outcomes: readonly Outcome[]): { readonly verdict: Verdict; readonly count: number }[] {
  return [...verdicts]
    .sort((a, b) => verdictRank[b] - verdictRank[a])
    .map(verdict => ({
      verdict,
      count: outcomes.filter(outcome => isRead(outcome) && outcome.diagnosis.verdict === verdict).length,
    }))
    .filter(({ count }) => count > 0);
}

/** What all paths begin with, up to a slash: it is said once, above the table. */
export function commonDirectory(paths: readonly string[]): string {
  let common = paths[0] ?? '';
  for (const path of paths) {
    while (!path.startsWith(common)) common = common.slice(0, common.lastIndexOf('/', common.length - 2) + 1);
  }
  return common.slice(0, common.lastIndexOf('/') + 1);
}
