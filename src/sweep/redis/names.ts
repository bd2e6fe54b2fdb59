/** What things are called in Redis, and what a queue's jobs and results are. */
import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { VERSION } from '../../base/version.ts';
import type { RunOutcome } from '../../studies/schema.ts';
import { DataError, parseJob, parseOutcome, runKey } from '../job.ts';
import type { RunJob } from '../place.ts';

/** Before all keys, so that a Redis can be shared with others. */
export const prefix = 'keel';

/**
 * The version is part of the queue's name: bits of another one may be others, and workers of it never see these jobs, so
 * that none of them has to refuse one and hand it back. It is in the job as well, and looked at.
 */
export const queueName = (version: string = VERSION): string => `runs-${version.replaceAll(/[^\w.-]/g, '_')}`;

/** In a study's directory of runs: by what its conductor and a worker find out that they share it. */
export const homeFile = '.keel-study-home';

/** How long what nobody has asked for stays in Redis, in seconds. */
export const runLifeS: number = 7 * 24 * 3600;

/** Keys of our own, beside those of BullMQ. */
export const keys = {
  /** Ids of workers. */
  workers: `${prefix}:workers`,
  /** What one does, as JSON; gone a while after the worker is. */
  worker: (id: string): string => `${prefix}:worker:${id}`,
  /** A run in bytes. */
  run: (study: string, job: RunJob): string => `${prefix}:run:${study}.${job.run}.${runKey(job)}`,
  /** How often workers have refused a job. */
  refused: (id: string): string => `${prefix}:refused:${id}`,
  /** That a job is to stop. */
  stop: (id: string): string => `${prefix}:stop:${id}`,
};

/**
 * The id of a job: which part of which run. Of what the run is made of a hash is in it, so that another study of the same
 * name does not get this one's results. BullMQ does not take a colon.
 */
export const jobId = (study: string, job: RunJob): string =>
  `${study}.${job.run}.${job.until ?? 'end'}.${runKey(job)}.${objectiveKey(job)}`;

const objectiveKey = ({ objective: { metric, direction, of } }: RunJob): string =>
  createHash('sha256').update([metric, direction, of].join('\n')).digest('hex').slice(0, 8);

const name = z.string().check(z.regex(/^[A-Za-z0-9][\w.-]{0,119}$/));
const token = z.string().check(z.regex(/^[0-9a-f-]{36}$/));

/** What is in the queue. */
export interface Envelope {
  readonly job: RunJob;
  readonly study: string;
  /** Of the study's directory of runs: a worker that has it there shares it. */
  readonly home: string;
}
const envelopeSchema = z.strictObject({ job: z.unknown(), study: name, home: token });

/** What a worker gives back. */
export interface Result {
  readonly outcome: RunOutcome;
  /** SHA-256 of the run in bytes, if it was put into Redis. */
  readonly carried: string | null;
  /** Why it was not, if it should have been. */
  readonly note: string | null;
}
const resultSchema = z.strictObject({
  outcome: z.unknown(),
  carried: z.nullable(z.string().check(z.regex(/^[0-9a-f]{64}$/))),
  note: z.nullable(z.string().check(z.maxLength(2000))),
});

/** What a worker says under way. */
export const progressSchema: z.ZodMiniType<{ started?: string | undefined; retried?: string | undefined }> =
  z.strictObject({
    started: z.optional(z.string().check(z.maxLength(500))),
    retried: z.optional(z.string().check(z.maxLength(2000))),
  });

export function parseEnvelope(data: unknown, source: string): Envelope {
  const { success, data: envelope } = z.safeParse(envelopeSchema, data);
  if (!success) throw new DataError(`${source} is no job of a study: another program put it there`);
  return { ...envelope, job: parseJob(envelope.job, source) };
}

export function parseResult(data: unknown, source: string, job: RunJob): Result {
  const { success, data: result } = z.safeParse(resultSchema, data);
  if (!success) throw new DataError(`the result of ${source} is none of ours`);
  return { ...result, outcome: parseOutcome(result.outcome, source, job) };
}

/** The name of a study, if it may be one here. */
export function requireStudyName(study: string): string {
  if (z.safeParse(name, study).success) return study;
  throw new DataError(
    `a study called ${JSON.stringify(study)} has no queue: use letters, digits, dot, dash and underscore`,
  );
}

/** When things are given up on, in ms. */
export interface QueueTimes {
  /**
   * How long a worker has a job without renewing it. Training runs in processes of their own, so the worker's thread renews
   * on time (four times in it) whatever an iteration takes; but a machine that swaps and a Redis that reads its file back
   * must not cost a job its worker. A job that two have costs time and nothing else.
   */
  readonly lockMs: number;
  /** How often jobs are looked for whose worker is gone: with `lockMs`, how long they wait for another. */
  readonly stalledMs: number;
  /** Of the first try after an error that nobody expected; then twice that, and so on. */
  readonly backoffMs: number;
  /** How often workers say what they do. */
  readonly beatMs: number;
  /** How long that is believed. A worker that could not say it for two thirds of this stops what it writes into a shared directory. */
  readonly leaseMs: number;
  /** How often a conductor looks, besides being told. */
  readonly pollMs: number;
  /** How long a worker whose disk is full takes no job. */
  readonly pauseMs: number;
  /** How long a job waits that this worker cannot do now. */
  readonly handBackMs: number;
}

export const usualTimes: QueueTimes = {
  lockMs: 60_000,
  stalledMs: 15_000,
  backoffMs: 2000,
  beatMs: 2000,
  leaseMs: 45_000,
  pollMs: 2000,
  pauseMs: 60_000,
  handBackMs: 2000,
};

/** Tries after errors that nobody expected. What is known to be another machine's matter does not count. */
export const mostAttempts = 5;
/**
 * How often a job may lose its worker. One whose process dies is told by the worker (three times), so a stall is a machine
 * that went away, which is not the job's fault: it happens often where machines are cheap because they may be taken away.
 */
export const mostStalls = 50;
/** How often a job is refused by workers, none of which has its file, before it is a dead letter. */
export const mostRefusals = 5;

/** BullMQ takes 1 to 2,097,151, the lowest first. */
export const bullPriority = (priority: number): number => 1_000_001 - Math.round(priority);
