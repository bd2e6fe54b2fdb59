/** The report for programs: one JSON document. */
import type { Diagnosis } from '../findings.ts';
import { isUnreadable, type Outcome } from './run-report.ts';

/** One entry of `runs`. Those that could not be read have the same fields and `error`. */
export type JsonRun = Omit<Diagnosis, 'verdict'> & {
  readonly verdict: Diagnosis['verdict'] | null;
  readonly error?: string;
};

/** What `--json` prints, as a value. */
export function toReport(outcomes: readonly Outcome[]): { readonly runs: readonly JsonRun[] } {
  return { runs: outcomes.map(jsonRun) };
}

function jsonRun(outcome: Outcome): JsonRun {
  if (!isUnreadable(outcome)) return outcome.diagnosis;
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
    notes: [],
    error,
  };
}

/** Characters that JSON allows as they are but a terminal obeys, or that turn the direction of a line. */
const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Numbers that are not finite become null, as JSON has no other word; names from a log stay whole but harmless. */
export function renderJson(outcomes: readonly Outcome[], indent = 2): string {
  return JSON.stringify(toReport(outcomes), null, indent).replaceAll(
    unsafe,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
