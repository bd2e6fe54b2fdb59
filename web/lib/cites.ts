/** What a sentence of the evidence speaks of, as a place to look at. */
import type { Cite, Finding } from '../../src/doctor/findings.ts';
import { objectives } from '../../src/metrics/objectives.ts';
import type { MetricInfo } from '../../src/server/api.ts';

/** A sentence that was chosen. */
export interface Cited {
  readonly code: string;
  readonly evidence: number;
}

/** The series of a run under the registry's name, or under the log's own. */
export const seriesOf = (
  { metric, theirs }: { readonly metric: string; readonly theirs: string },
  metrics: readonly MetricInfo[],
): MetricInfo | undefined => metrics.find(m => m.id === metric) ?? metrics.find(m => m.theirs === theirs);

/**
 * What a sentence cites, of that which the run has a series of. Where it names two steps or more of a series, as in "43 in a
 * row, from 20,480 to 31,232", it speaks of what is between them, not of all the rows that were counted.
 */
export function citedIn(finding: Finding, evidence: number, metrics: readonly MetricInfo[]): readonly Cite[] {
  const cited = finding.cites.filter(
    cite => cite.evidence === evidence && seriesOf(cite, metrics) !== undefined,
  );
  return cited.flatMap(cite => {
    const steps = cited.filter(({ metric, from, to }) => metric === cite.metric && from === to);
    const span = steps.length > 1 ? spanOf(steps) : null;
    if (span === null || span.from === span.to) return [cite];
    return cite === steps[0] ? [{ ...cite, ...span }] : [];
  });
}

/** From the first to the last step of several stretches. */
export function spanOf(
  stretches: readonly { readonly from: number; readonly to: number }[],
): { from: number; to: number } | null {
  if (stretches.length === 0) return null;
  return {
    from: Math.min(...stretches.map(({ from }) => from)),
    to: Math.max(...stretches.map(({ to }) => to)),
  };
}

/** A window around a stretch: a fifth of it on both sides, and never so narrow that nothing is around a single step. */
export function windowAround(
  { from, to }: { readonly from: number; readonly to: number },
  whole: readonly [number, number],
): [from: number, to: number] {
  const margin = Math.max((to - from) * 0.2, (whole[1] - whole[0]) * 0.02);
  return [from - margin, to + margin];
}

/** How well the task is done, where the log has it: drawn beside what is cited. */
export const objectiveIn = (metrics: readonly MetricInfo[]): MetricInfo | undefined =>
  objectives.map(id => metrics.find(metric => metric.id === id)).find(metric => metric !== undefined);
