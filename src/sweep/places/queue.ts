/**
 * Runs on any number of machines: jobs go through Redis to workers (`keel worker`). The conductor's journal is the truth,
 * the queue only carries: what Redis has lost is put there again, and what comes twice is taken once.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import * as z from 'zod/mini';
import { makeDirectories } from '../../base/directories.ts';
import { KeelError } from '../../base/errors.ts';
import { readBounded, writeFileAtomic } from '../../base/files.ts';
import { jsonOf, toJson } from '../../base/json.ts';
import { VERSION } from '../../base/version.ts';
import type { RunOutcome } from '../../studies/schema.ts';
import type { WorkersView } from '../../studies/workers-view.ts';
import { ElsewhereError } from '../elsewhere.ts';
import { DataError, failedOutcome, parseJob } from '../job.ts';
import type { Place, PlaceEvents, RunJob } from '../place.ts';
import { type RedisAddress, redisAddress, shownAddress } from '../redis/address.ts';
import { packRun, stepOf, unpackRun } from '../redis/archive.ts';
import { connect, connectionOptions, redisError } from '../redis/connection.ts';
import {
  bullPriority,
  type Envelope,
  homeFile,
  jobId,
  keys,
  mostAttempts,
  parseResult,
  prefix,
  progressSchema,
  type QueueTimes,
  queueName,
  requireStudyName,
  runLifeS,
  usualTimes,
} from '../redis/names.ts';
import { listWorkers, type WorkerPresence } from '../redis/presence.ts';

export interface QueuePlaceOptions extends PlaceEvents {
  /** The study's name: part of what its jobs are called. */
  readonly study: string;
  /** The study's directory of runs: shared with workers, or filled from Redis. */
  readonly runs: string;
  /** What should be known and stops nothing. */
  readonly onNote?: ((text: string) => void) | undefined;
  readonly times?: Partial<QueueTimes> | undefined;
}

/** A job that is waited for. */
interface Waiting {
  readonly id: string;
  readonly job: RunJob;
  readonly waiters: Set<{
    readonly done: (outcome: RunOutcome) => void;
    readonly failed: (error: unknown) => void;
  }>;
  /** Whether it was put into the queue by this conductor: what is there from before may be an old failure. */
  added: boolean;
  /** How often its result was there and its run was not. */
  lost: number;
}

/** Completed jobs stay for a conductor that was killed before it wrote what came of them down. */
const keepCompleted = { age: runLifeS, count: 20_000 };
/** Dead letters, for people: `keel worker --queue … --failed`. */
const keepFailed = { age: 30 * 24 * 3600, count: 1000 };
/** A result without its run is asked for again this often. */
const mostLost = 3;

