/** A report of what was read and judged. Apart from what a report is, so that who only tells of one loads less. */
import type { CanonicalRun } from '../canonical.ts';
import type { Diagnosis } from '../findings.ts';
import { plotsOf } from './plot.ts';
import type { RunReport } from './run-report.ts';

/** The report of a run that was read. */
export function runReport(diagnosis: Diagnosis, run: CanonicalRun): RunReport {
  return { diagnosis, unit: run.unit, plots: plotsOf(diagnosis, run), restarts: run.restarts.slice(0, 100) };
}
