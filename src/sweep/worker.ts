/**
 * A worker: takes jobs of studies from a queue and trains their runs in processes of this machine, while its own thread
 * renews what it has taken.
 *
 * BullMQ delivers at least once. That is harmless, because a run resumes to the same bits: what was done is only judged,
 * and a run that somebody else writes is left to them.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { Job, Worker } from 'bullmq';
import { codeFileOf, isGymReference } from '../base/code-reference.ts';
import { makeDirectories, readNames } from '../base/directories.ts';
import { KeelError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { lockHolder, lockPattern } from '../runs/lock.ts';
import { sha256Of } from '../runs/named-code.ts';
import { ElsewhereError, isMachineWide, passes } from './elsewhere.ts';
import { asSentence, DataError } from './job.ts';
import { carryRun, fetchRun, forgetOldest, isHome, makeOwnRoot } from './own-runs.ts';
import type { NamedHere } from './permit.ts';
import { openPool, type Pool, type PoolOptions } from './places/here.ts';
import { redisAddress, shownAddress } from './redis/address.ts';
import { connect, connectionOptions, redisError, withoutSecrets } from './redis/connection.ts';
import {
  type Envelope,
  keys,
  mostRefusals,
  mostStalls,
  parseEnvelope,
  prefix,
  type QueueTimes,
  queueName,
  type Result,
  runLifeS,
  usualTimes,
} from './redis/names.ts';
import { endPresence, listWorkers, othersHave, tellPresence, type WorkerPresence } from './redis/presence.ts';

export interface WorkerOptions extends NamedHere {
  /** Of Redis or Valkey: `redis://host:6379`, `rediss://` for TLS. */
  readonly url: string;
  /** A study's directory of runs that this machine shares with its conductor. Without, runs travel through Redis. */
  readonly root?: string | undefined;
  /** Jobs at once; unless told, as many as there are cores and memory for. */
  readonly concurrency?: number | undefined;
  /** Ends it: runs under way stop with a checkpoint and go back into the queue. */
  readonly signal?: AbortSignal | undefined;
  /** How many runs it trains now, whenever that changes. */
  readonly onBusy?: ((runs: number) => void) | undefined;
  /** What it has to say, a line at a time. */
  readonly say?: ((line: string) => void) | undefined;
  readonly times?: Partial<QueueTimes> | undefined;
  /** Where jobs are done; for tests. */
  readonly open?: ((options: PoolOptions) => Pool) | undefined;
}

/** A worker that runs. */
export interface RunningWorker {
  readonly id: string;
  /** Jobs at once. */
  readonly concurrency: number;
  /** Directory of runs of its own, where none is shared. */
  readonly ownRoot: string;
  /** Settles when it has ended. */
  readonly done: Promise<void>;
  /** Ends it. May be called twice. */
  close(): Promise<void>;
}

/** A job that this worker has. */
interface Doing {
  readonly id: string;
  readonly envelope: Envelope;
  readonly shared: boolean;
  readonly since: number;
  readonly controller: AbortController;
}

/** Why a job under way was stopped. */
type Stopped = 'closing' | 'asked' | 'lease';