/** Opens a queue as a place. */
export async function openQueuePlace(url: string, options: QueuePlaceOptions): Promise<Place> {
  const address = redisAddress(url);
  const times = { ...usualTimes, ...options.times };
  const study = requireStudyName(options.study);
  const runs = resolve(options.runs);
  const home = homeOf(runs);
  const redis = await connect(address);
  const { Queue, QueueEvents } = await import('bullmq');
  const connection = connectionOptions(address);
  const queue = new Queue(queueName(), { connection, prefix });
  const events = new QueueEvents(queueName(), { connection, prefix });
  // They connect again by themselves; the poll below finds what was missed.
  queue.on('error', () => {});
  events.on('error', () => {});

  const waiting = new Map<string, Waiting>();
  let workers: readonly WorkerPresence[] = [];
  let counts: QueueCounts = { waiting: 0, active: 0, delayed: 0, failed: 0 };
  let closed = false;

  const add = async (one: Waiting): Promise<void> => {
    const { job, id } = one;
    await bringRun(redis, study, job, runs);
    await redis.del(keys.stop(id));
    const envelope: Envelope = { job, study, home };
    await queue.add('run', envelope, {
      jobId: id,
      attempts: mostAttempts,
      backoff: { type: 'exponential', delay: times.backoffMs },
      priority: bullPriority(job.priority),
      removeOnComplete: keepCompleted,
      removeOnFail: keepFailed,
      // Errors are sentences; where they were thrown is of no use on another machine.
      stackTraceLimit: 0,
    });
    one.added = true;
  };

  /** Looks at what became of a job, and puts it into the queue where it is not. */
  const look = async (one: Waiting): Promise<void> => {
    const { id, job } = one;
    // In this order: a job that was read before it was done has no result yet.
    const state = await queue.getJobState(id);
    const found: Job | undefined = state === 'unknown' ? undefined : await queue.getJob(id);
    if (found === undefined) {
      if (one.added) tellAll(one, 'it was no longer in the queue');
      return add(one);
    }
    if (state === 'failed') {
      // Of an earlier session, which its user has looked at: it is tried once more.
      if (one.added)
        return settle(one, failedOutcome(job, 'queue', found.failedReason ?? 'it gave no reason'));
      await found.remove();
      return add(one);
    }
    one.added = true;
    if (state !== 'completed') return;
    try {
      const { outcome, carried, note } = parseResult(found.returnvalue, `job ${id}`, job);
      if (note !== null) options.onNote?.(note);
      if (carried !== null && !(await takeRun(job, outcome, carried)) && ++one.lost < mostLost) {
        tellAll(one, 'its run was no longer in Redis');
        await found.remove();
        return add(one);
      }
      settle(one, outcome);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      settle(one, failedOutcome(job, 'queue', error.message));
    }
  };

  /** Brings the run of a result into the study's directory. */
  const takeRun = async (job: RunJob, { finished, step }: RunOutcome, sha256: string): Promise<boolean> => {
    if (stepOf(join(runs, job.run)) >= step && existsSync(join(runs, job.run))) return true;
    const key = keys.run(study, job);
    const bytes = await redis.getBuffer(key);
    if (bytes === null) return false;
    // Another may have carried it further meanwhile: what is inside is checked by itself.
    const isSame = createHash('sha256').update(bytes).digest('hex') === sha256;
    try {
      await unpackRun(bytes, runs, job.run);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      return false;
    }
    if (finished && isSame) await redis.del(key);
    return true;
  };

  const tellAll = ({ job }: Waiting, why: string): void => options.onRetried?.(job, why);

  const settle = (one: Waiting, outcome: RunOutcome): void => {
    waiting.delete(one.id);
    for (const { done } of one.waiters) done(outcome);
  };

  /** One look at a time, at all of them or at one that an event names. */
  let looking: Promise<void> = Promise.resolve();
  const lookAt = (ids: () => Iterable<string>): Promise<void> => {
    looking = looking.then(async () => {
      for (const id of [...ids()]) {
        const one = waiting.get(id);
        if (one === undefined || closed) continue;
        try {
          await look(one);
        } catch (error) {
          waiting.delete(id);
          // Of the disk, say: this place cannot go on, whatever Redis does. What Redis says is said without its secrets.
          const told = error instanceof KeelError ? error : redisError(error, address);
          if (!closed) for (const { failed } of one.waiters) failed(told);
        }
      }
    });
    return looking;
  };

  let isPolling = false;
  const poll = async (): Promise<void> => {
    if (isPolling || closed) return;
    isPolling = true;
    try {
      workers = await listWorkers(redis);
      counts = await countsOf(queue);
      await lookAt(() => waiting.keys());
    } catch {
      // Redis is away: the next one sees.
    } finally {
      isPolling = false;
    }
  };
  const timer = setInterval(() => void poll(), times.pollMs);
  events.on('completed', ({ jobId: id }) => void lookAt(() => [id]));
  events.on('failed', ({ jobId: id }) => void lookAt(() => [id]));
  events.on('stalled', ({ jobId: id }) => {
    const one = waiting.get(id);
    if (one !== undefined) tellAll(one, 'its worker is gone');
  });
  events.on('progress', ({ jobId: id, data }) => {
    const one = waiting.get(id);
    const { success, data: progress } = z.safeParse(progressSchema, data);
    if (one === undefined || !success) return;
    if (progress.started !== undefined) options.onStarted?.(one.job, progress.started);
    if (progress.retried !== undefined) tellAll(one, progress.retried);
  });
  try {
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
    workers = await listWorkers(redis);
    counts = await countsOf(queue);
  } catch (error) {
    throw redisError(error, address);
  }

  return {
    get slots() {
      const usable = workers.filter(({ version, paused }) => version === VERSION && paused === null);
      return Math.max(
        1,
        usable.reduce((sum, { jobs }) => sum + jobs, 0),
      );
    },
    run(given, signal) {
      return new Promise<RunOutcome>((done, failed) => {
        signal?.throwIfAborted();
        if (closed) throw new Error('this place is closed: open another');
        const job = parseJob(jsonOf(toJson(given)), 'the study');
        if (job.version !== VERSION)
          throw new ElsewhereError(
            `the study is of Keel ${job.version}, this is ${VERSION}: go on with it with that version`,
            { code: 'version' },
          );
        const id = jobId(study, job);
        const one = waiting.get(id) ?? { id, job, waiters: new Set(), added: false, lost: 0 };
        const stop = (): void => {
          one.waiters.delete(waiter);
          failed(signal?.reason);
          if (one.waiters.size > 0) return;
          waiting.delete(id);
          void withdraw(redis, queue, id).catch(() => {});
        };
        const waiter = {
          done: (outcome: RunOutcome) => {
            signal?.removeEventListener('abort', stop);
            done(outcome);
          },
          failed: (error: unknown) => {
            signal?.removeEventListener('abort', stop);
            failed(error);
          },
        };
        one.waiters.add(waiter);
        signal?.addEventListener('abort', stop, { once: true });
        waiting.set(id, one);
        void lookAt(() => [id]);
      });
    },
    view: () => ({
      workers: workers.map(({ host, pid, version, doing, paused }) => ({
        name: `${host}:${pid}${paused === null ? '' : ` (paused: ${paused})`}`,
        host,
        version,
        doing: doing.map(({ run }) => run),
        since: Math.min(Date.now(), ...doing.map(({ since }) => since)),
      })),
      queue: counts,
    }),
    async close() {
      if (closed) return;
      closed = true;
      clearInterval(timer);
      const gone = new Error('the queue was closed: open it again, and what was under way is found there');
      for (const { waiters } of waiting.values()) for (const { failed } of waiters) failed(gone);
      waiting.clear();
      await Promise.allSettled([queue.close(), events.close()]);
      redis.disconnect();
    },
  };
}

