/** Which workers there are and what they do, as they say it every few seconds. */
import type { Redis } from 'ioredis';
import * as z from 'zod/mini';
import { jsonOf } from '../../base/json.ts';
import { VERSION } from '../../base/version.ts';
import { keys } from './names.ts';

const text = z.string().check(z.maxLength(1000));
const count = z.int().check(z.nonnegative());
const presenceSchema = z.strictObject({
  id: text,
  host: text,
  pid: count,
  version: text,
  /** Jobs at once. */
  jobs: count,
  /** SHA-256 of the files that it runs. */
  files: z.array(text).check(z.maxLength(1000)),
  doing: z
    .array(z.strictObject({ study: text, run: text, until: z.nullable(count), since: z.number() }))
    .check(z.maxLength(10_000)),
  /** Why it takes no jobs now. */
  paused: z.nullable(text),
  done: count,
});

/** A worker, as it was a moment ago. */
export type WorkerPresence = z.infer<typeof presenceSchema>;

export async function tellPresence(redis: Redis, presence: WorkerPresence, leaseMs: number): Promise<void> {
  await redis
    .multi()
    .set(keys.worker(presence.id), JSON.stringify(presence), 'PX', leaseMs)
    .sadd(keys.workers, presence.id)
    .exec();
}

export async function endPresence(redis: Redis, id: string): Promise<void> {
  await redis.multi().del(keys.worker(id)).srem(keys.workers, id).exec();
}

/** The workers that are there, of any version. */
export async function listWorkers(redis: Redis): Promise<WorkerPresence[]> {
  const ids = await redis.smembers(keys.workers);
  if (ids.length === 0) return [];
  const said = await redis.mget(ids.map(id => keys.worker(id)));
  const gone = ids.filter((_, i) => said[i] === null);
  if (gone.length > 0) await redis.srem(keys.workers, gone);
  return said.flatMap(json => {
    if (json === null || json.length > 2 ** 21) return [];
    try {
      const { success, data } = z.safeParse(presenceSchema, jsonOf(json));
      return success ? [data] : [];
    } catch {
      return [];
    }
  });
}

/** Whether a job that was refused here for its file is for another: one was started with that file, and this one was not. */
export async function othersHave(
  redis: Redis,
  sha256: string | null,
  here: readonly string[],
): Promise<boolean> {
  if (sha256 === null || here.includes(sha256)) return false;
  return (await listWorkers(redis)).some(
    ({ version, files }) => version === VERSION && files.includes(sha256),
  );
}
