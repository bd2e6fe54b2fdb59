/**
 * What a strength is worth: how often answers that rules are so sure of are right, on runs with known faults. Fitted by
 * `npm run bench -- doctor calibrate` on the seeds that rules are tuned on, each log also as it is with less in it: without
 * settings, its first third, a few columns. Whole logs of ours alone are nearly all judged rightly, and would say nothing
 * of the logs that other people have.
 */
import type { RootCause, Verdict } from '../findings.ts';

/** What is claimed: a root cause, that all is well, that something is not, or nothing. */
export const claims = ['cause', 'healthy', 'no cause', 'cannot tell'] as const;
/** What kind of answer a diagnosis is. */
export type Claim = (typeof claims)[number];

export const claimOf = (verdict: Verdict, rootCause: RootCause | null): Claim => {
  if (rootCause !== null) return 'cause';
  return verdict === 'healthy' ? 'healthy' : verdict === 'cannot-tell' ? 'cannot tell' : 'no cause';
};

/** A strength, and the share of the answers about so strong that were right. */
export type Knot = readonly [strength: number, right: number];

/** Never falling (Zadrozny and Elkan 2002). Between two knots a straight line, beyond them the nearest. */
export const curves: Readonly<Record<Claim, readonly Knot[]>> = {
  cause: [
    [0.453, 0.053],
    [0.595, 0.642],
    [0.75, 0.886],
    [0.898, 0.971],
    [0.979, 0.989],
  ],
  healthy: [
    [0.493, 0.5],
    [0.601, 0.554],
    [0.794, 0.645],
    [0.95, 0.892],
  ],
  // Right is here that something was wrong with the run at all,
  'no cause': [[0.4, 0.932]],
  // and here that nothing was.
  'cannot tell': [[0.4, 0.379]],
};

/** How likely it is that a claim of this strength is right. */
export function calibrated(claim: Claim, strength: number): number {
  const knots = curves[claim];
  const next = knots.findIndex(([at]) => at > strength);
  if (next <= 0) return knots.at(next)![1];
  const [[x1, y1], [x2, y2]] = [knots[next - 1], knots[next]];
  return y1 + ((y2 - y1) * (strength - x1)) / (x2 - x1);
}
