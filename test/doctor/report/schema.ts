/** The contract of `keel doctor --json`, written down a second time: programs rely on it. */
import * as z from 'zod';
import { rootCauses, verdicts } from '../../../src/doctor/findings.ts';

const cause = z.enum(rootCauses).nullable();
const share = z.number().min(0).max(1);

const mark = z.strictObject({ metric: z.string(), theirs: z.string(), from: z.number(), to: z.number() });

const number = z.number().nullable();
const fact: z.ZodType = z.lazy(() =>
  z.strictObject({
    kind: z.enum([
      'rows',
      'step',
      'course',
      'setting',
      'limit',
      'quoted',
      'counted',
      'times',
      'less',
      'product',
    ]),
    text: z.string(),
    value: number,
    statistic: z.string().optional(),
    argument: number.optional(),
    metric: z.string().optional(),
    theirs: z.string().optional(),
    rows: z.tuple([z.int(), z.int()]).optional(),
    row: z.int().optional(),
    what: z.string().optional(),
    setting: z.string().optional(),
    of: z.tuple([fact, fact]).optional(),
    evidence: z.int().min(0).nullable().optional(),
  }),
);

const fix = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('setting'),
    changes: z
      .array(
        z.strictObject({
          setting: z.string().regex(/^[a-zA-Z]+$/),
          name: z.string().min(1),
          from: z.union([z.number(), z.string(), z.boolean()]).nullable(),
          value: z.union([z.number(), z.string(), z.boolean()]),
        }),
      )
      .min(1),
    code: z.string().optional(),
    aside: z.string().optional(),
    text: z.string().min(1),
  }),
  z.strictObject({
    kind: z.literal('code'),
    code: z.string().min(1),
    aside: z.string().optional(),
    text: z.string().min(1),
  }),
  z.strictObject({ kind: z.literal('prose'), text: z.string().min(1) }),
]);

export const reportSchema = z.strictObject({
  runs: z.array(
    z.strictObject({
      path: z.string(),
      trainer: z.string(),
      steps: z.number(),
      verdict: z.enum(['healthy', 'watch', 'sick', 'cannot-tell']).nullable(),
      rootCause: cause,
      confidence: share,
      summary: z.string(),
      findings: z.array(
        z.strictObject({
          code: z.string().regex(/^[a-z0-9-]+$/),
          severity: z.enum(['info', 'warning', 'critical']),
          title: z.string().min(1),
          from: z.number(),
          to: z.number(),
          firstSeen: z.number(),
          evidence: z.array(z.string()),
          cites: z.array(mark.extend({ evidence: z.int().min(0) })),
          facts: z.array(fact),
          cause,
          confidence: share,
          fix: z.array(z.string()),
          fixes: z.array(fix),
          watch: z.string().optional(),
          marks: z.array(mark),
        }),
      ),
      understood: z.strictObject({
        columns: z.array(z.strictObject({ metric: z.string(), theirs: z.string() })),
        settings: z.array(
          z.strictObject({
            setting: z.string().min(1),
            name: z.string().min(1),
            value: z.union([z.number(), z.string()]).nullable(),
          }),
        ),
        rows: z.int(),
        from: z.number(),
        to: z.number(),
        notUnderstood: z.array(z.string()),
        absent: z.array(z.strictObject({ metric: z.string(), why: z.string() })),
      }),
      basis: z.array(z.string()),
      checked: z.array(
        z.strictObject({
          code: z.string(),
          state: z.enum(['found', 'near', 'clear', 'blind']),
          limit: z.strictObject({ of: z.string(), at: z.number(), value: z.number() }).optional(),
          missing: z.array(z.string()).optional(),
        }),
      ),
      notes: z.array(z.string()),
      error: z.string().optional(),
      against: z
        .strictObject({
          path: z.string(),
          verdict: z.enum(verdicts),
          settings: z.array(
            z.strictObject({
              name: z.string(),
              value: z.string(),
              otherName: z.string(),
              other: z.string(),
              isTask: z.literal(true).optional(),
              isAdvisedAgainst: z.literal(true).optional(),
            }),
          ),
          partings: z.array(
            z.strictObject({
              metric: z.string(),
              theirs: z.string(),
              step: z.number(),
              value: z.number(),
              other: z.number(),
            }),
          ),
          compared: z.array(z.string()),
        })
        .optional(),
    }),
  ),
});
