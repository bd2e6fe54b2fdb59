/** What a report of a whole run shows besides what the doctor cites: every series, the settings, how long it took, events. */
import { RunError } from '../../base/errors.ts';
import { readEvents } from '../../runs/log.ts';
import { describeEventType } from '../../runs/schema.ts';
import type { CanonicalRun } from '../canonical.ts';
import type { Diagnosis } from '../findings.ts';
import type { RawRun } from '../raw-run.ts';
import { plotsOf } from './plot.ts';
import type { RunReport } from './run-report.ts';

/** Of a log, however much it has. */
const MOST = { plots: 60, settings: 400, events: 300 } as const;

export interface WholeLog {
  /** By the trainer's names. */
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** From the first row to the last, where the log has times. */
  readonly seconds: number | null;
  readonly events: readonly { readonly step: number; readonly kind: string; readonly message: string }[];
}

export function wholeReport(diagnosis: Diagnosis, run: CanonicalRun, raw: RawRun): RunReport {
  return {
    diagnosis,
    unit: run.unit,
    plots: plotsOf(diagnosis, run, MOST.plots, MOST.plots, [...run.series.keys()]),
    restarts: run.restarts.slice(0, 100),
    log: {
      settings: [...raw.config]
        .slice(0, MOST.settings)
        .map(([name, value]) => [name, String(value).slice(0, 300)]),
      seconds: secondsOf(run),
      events: raw.format === 'keel' ? eventsOf(raw.path) : [],
    },
  };
}

function secondsOf({ series }: CanonicalRun): number | null {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { series: one } of series.values())
    for (const at of one.wallTime)
      if (Number.isFinite(at)) [from, to] = [Math.min(from, at), Math.max(to, at)];
  return to > from ? to - from : null;
}

/** Events are beside the run; without them the report has the rest. */
function eventsOf(path: string): WholeLog['events'] {
  try {
    return readEvents(path)
      .items.slice(-MOST.events)
      .map(({ step, type, message }) => ({
        step,
        kind: describeEventType(type).title,
        message,
      }));
  } catch (error) {
    if (error instanceof RunError) return [];
    throw error;
  }
}
