/**
 * Shards of a run on a queue: the run, one long job of its own, adds them and waits; workers on any machine collect them in
 * processes of theirs.
 *
 * Bytes travel beside the queue: the job's under its own digest, the result's under the same, both gone after an hour. A
 * worker tells on the run's list that it is through. Whatever Redis loses is added again, and done again to the same bits:
 * nothing here must happen only once.
 */

import { createHash, randomUUID } from 'node:crypto';
import type { Queue as BullQueue, Worker as BullWorker, QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import * as z from 'zod/mini';
import { refuseOther } from '../algos/ppo/shards/merge.ts';
import {
  decodeShardJob,
  decodeShardResult,
  encodeShardJob,
  encodeShardResult,
} from '../algos/ppo/shards/message.ts';
import type { ShardPlace } from '../algos/ppo/shards/place.ts';
import { shardProcesses } from '../algos/ppo/shards/processes.ts';
import type { ShardJob, ShardResult } from '../algos/ppo/shards/shard.ts';
import { codeFileOf, isEnvFile, isGymReference } from '../base/code-reference.ts';
import { KeelError, TrainError } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { VERSION } from '../base/version.ts';
import { sha256Of } from '../runs/named-code.ts';

/** Bits of another version may be others: its workers never see these jobs. */
const queueName = `shards-${VERSION.replaceAll(/[^\w.-]/g, '_')}`;
const prefix = 'keel';
/** Seconds for which bytes stay that nobody has taken. */
const LIFE_S = 3600;
/** Seconds after which it is looked whether Redis still has what waits. */
const LOOK_S = 2;
const jobKey = (id: string): string => `${prefix}:shard:${id}`;
const resultKey = (id: string): string => `${prefix}:shard:${id}:result`;
const listKey = (run: string): string => `${prefix}:shards:${run}`;

const digest = z.string().check(z.regex(/^[0-9a-f]{64}$/));
const dataSchema = z.strictObject({
  /** Of the job's bytes. */
  id: digest,
  /** Which list is told. */
  run: z.string().check(z.regex(/^[0-9a-f-]{36}$/)),
  /** Of the environment's file, if it has one. */
  file: z.nullable(digest),
});
type Data = z.infer<typeof dataSchema>;
const toldSchema = z.strictObject({ id: digest, error: z.nullable(z.string().check(z.maxLength(2000))) });

/** What both packages are told of a Redis. */
export interface RedisConnection {
  readonly host: string;
  readonly port: number;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: { readonly servername?: string };
  readonly retryStrategy?: (times: number) => number;
  readonly reconnectOnError?: (error: Error) => boolean;
}

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const queueOptions = (connection: RedisConnection): QueueOptions => ({
  connection: { ...connection, maxRetriesPerRequest: null },
  prefix,
});
/** A Redis that is away is waited for. */
async function connected(connection: RedisConnection): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis({ ...connection, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  return redis;
}

export interface ShardQueueOptions {
  readonly connection: RedisConnection;
  /** How many workers there may be, for the time that environments took: as many as shards unless told. */
  readonly slots?: number;
}

/** The run's side. */
export async function shardQueue({ connection, slots = 256 }: ShardQueueOptions): Promise<ShardPlace> {
  const { Queue } = await import('bullmq');
  const queue: BullQueue = new Queue(queueName, queueOptions(connection));
  queue.on('error', () => {});
  const redis = await connected(connection);
  // It waits on the list, and nothing else can use it meanwhile.
  const waiting = await connected(connection);
  const run = randomUUID();
  const files = new Map<string, string>();
  let isClosed = false;

  function fileHash(env: string): string | null {
    if (!isEnvFile(env)) return null;
    const { file } = codeFileOf(env);
    const known = files.get(file) ?? sha256Of(file);
    if (known === undefined) throw new TrainError(`${file} cannot be read: workers match it by its content`);
    files.set(file, known);
    return known;
  }

  /** Adds what Redis does not have, neither as a job nor as a result. */
  async function add(id: string, bytes: Uint8Array, job: ShardJob): Promise<void> {
    if (job.task.env === null)
      throw new TrainError(
        'the environments were made in code, which no other process runs: export them from a file and load that',
      );
    await redis.set(jobKey(id), Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), 'EX', LIFE_S);
    const data: Data = { id, run, file: fileHash(job.task.env) };
    await queue.add('shard', data, { jobId: id, removeOnComplete: true, removeOnFail: true });
  }

  return {
    slots,
    async collect(jobs, events) {
      const results: (ShardResult | undefined)[] = jobs.map(() => undefined);
      const left = new Map(
        jobs.map((job, at) => {
          const bytes = encodeShardJob(job);
          return [hashOf(bytes), { job, bytes, at }] as const;
        }),
      );
      for (const [id, { job, bytes }] of left) await add(id, bytes, job);
      while (left.size > 0) {
        const told = await waiting.blpop(listKey(run), LOOK_S);
        if (isClosed) throw new TrainError('the queue of shards was closed');
        if (told === null) {
          for (const [id, { job, bytes }] of left) {
            if (await redis.exists(resultKey(id))) await take(id);
            else if ((await queue.getJob(id)) === undefined || !(await redis.exists(jobKey(id)))) {
              events?.onLost?.(job.shard, 'Redis lost it');
              await queue.remove(id);
              await add(id, bytes, job);
            }
          }
          continue;
        }
        const { data } = toldSchema.safeParse(parsed(told[1]));
        // Of an earlier rollout, or done twice.
        if (data === undefined || !left.has(data.id)) continue;
        if (data.error !== null) throw new TrainError(data.error);
        await take(data.id);
      }
      return results as ShardResult[];

      /** What is damaged or of another policy is dropped, and added again when it is missed. */
      async function take(id: string): Promise<void> {
        const { job, at } = left.get(id)!;
        const bytes = await redis.getdelBuffer(resultKey(id));
        if (bytes === null) return;
        try {
          const result = decodeShardResult(bytes);
          refuseOther(job, result);
          results[at] = result;
          left.delete(id);
          await redis.del(jobKey(id));
        } catch (error) {
          if (!(error instanceof KeelError)) throw error;
          events?.onLost?.(job.shard, error.message);
        }
      }
    },
    async close() {
      isClosed = true;
      waiting.disconnect();
      await queue.close();
      redis.disconnect();
    },
  };
}

export interface ShardWorkerOptions {
  readonly connection: RedisConnection;
  /** Shards at once, each in a process of its own. */
  readonly concurrency?: number;
  /** Files with environments that may run here, matched by their content; Keel's own environments always may. */
  readonly files?: readonly string[];
  /** After so many milliseconds without a sign of life a worker's shard goes to another. */
  readonly lockMs?: number;
}

export interface ShardWorker {
  /** From now on takes at most so many at once: at least one, at most as many as it was started with. */
  limit(atOnce: number): void;
  close(): Promise<void>;
}

/** The worker's side; ready to take shards when this returns. */
export async function startShardWorker(options: ShardWorkerOptions): Promise<ShardWorker> {
  const { connection, concurrency = 1, files = [], lockMs = 15_000 } = options;
  const { Worker } = await import('bullmq');
  const redis = await connected(connection);
  const places = Array.from({ length: concurrency }, () => shardProcesses({ count: 1 }));
  const free = [...places];

  /** The environment as it is called here, or a refusal: nothing of it is loaded before. */
  function envHere(env: string | null, file: string | null): string {
    if (env === null) throw new TrainError('a shard names no environment');
    if (isGymReference(env) && !files.includes(env))
      throw new TrainError(
        `a worker refuses shards of ${env}: it was not named there; start it with --file ${env}, if you know what it does`,
      );
    if (!isEnvFile(env)) return env;
    const { file: named, id } = codeFileOf(env);
    const own = files
      .map(path => codeFileOf(path).file)
      .find(path => file !== null && sha256Of(path) === file);
    if (own === undefined)
      throw new TrainError(
        `a worker refuses shards of ${named}: it was not named there, or has other content; start it with --file ${named}, if you know what it does`,
      );
    return id === undefined ? own : `${own}#${id}`;
  }

  async function work(data: Data): Promise<Uint8Array | undefined> {
    const bytes = await redis.getBuffer(jobKey(data.id));
    // Its run has its result, or is gone.
    if (bytes === null) return undefined;
    const job = decodeShardJob(bytes);
    const task = { ...job.task, env: envHere(job.task.env, data.file) };
    const place = free.pop()!;
    try {
      const [result] = await place.collect([{ ...job, task }]);
      return encodeShardResult(result);
    } finally {
      free.push(place);
    }
  }

  const worker: BullWorker = new Worker(
    queueName,
    async ({ data: given }) => {
      const { data } = dataSchema.safeParse(given);
      if (data === undefined) return;
      let error: string | null = null;
      try {
        const result = await work(data);
        if (result === undefined) return;
        await redis.set(resultKey(data.id), Buffer.from(result), 'EX', LIFE_S);
      } catch (thrown) {
        error = (thrown as Error).message.slice(0, 2000);
      }
      await redis.rpush(listKey(data.run), JSON.stringify({ id: data.id, error }));
      await redis.expire(listKey(data.run), LIFE_S);
    },
    {
      ...queueOptions(connection),
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // A worker that is killed again and again is no fault of the shard.
      maxStalledCount: 1000,
    },
  );
  worker.on('error', () => {});
  await worker.waitUntilReady();
  return {
    limit(atOnce) {
      worker.concurrency = Math.min(concurrency, Math.max(1, atOnce));
    },
    async close() {
      await worker.close(true);
      for (const place of places) await place.close();
      redis.disconnect();
    },
  };
}

function parsed(text: string): unknown {
  try {
    return jsonOf(text);
  } catch {
    return undefined;
  }
}