/** Starts a worker; it is ready to take jobs when this returns. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { root, files = [], engines = [], say = () => {}, signal } = options;
  signal?.throwIfAborted();
  const times = { ...usualTimes, ...options.times };
  const address = redisAddress(options.url);
  const hashes = files.filter(path => !isGymReference(path)).map(path => hashOf(path));
  const redis = await connect(address);
  const { DelayedError, UnrecoverableError, WaitingError, Worker } = await import('bullmq');

  const id = randomUUID();
  const shared = root === undefined ? undefined : resolve(root);
  if (shared !== undefined) makeDirectories(shared);
  const ownRoot = makeOwnRoot();
  const active = new Map<string, Doing>();
  const retriedOf = new Map<string, (why: string) => void>();
  const startedOf = new Map<string, (worker: string) => void>();
  let paused: string | null = null;
  let pauseTimer: NodeJS.Timeout | undefined;
  let done = 0;

  const pool = (options.open ?? openPool)({
    files,
    engines,
    jobs: options.concurrency,
    // Who has the run is on this machine or another: the job waits in the queue, not here.
    patienceMs: 0,
    onStarted: (job, worker) => startedOf.get(job.run)?.(worker),
    onRetried: (job, why) => retriedOf.get(job.run)?.(why),
  });
  const concurrency = pool.slots;

  const presence = (): WorkerPresence => ({
    id,
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    jobs: concurrency,
    files: hashes,
    doing: [...active.values()].map(({ envelope: { study, job }, since }) => ({
      study,
      run: job.run,
      until: job.until,
      since,
    })),
    paused,
    done,
  });

  /** Takes no jobs for a while: the disk is full, or the like. */
  const pauseFor = (why: string): void => {
    if (paused !== null || closing) return;
    paused = asSentence(why).slice(0, 900);
    say(`paused for ${Math.round(times.pauseMs / 1000)} s, its jobs go to others: ${why}`);
    void worker.pause(true);
    pauseTimer = setTimeout(() => {
      paused = null;
      if (!closing) worker.resume();
    }, times.pauseMs);
  };

  const handBack = async (job: Job, token: string | undefined, ms: number): Promise<never> => {
    await job.moveToDelayed(Date.now() + ms, token);
    throw new DelayedError();
  };

  /** Does a job of the queue, or says what becomes of it. */
  const work = async (job: Job, token: string | undefined): Promise<Result> => {
    let envelope: Envelope;
    try {
      envelope = parseEnvelope(job.data, `job ${job.id}`);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      say(`refused ${job.id}: ${error.message}`);
      throw new UnrecoverableError(error.message);
    }
    const { run } = envelope.job;
    // Twice at once on one worker, such as after Redis came back empty: the first goes on, the other waits for it.
    if (
      [...active.values()].some(
        other => other.envelope.job.run === run && other.envelope.study === envelope.study,
      )
    )
      return handBack(job, token, times.handBackMs);
    const isShared = shared !== undefined && isHome(shared, envelope.home);
    const place = isShared ? shared : join(ownRoot, envelope.study);
    const controller = new AbortController();
    const doing: Doing = { id: job.id!, envelope, shared: isShared, since: Date.now(), controller };
    active.set(doing.id, doing);
    options.onBusy?.(active.size);
    const tell = (progress: object): void => void job.updateProgress(progress).catch(() => {});
    startedOf.set(run, () => tell({ started: `${hostname()}:${process.pid}` }));
    retriedOf.set(run, why => tell({ retried: why.slice(0, 1000) }));
    try {
      if (!isShared) await fetchRun(redis, envelope, place);
      const outcome = await pool.run(envelope.job, place, controller.signal);
      const carried = isShared ? null : await carryRun(redis, envelope, place);
      done++;
      say(
        `${run}${outcome.status === 'failed' ? ' failed' : ''} at step ${outcome.step}${outcome.problem === null ? '' : `: ${outcome.problem}`}`,
      );
      const note =
        carried === undefined
          ? `${run} is too large to travel through Redis: it stays on ${hostname()}`
          : null;
      return { outcome, carried: carried ?? null, note };
    } catch (error) {
      const why = controller.signal.aborted ? (controller.signal.reason as Stopped) : undefined;
      if (why !== undefined && error === why) {
        // What was done so far is of use to the next.
        if (!isShared && existsSync(join(place, run))) await carryRun(redis, envelope, place);
        if (why === 'asked') throw new UnrecoverableError('stopped by the conductor of its study');
        if (why === 'lease') return handBack(job, token, times.handBackMs);
        await job.moveToWait(token);
        throw new WaitingError();
      }
      if (!(error instanceof ElsewhereError)) throw error;
      if (error.code === 'version') throw new UnrecoverableError(error.message);
      if (error.code === 'refused') return await refused(job, token, envelope, error);
      if (passes(error)) await takeLeftBehind(join(place, run), envelope);
      if (isMachineWide(error)) pauseFor(error.message);
      else if (!passes(error)) throw new UnrecoverableError(error.message);
      tell({ retried: asSentence(error.message) });
      return await handBack(job, token, times.handBackMs);
    } finally {
      active.delete(doing.id);
      options.onBusy?.(active.size);
      startedOf.delete(run);
      retriedOf.delete(run);
      forgetOldest(ownRoot, new Set([...active.values()].map(other => other.envelope.job.run)));
    }
  };
  const told = new Set<string>();
  /** A job that names code that was not named here: for a worker that has it, if there is one; else a dead letter, in the end. */
  const refused = async (
    job: Job,
    token: string | undefined,
    { job: { subject } }: Envelope,
    { message }: ElsewhereError,
  ): Promise<never> => {
    // It comes again, for another to take it.
    if (!told.has(job.id!)) say(`refused ${job.id}: ${message}`);
    told.add(job.id!);
    const isWelcome = await othersHave(redis, subject.sha256, hashes);
    const refusals = await redis.incr(keys.refused(job.id!));
    await redis.expire(keys.refused(job.id!), runLifeS);
    if (!isWelcome && refusals >= mostRefusals) {
      await redis.del(keys.refused(job.id!));
      throw new UnrecoverableError(`${hostname()} refused it: ${message}`);
    }
    await job.updateProgress({ retried: asSentence(`${hostname()} refused it: ${message}`) });
    return handBack(job, token, Math.min(times.handBackMs * 2 ** Math.min(refusals - 1, 6), 60_000));
  };

  /**
   * Takes the lock of a run away that a worker of another machine left behind, so that the job finds it free when it comes
   * again. From here that process cannot be asked; but workers say what they do, and stop where they cannot.
   */
  const takeLeftBehind = async (dir: string, { study, job: { run } }: Envelope): Promise<void> => {
    const holder = lockHolder(dir);
    if (holder === undefined || holder.host === hostname()) return;
    const there = (await listWorkers(redis)).some(
      ({ host, doing }) => host === holder.host && doing.some(one => one.study === study && one.run === run),
    );
    if (there) return;
    for (const name of readNames(dir).filter(one => lockPattern.test(one)))
      rmSync(join(dir, name), { force: true });
    say(`${run}: ${holder.host} had it and is gone; it goes on here`);
  };

  const worker: Worker = new Worker(queueName(), async (job, token) => work(job, token), {
    connection: connectionOptions(address),
    prefix,
    name: `${hostname()}:${process.pid}`,
    concurrency,
    lockDuration: times.lockMs,
    lockRenewTime: times.lockMs / 4,
    stalledInterval: times.stalledMs,
    maxStalledCount: mostStalls,
    // After an error of the connection; its own 15 s are long for a Redis that is back after one.
    runRetryDelay: 1000,
    drainDelay: 5,
  });
  const said = new Set<string>();
  worker.on('error', error => {
    const text = withoutSecrets(asSentence(error.message), address);
    // A Redis that is away says the same again and again.
    if (said.has(text)) return;
    if (said.size < 100) said.add(text);
    say(`Redis at ${shownAddress(address)}: ${text}`);
  });
  worker.on('failed', (job, error) =>
    say(`${job?.id ?? 'a job'}: ${withoutSecrets(asSentence(error.message), address)}`),
  );

  let beatenAt = performance.now();
  let isBeating = false;
  const beat = async (): Promise<void> => {
    await tellPresence(redis, presence(), times.leaseMs);
    beatenAt = performance.now();
    const ids = [...active.keys()];
    if (ids.length === 0) return;
    const stops = await redis.mget(ids.map(one => keys.stop(one)));
    ids.forEach((one, i) => {
      if (stops[i] !== null) stop(one, 'asked');
    });
  };
  const stop = (one: string, why: Stopped): void => active.get(one)?.controller.abort(why);
  const timer = setInterval(() => {
    // In a shared directory another takes what this one does not say that it has.
    if (performance.now() - beatenAt > (2 / 3) * times.leaseMs)
      for (const doing of active.values()) if (doing.shared) stop(doing.id, 'lease');
    // One that waits for a Redis which is away is enough.
    if (isBeating) return;
    isBeating = true;
    void beat()
      .catch(() => {})
      .finally(() => {
        isBeating = false;
      });
  }, times.beatMs);

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(timer);
    clearTimeout(pauseTimer);
    signal?.removeEventListener('abort', close_);
    const ended = worker.close();
    for (const one of active.keys()) stop(one, 'closing');
    await ended.catch(() => {});
    await pool.close();
    await endPresence(redis, id).catch(() => {});
    redis.disconnect();
    rmSync(ownRoot, { recursive: true, force: true });
  };
  let settle = (): void => {};
  const ended = new Promise<void>(resolved => {
    settle = resolved;
  });
  const close_ = (): Promise<void> => {
    closing ??= close().finally(settle);
    return closing;
  };
  signal?.addEventListener('abort', close_, { once: true });
  try {
    await worker.waitUntilReady();
    await beat();
  } catch (error) {
    await close_();
    throw redisError(error, address);
  }
  return { id, concurrency, ownRoot, done: ended, close: close_ };
}

function hashOf(path: string): string {
  const { file } = codeFileOf(path);
  const hash = sha256Of(file);
  if (hash === undefined)
    throw new KeelError(`${file} is no file that can be read: check the path (--file)`, {
      code: 'file-not-found',
    });
  return hash;
}