type QueueCounts = WorkersView['queue'];

/** All of a queue's jobs, of whichever study. */
async function countsOf(queue: Queue): Promise<QueueCounts> {
  const { waiting, prioritized, delayed, active, failed } = await queue.getJobCounts(
    'waiting',
    'prioritized',
    'delayed',
    'active',
    'failed',
  );
  return {
    waiting: (waiting ?? 0) + (prioritized ?? 0),
    active: active ?? 0,
    delayed: delayed ?? 0,
    failed: failed ?? 0,
  };
}

/** Takes a job out of the queue; one that a worker has is stopped there, with a checkpoint. */
async function withdraw(redis: Redis, queue: Queue, id: string): Promise<void> {
  const job = await queue.getJob(id);
  if (job === undefined || (await job.isCompleted())) return;
  await redis.set(keys.stop(id), '1', 'EX', 3600);
  // Refused where a worker has it, which then reads the above.
  await job.remove().catch(() => {});
}

/** Puts a run into Redis that is only here: it came back empty, or the study was begun on this machine alone. */
async function bringRun(redis: Redis, study: string, job: RunJob, runs: string): Promise<void> {
  const key = keys.run(study, job);
  const dir = join(runs, job.run);
  if (stepOf(dir) <= 0 || (await redis.exists(key)) === 1) return;
  const bytes = packRun(dir);
  if (bytes !== undefined) await redis.set(key, bytes, 'EX', runLifeS);
}

/** Marks a directory of runs, so that a worker can tell whether it shares it. */
function homeOf(runs: string): string {
  makeDirectories(runs);
  const path = join(runs, homeFile);
  if (existsSync(path)) {
    const text = readBounded(path, 100).toString('utf8').trim();
    if (/^[0-9a-f-]{36}$/.test(text)) return text;
  }
  const home = randomUUID();
  writeFileAtomic(path, `${home}\n`);
  return home;
}

/** A dead letter. */
export interface DeadLetter {
  readonly id: string;
  readonly study: string | null;
  readonly run: string | null;
  readonly why: string;
  readonly tries: number;
  /** When, in ms since 1970. */
  readonly at: number | null;
}

/** What is known of a queue: for people and the page. */
export interface QueueState {
  readonly address: string;
  readonly workers: readonly WorkerPresence[];
  readonly counts: { readonly waiting: number; readonly active: number; readonly failed: number };
  readonly failed: readonly DeadLetter[];
}

const letterSchema = z.object({ study: z.string(), job: z.object({ run: z.string() }) });

/** Reads what a queue has, and its newest dead letters. */
export async function readQueue(url: string, most = 50): Promise<QueueState> {
  const address: RedisAddress = redisAddress(url);
  const redis = await connect(address);
  const { Queue } = await import('bullmq');
  const queue = new Queue(queueName(), {
    connection: connectionOptions(address),
    prefix,
    skipMetasUpdate: true,
  });
  queue.on('error', () => {});
  try {
    const { waiting, delayed, active, failed: dead } = await countsOf(queue);
    const failed = await queue.getFailed(0, most - 1);
    return {
      address: shownAddress(address),
      workers: await listWorkers(redis),
      counts: { waiting: waiting + delayed, active, failed: dead },
      failed: failed.map(job => {
        const { success, data } = z.safeParse(letterSchema, job.data);
        return {
          id: String(job.id).slice(0, 500),
          study: success ? data.study.slice(0, 200) : null,
          run: success ? data.job.run.slice(0, 200) : null,
          why: String(job.failedReason ?? '').slice(0, 1000),
          tries: job.attemptsMade,
          at: job.finishedOn ?? null,
        };
      }),
    };
  } catch (error) {
    throw redisError(error, address);
  } finally {
    await queue.close().catch(() => {});
    redis.disconnect();
  }
}
