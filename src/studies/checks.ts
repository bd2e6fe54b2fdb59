/**
 * Checks of what a study's files hold. What comes from a disk is data: its kinds, sizes and ranges are looked at before
 * anything uses it.
 */
import * as z from 'zod/mini';
import { fail, RunError, show } from '../base/errors.ts';
import { decodeNumber, type JsonNumber } from '../metrics/row.ts';
import { isRunId } from '../runs/layout.ts';
import { methods, type RunOutcome, type Space, type Study } from './schema.ts';

/** A study with more axes than this is no study that anybody can search. */
export const maxAxes = 200;
/** Values of a list; a grid is bounded by itself. */
export const maxChoices = 10_000;
/** Trials of a study, and of a journal. */
export const maxTrials = 100_000;
/** Runs a trial. */
export const maxSeeds = 1000;

const text = z.string().check(z.maxLength(10_000));
const name = z.string().check(z.minLength(1), z.maxLength(200));
const count = z.int().check(z.nonnegative());
const json = z.record(z.string(), z.unknown());

/** A number that may have been written as text because it is not finite. */
const number = z.pipe(
  z.custom<JsonNumber>(value => decodeNumber(value) !== undefined),
  z.transform(value => decodeNumber(value)!),
);

const scalar = z.union([text, z.number(), z.boolean(), z.null()]);
const paramValue = z.union([scalar, z.array(scalar).check(z.maxLength(1000))]);

const domain = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('choice'),
    values: z.array(paramValue).check(z.minLength(1), z.maxLength(maxChoices)),
  }),
  z.object({
    kind: z.literal('float'),
    low: z.number(),
    high: z.number(),
    log: z.boolean(),
    step: z.optional(z.number().check(z.positive())),
  }),
  z.object({
    kind: z.literal('int'),
    low: z.int(),
    high: z.int(),
    log: z.boolean(),
    step: z.int().check(z.positive()),
  }),
]);

const axis = z.object({
  key: name,
  domain,
  when: z.optional(
    z.object({ key: name, in: z.array(paramValue).check(z.minLength(1), z.maxLength(maxChoices)) }),
  ),
});

const sha256 = z.string().check(z.regex(/^[0-9a-f]{64}$/));

export const subjectSchema = z.object({
  kind: z.enum(['env', 'task']),
  reference: z.string().check(z.minLength(1), z.maxLength(4096)),
  sha256: z.nullable(sha256),
  options: json,
});

export const objectiveSchema = z.object({
  metric: name,
  direction: z.enum(['maximize', 'minimize']),
  of: z.enum(['last', 'best', 'mean']),
  over: z.enum(['iqm', 'mean', 'median', 'min', 'max']),
});

const spaceSchema = z.array(axis).check(z.maxLength(maxAxes));

/** What a run came to, from a journal, another process or Redis alike. */
export const outcomeSchema = z.object({
  run: z.string().check(z.refine(isRunId, 'is no id of a run')),
  seed: count,
  status: z.enum(['done', 'failed']),
  step: count,
  finished: z.boolean(),
  value: z.nullable(number),
  verdict: z.nullable(z.enum(['healthy', 'watch', 'sick', 'cannot-tell'])),
  rootCause: z.nullable(text),
  klMedian: z.nullable(number),
  klLargest: z.nullable(number),
  seconds: number,
  weights: z.nullable(sha256),
  worker: text,
  problem: z.nullable(text),
});

const studySchema = z.object({
  kind: z.literal('keel-study'),
  schema: z.literal(1),
  name,
  version: name,
  createdAt: z.string().check(z.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)),
  subject: subjectSchema,
  config: json,
  preset: json,
  space: spaceSchema,
  method: z.enum(methods),
  halving: z.nullable(z.object({ eta: z.number().check(z.gt(1)), minSteps: z.int().check(z.positive()) })),
  trials: z.int().check(z.positive(), z.maximum(maxTrials)),
  budgetSteps: z.nullable(z.int().check(z.positive())),
  seeds: z.array(count).check(z.minLength(1), z.maxLength(maxSeeds)),
  searchSeed: count,
  objective: objectiveSchema,
  constraints: z.object({ healthy: z.boolean(), klMax: z.nullable(z.number().check(z.positive())) }),
});

/** A checked `study.json`; `source` names it in errors. */
export function parseStudy(value: unknown, source: string): Study {
  const version = (value as { schema?: unknown } | null | undefined)?.schema;
  if (typeof version === 'number' && version > 1)
    fail(
      `${source} was written by a newer Keel (schema ${version}, this one reads 1): update Keel`,
      'newer-schema',
    );
  return check(studySchema, value, source) as Study;
}

/** Checked axes; undefined if they are none. */
export function spaceOf(value: unknown): Space | undefined {
  const { success, data } = z.safeParse(spaceSchema, value);
  return success ? (data as Space) : undefined;
}

/** The same of an outcome. */
export function outcomeOf(value: unknown): RunOutcome | undefined {
  const { success, data } = z.safeParse(outcomeSchema, value);
  return success ? (data as RunOutcome) : undefined;
}

function check<T extends z.ZodMiniType>(schema: T, value: unknown, source: string): z.infer<T> {
  const result = z.safeParse(schema, value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue.path.map(String).join('.');
  const found = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key],
    value,
  );
  const what = path === '' ? 'it' : path.slice(0, 80);
  const is = found === undefined ? 'missing' : show(found);
  throw new RunError(`${source}: ${what} is ${is}, which does not fit (${issue.message})`, {
    code: 'invalid',
  });
}
