/**
 * When a finding was first seen. The log is looked at again as it was after fewer rows, on a ladder of lengths that does
 * not depend on how long it is now: what a rule said of them stays said, so the answer does not move while the run grows.
 */
import type { CanonicalRun, CanonicalSeries } from '../canonical.ts';
import { type Finding, loud } from '../findings.ts';
import type { Rule } from '../rules/rule.ts';
import { type Signals, signalsOf } from '../rules/signals.ts';

/** Points of the longest series at the lowest rung, and how much longer each next one is. */
const LOWEST = 6;
const STEP = 2;

function* rungsBelow(rows: number): Generator<number> {
  for (let n = LOWEST; n < rows; n = Math.ceil(n * STEP)) yield n;
}

/** The series up to a step, without copying. */
function cut(entry: CanonicalSeries, x: number): CanonicalSeries {
  const { series, blank, ...rest } = entry;
  let [low, high] = [0, series.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series.x[middle] <= x) low = middle + 1;
    else high = middle;
  }
  const head = <T extends Float64Array | Uint32Array>(array: T): T => array.subarray(0, low) as T;
  return {
    ...rest,
    ...(blank !== undefined && blank.from <= x ? { blank } : {}),
    series: {
      length: low,
      count: Math.round((series.count * low) / Math.max(1, series.length)),
      x: head(series.x),
      values: head(series.values),
      broken: head(series.broken),
      // Of these hardly any rule reads.
      get min() {
        return head(series.min);
      },
      get max() {
        return head(series.max);
      },
      get wallTime() {
        return head(series.wallTime);
      },
    },
  };
}

/** The run as it was at a step: what came later, a crash among it, was not known. */
export function runUntil(run: CanonicalRun, x: number): CanonicalRun {
  const { error: _, ...before } = run;
  return {
    ...before,
    series: new Map([...run.series].map(([id, entry]) => [id, cut(entry, x)])),
    restarts: run.restarts.filter(at => at <= x),
  };
}

/**
 * The findings with the step from which each was seen: where its rule had it begin on the lowest rung on which it spoke,
 * or now, whichever is earlier. Of a remark it is where it begins.
 */
export function withFirstSeen(
  findings: readonly Finding[],
  use: readonly Rule[],
  { run }: Signals,
): Finding[] {
  const told = loud(findings);
  if (told.length === 0) return [...findings];
  const longest = [...run.series.values()].reduce<CanonicalSeries | undefined>(
    (most, one) => (most === undefined || one.series.length > most.series.length ? one : most),
    undefined,
  )!.series;
  const open = new Set(told.map(({ code }) => code));
  const seen = new Map(told.map(({ code, from }) => [code, from]));
  for (const n of rungsBelow(longest.length)) {
    if (open.size === 0) break;
    const before = signalsOf(runUntil(run, longest.x[n - 1]));
    for (const code of open) {
      const rule = use.find(one => one.code === code);
      const [found] = loud(rule?.check(before.run, before, []) ?? []).filter(one => one.code === code);
      if (found === undefined) continue;
      seen.set(code, Math.min(found.from, seen.get(code)!));
      open.delete(code);
    }
  }
  return findings.map(finding =>
    finding.severity === 'info' ? finding : { ...finding, firstSeen: seen.get(finding.code) ?? finding.from },
  );
}
