/** The doctor as the autopilot asks it: what is wrong with a run of Keel by its newest rows, and which settings to change. */
import type { Advice, Advisor, Look } from '../algos/autopilot/advice.ts';
import { toCanonical } from '../doctor/dialects/translate.ts';
import { judged } from '../doctor/doctor.ts';
import type { Diagnosis } from '../doctor/findings.ts';
import { firstHarm } from '../doctor/first-harm.ts';
import { ReadError } from '../doctor/readers/errors.ts';
import { RunBuilder } from '../doctor/readers/run-builder.ts';
import { addSaid } from '../doctor/readers/said.ts';

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

export const advisor: Advisor = async look => adviceOf(diagnosisOf(look));
