/** The report for programs: one JSON document. */
import { escapeControls } from '../../base/controls.ts';
import type { Beside } from '../beside.ts';
import type { Diagnosis } from '../findings.ts';
import { isUnreadable, type Outcome } from './run-report.ts';

/** One entry of `runs`. Those that could not be read have the same fields and `error`. */
export type JsonRun = Omit<Diagnosis, 'verdict'> & {
  readonly verdict: Diagnosis['verdict'] | null;
  readonly error?: string;
  /** Only with `--against`. */
  readonly against?: Beside;
};

/** What `--json` prints, as a value. */
export function toReport(outcomes: readonly Outcome[]): { readonly runs: readonly JsonRun[] } {
  return { runs: outcomes.map(jsonRun) };
}

function jsonRun(outcome: Outcome): JsonRun {
  if (!isUnreadable(outcome))
    return outcome.beside === undefined
      ? outcome.diagnosis
      : { ...outcome.diagnosis, against: outcome.beside };
  const { path, error } = outcome;
  return {
    path,
    trainer: 'unknown',
    steps: 0,
    verdict: null,
    rootCause: null,
    confidence: 0,
    summary: '',
    findings: [],
    understood: { columns: [], settings: [], rows: 0, from: 0, to: 0, notUnderstood: [], absent: [] },
    basis: [],
    checked: [],
    notes: [],
    error,
  };
}

/** Numbers that are not finite become null, as JSON has no other word; names from a log stay whole but harmless. */
export function renderJson(outcomes: readonly Outcome[], indent = 2): string {
  return escapeControls(JSON.stringify(toReport(outcomes), null, indent));
}
