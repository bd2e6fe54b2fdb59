/**
 * Shards of a run on a queue: the run, one long job of its own, adds them and waits; workers on any machine collect them in
 * processes of theirs.
 *
 * Bytes travel beside the queue: the job's under its own digest, the result's under the same, both gone after an hour. A
 * worker tells on the run's list that it is through. Whatever Redis loses is added again, and done again to the same bits:
 * nothing here must happen only once.
 */

import { createHash, randomUUID } from 'node:crypto';
import type { Queue as BullQueue, Worker as BullWorker, Job, QueueOptions } from 'bullmq';
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
import { ElsewhereError } from './elsewhere.ts';
import { permit } from './permit.ts';
import { type RedisAddress, redisAddress } from './redis/address.ts';
import { connect, connectionOptions } from './redis/connection.ts';
import { prefix } from './redis/names.ts';
import { othersHave } from './redis/presence.ts';

/** Bits of another version may be others: its workers never see these jobs. */
const queueName = `shards-${VERSION.replaceAll(/[^\w.-]/g, '_')}`;
/** Seconds for which bytes stay that nobody has taken. */
const LIFE_S = 3600;
/** Seconds after which it is looked whether Redis still has what waits. */
const LOOK_S = 2;
/** For how long a worker leaves a shard alone that is for another, which has its file. */
const HAND_BACK_MS = 200;
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

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const queueOptions = (address: RedisAddress): QueueOptions => ({
  connection: connectionOptions(address),
  prefix,
});

export interface ShardQueueOptions {
  /** Of Redis or Valkey, as workers are told it. One that is not there is an error, one that goes away later is waited for. */
  readonly url: string;
  /** How many workers there may be, for the time that environments took: as many as shards unless told. */
  readonly slots?: number;
}

/** The run's side. */
export async function shardQueue({ url, slots = 256 }: ShardQueueOptions): Promise<ShardPlace> {
  const address = redisAddress(url);
  const redis = await connect(address);
  // It waits on the list, and nothing else can use it meanwhile.
  const waiting = redis.duplicate();
  waiting.on('error', () => {});
  const { Queue } = await import('bullmq');
  const queue: BullQueue = new Queue(queueName, queueOptions(address));
  queue.on('error', () => {});
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
  /** Of Redis or Valkey. */
  readonly url: string;
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
  const { url, concurrency = 1, files = [], lockMs = 15_000 } = options;
  const address = redisAddress(url);
  const redis = await connect(address);
  const { DelayedError, Worker } = await import('bullmq');
  const hashes = files.flatMap(path => (isGymReference(path) ? [] : (sha256Of(codeFileOf(path).file) ?? [])));
  const places = Array.from({ length: concurrency }, () => shardProcesses({ count: 1 }));
  const free = [...places];

  async function work(data: Data): Promise<Uint8Array | undefined> {
    const bytes = await redis.getBuffer(jobKey(data.id));
    // Its run has its result, or is gone.
    if (bytes === null) return undefined;
    const job = decodeShardJob(bytes);
    const { env, options } = job.task;
    if (env === null) throw new TrainError('a shard names no environment');
    // Whose file it is, as for whole runs: nothing of it is loaded before.
    const { reference } = permit({ kind: 'env', reference: env, sha256: data.file, options }, { files });
    const task = { ...job.task, env: reference };
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
    async (queued: Job, token) => {
      const { data } = dataSchema.safeParse(queued.data);
      if (data === undefined) return;
      let error: string | null = null;
      try {
        const result = await work(data);
        if (result === undefined) return;
        await redis.set(resultKey(data.id), Buffer.from(result), 'EX', LIFE_S);
      } catch (thrown) {
        const { message } = thrown as Error;
        if (thrown instanceof ElsewhereError && (await othersHave(redis, data.file, hashes))) {
          await queued.moveToDelayed(Date.now() + HAND_BACK_MS, token);
          throw new DelayedError();
        }
        error = (thrown instanceof ElsewhereError ? `a worker refused a shard: ${message}` : message).slice(
          0,
          2000,
        );
      }
      await redis.rpush(listKey(data.run), JSON.stringify({ id: data.id, error }));
      await redis.expire(listKey(data.run), LIFE_S);
    },
    {
      ...queueOptions(address),
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
