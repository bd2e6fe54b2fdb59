/** Jobs and outcomes as data from outside: another process, Redis. Every field is checked and bounded before it is used. */
import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { KeelError } from '../base/errors.ts';
import { isRunId } from '../runs/layout.ts';
import { objectiveSchema, outcomeSchema, subjectSchema } from '../studies/checks.ts';
import type { RunOutcome } from '../studies/schema.ts';
import type { RunJob } from './place.ts';

/** Settings and options of a run are a few kilobytes. */
const mostJobBytes = 2 ** 18;
const short = z.string().check(z.maxLength(200));
const runId = z.string().check(z.refine(isRunId, 'is no id of a run'));
const steps = z.int().check(z.nonnegative());
const settings = z.record(z.string().check(z.maxLength(200)), z.unknown());

const jobSchema = z.strictObject({
  run: runId,
  version: short,
  subject: subjectSchema,
  config: settings,
  preset: settings,
  seed: steps,
  until: z.nullable(steps),
  objective: objectiveSchema,
  priority: z.int().check(z.gte(-1_000_000), z.lte(1_000_000)),
});

/** What came from somewhere is not what it should be. */
export class DataError extends KeelError {
  override name = 'DataError';
}

function checked<T>(schema: z.ZodMiniType<T, unknown>, value: unknown, what: string): T {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  const [{ path, message }] = result.error.issues;
  throw new DataError(`${what} is not what it should be: ${path.join('.') || 'it'}: ${message}`);
}

/** A job, if it is one. `source` is for the message. */
export function parseJob(value: unknown, source: string): RunJob {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '');
  if (bytes > mostJobBytes)
    throw new DataError(`the job of ${source} has ${bytes} bytes, at most ${mostJobBytes} are taken`);
  return checked(jobSchema, value, `the job of ${source}`);
}

/** What a run came to, if it is that; of this job, where one is given. */
export function parseOutcome(value: unknown, source: string, job?: RunJob): RunOutcome {
  const outcome = checked(outcomeSchema, value, `the outcome of ${source}`);
  if (job !== undefined && (outcome.run !== job.run || outcome.seed !== job.seed))
    throw new DataError(
      `the outcome of ${source} is of run ${outcome.run}, seed ${outcome.seed}: it is another's`,
    );
  return outcome;
}

/** A sentence that fits into an outcome. */
export const asSentence = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, 1000);

/** What a run is, whichever part of it is asked for: two of the same have the same bits. */
export function runKey({ run, version, subject, config, preset, seed }: RunJob): string {
  const { kind, reference, sha256, options } = subject;
  // A file is what is in it, wherever it is.
  const what = [kind, sha256 ?? reference, options];
  const text = JSON.stringify(sorted([run, version, what, config, preset, seed]));
  return createHash('sha256').update(text).digest('hex').slice(0, 20);
}

/** The same value with the keys of its objects in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

/** An outcome of a job that cannot be done. */
export function failedOutcome(job: RunJob, worker: string, problem: string): RunOutcome {
  return {
    run: job.run,
    seed: job.seed,
    status: 'failed',
    step: 0,
    finished: false,
    value: null,
    verdict: null,
    rootCause: null,
    klMedian: null,
    klLargest: null,
    seconds: 0,
    weights: null,
    worker: worker.slice(0, 200),
    problem: asSentence(problem),
  };
}
