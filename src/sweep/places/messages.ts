/** What a process of the pool and its parent say to each other. Data, checked on both sides. */
import * as z from 'zod/mini';

const text = z.string().check(z.maxLength(8000));
const paths = z.array(z.string().check(z.maxLength(4096))).check(z.maxLength(1000));

/** To a child. */
export const orderSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('job'),
    /** Checked by itself, see job.ts. */
    job: z.unknown(),
    root: z.string(),
    files: paths,
    engines: paths,
  }),
  z.strictObject({ kind: z.literal('stop') }),
]);
export type Order = z.infer<typeof orderSchema>;

/** From a child. */
export const reportSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ready') }),
  z.strictObject({ kind: z.literal('started') }),
  z.strictObject({ kind: z.literal('outcome'), outcome: z.unknown(), rss: z.number() }),
  z.strictObject({ kind: z.literal('stopped') }),
  /** This machine cannot do it. */
  z.strictObject({ kind: z.literal('elsewhere'), message: text, code: z.string().check(z.maxLength(100)) }),
]);
export type Report = z.infer<typeof reportSchema>;
