/** The doctor as the autopilot asks it: what is wrong with a run of Keel by its newest rows, and which settings to change. */
import type { Advice, Advisor, Look } from '../algos/autopilot/advice.ts';
import { toCanonical } from '../doctor/dialects/translate.ts';
import { judged } from '../doctor/doctor.ts';
import type { Diagnosis } from '../doctor/findings.ts';
import { firstHarm } from '../doctor/first-harm.ts';
import { courseOf, rises } from '../doctor/judge/trends.ts';
import { ReadError } from '../doctor/readers/errors.ts';
import { RunBuilder } from '../doctor/readers/run-builder.ts';
import { addSaid } from '../doctor/readers/said.ts';
import { jitter } from '../doctor/statistics/blocks.ts';
import { median } from '../doctor/statistics/order.ts';

/** What the doctor says of these rows; undefined where they are too few. */
function diagnosisOf({
  dir,
  algorithm,
  environment,
  seed,
  config,
  rows,
  error,
}: Look): Diagnosis | undefined {
  const builder = new RunBuilder(dir, 'keel', 'row');
  addSaid(builder, { config, environment, other: { algorithm, seed }, error });
  rows.forEach((row, i) => {
    for (const [name, value] of Object.entries(row)) builder.number(name, i + 1, value);
  });
  builder.unfinished = error === null;
  try {
    return judged(toCanonical(builder.finish(), { trainer: 'keel' }));
  } catch (thrown) {
    if (thrown instanceof ReadError) return undefined;
    throw thrown;
  }
}

/** Of a run that is sick, of one cause, with a first fix that is settings. Everything else is for people. */
function adviceOf(diagnosis: Diagnosis | undefined): Advice | undefined {
  if (diagnosis?.verdict !== 'sick' || diagnosis.rootCause === null) return undefined;
  const [first] = diagnosis.findings;
  const [fix] = first.fixes;
  if (first.cause !== diagnosis.rootCause || fix?.kind !== 'setting') return undefined;
  return {
    rule: first.code,
    cause: diagnosis.rootCause,
    confidence: diagnosis.confidence,
    why: first.title,
    firstSeen: firstHarm(diagnosis),
    changes: fix.changes.map(({ name, value }) => ({ key: name, value })),
  };
}

/** Rows with a return without which nobody can tell what a change did to it. */
const ENOUGH = 5;

/** Of a run of PPO or GRPO: what it is after, row by row. */
const objectivesOf = (rows: Look['rows']): number[] =>
  rows.flatMap(row => row['episode/return'] ?? row['reward/mean'] ?? []).filter(Number.isFinite);

/** Whether the return is below what it was when a setting was changed, or has stopped to rise since. */
function isWorseSince({ rows, changed }: Look): boolean {
  const [before, after] = [objectivesOf(rows.slice(0, changed)), objectivesOf(rows.slice(changed))];
  if (before.length < ENOUGH || after.length < ENOUGH) return false;
  const [was, is] = [before.slice(-ENOUGH), after.slice(-ENOUGH)];
  if (median(is) < median(was) - 2 * jitter(before)) return true;
  return rises(courseOf(before.slice(-Math.max(after.length, 2 * ENOUGH)))) && !rises(courseOf(after));
}

/**
 * By all rows; where those of before a change of settings hide what came of it, by those since the change alone, unless the
 * run is as good as it was: a rate that was lowered on a policy that is done is no fault.
 */
export const advisor: Advisor = async look => {
  const advice = adviceOf(diagnosisOf(look));
  if (advice !== undefined || look.changed === 0 || !isWorseSince(look)) return advice;
  return adviceOf(diagnosisOf({ ...look, rows: look.rows.slice(look.changed) }));
};
