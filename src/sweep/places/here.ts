/** Runs in processes of this machine: no service, as many at once as it has cores and memory for. */
import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { availableParallelism, freemem } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as z from 'zod/mini';
import type { RunOutcome } from '../../studies/schema.ts';
import { ElsewhereError, passes } from '../elsewhere.ts';
import { failedOutcome, parseOutcome } from '../job.ts';
import type { NamedHere } from '../permit.ts';
import type { Place, PlaceEvents, RunJob } from '../place.ts';
import { workerName } from '../work.ts';
import { type Order, type Report, reportSchema } from './messages.ts';

/** How this machine is used. */
export interface PoolOptions extends NamedHere, PlaceEvents {
  /** Jobs at once at the most; unless told, as many as there are cores and memory for. */
  readonly jobs?: number | undefined;
  /** How long a run that another process has is waited for, such as one whose conductor was just killed. */
  readonly patienceMs?: number | undefined;
}

/** The same as a place: all runs in one directory. */
export interface HereOptions extends PoolOptions {
  /** Directory of runs. */
  readonly root: string;
}

/** Processes that do jobs, each in the directory of runs that it is told. */
export interface Pool extends Pick<Place, 'slots' | 'close'> {
  run(job: RunJob, root: string, signal?: AbortSignal): Promise<RunOutcome>;
}

/** How often a job's process may die before the job is to blame. */
const mostDeaths = 3;
/** What a process with an environment of usual size takes; what those of this study took is used once it is known. */
const guessedBytes = 250 * 2 ** 20;
/** How long a process may take to stop when the place is closed. */
const closingMs = 20_000;
/** What others on the machine may want meanwhile. */
const memoryShare = 0.8;

/** A process, and what it does. */
interface Worker {
  readonly child: ChildProcess;
  /** Resolves when it can take a job. */
  readonly ready: Promise<void>;
  /** SHA-256 of the file that it has loaded: a module stays in a process, whatever becomes of its file. */
  code: string | null;
  onReport: ((report: Report) => void) | undefined;
  onDeath: ((why: string) => void) | undefined;
  dead: string | undefined;
}

interface Waiting {
  readonly job: RunJob;
  readonly start: (worker: Worker) => void;
}

/** Opens this machine as a place. */
export function openHerePlace({ root, ...options }: HereOptions): Place {
  const pool = openPool(options);
  const absolute = resolve(root);
  return {
    get slots() {
      return pool.slots;
    },
    run: (job, signal) => pool.run(job, absolute, signal),
    close: () => pool.close(),
  };
}

/** Opens the processes alone; they start when there is something to do. */
export function openPool(options: PoolOptions): Pool {
  const { files = [], engines = [], patienceMs = 60_000 } = options;
  const cores = options.jobs ?? availableParallelism();
  const all = new Set<Worker>();
  const idle: Worker[] = [];
  const waiting: Waiting[] = [];
  let largestBytes = 0;
  let closed = false;

  /** Memory that is free now has those that run already taken from it. */
  const room = (): number => {
    const perRun = largestBytes || guessedBytes;
    return Math.max(1, Math.min(cores, all.size + Math.floor((freemem() * memoryShare) / perRun)));
  };

  /** Gives waiting jobs to processes, most urgent first. */
  const assign = (): void => {
    while (waiting.length > 0 && !closed) {
      const urgent = waiting.reduce((best, one) => (one.job.priority > best.job.priority ? one : best));
      const worker = takeWorker(urgent.job.subject.sha256);
      if (worker === undefined) return;
      waiting.splice(waiting.indexOf(urgent), 1);
      urgent.start(worker);
    }
  };

  const takeWorker = (code: string | null): Worker | undefined => {
    const fits = idle.findIndex(worker => worker.code === null || code === null || worker.code === code);
    const [found] = fits < 0 ? [] : idle.splice(fits, 1);
    if (found === undefined) {
      if (all.size >= room() && idle.length === 0) return undefined;
      // One with another file in it makes way.
      if (all.size >= room()) end(idle.pop()!);
    }
    const worker = found ?? startWorker();
    worker.code = code ?? worker.code;
    return worker;
  };

  const startWorker = (): Worker => {
    const worker = spawnWorker();
    all.add(worker);
    void worker.ready.catch(() => {});
    worker.child.once('exit', () => {
      all.delete(worker);
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
      assign();
    });
    return worker;
  };

  const end = (worker: Worker): void => {
    all.delete(worker);
    if (worker.child.connected) worker.child.disconnect();
  };

  /** One try, which ends with the process if that dies. */
  const attempt = (job: RunJob, root: string, signal: AbortSignal | undefined) =>
    new Promise<RunOutcome | { readonly died: string }>((resolved, rejected) => {
      let mine: Worker | undefined;
      const stop = (): void => {
        if (mine !== undefined) send(mine, { kind: 'stop' });
        else {
          waiting.splice(waiting.indexOf(one), 1);
          settle(() => rejected(signal?.reason));
        }
      };
      /** Says how it went, and lets the process have another job. */
      const settle = (say: () => void): void => {
        signal?.removeEventListener('abort', stop);
        if (mine !== undefined) {
          mine.onReport = undefined;
          mine.onDeath = undefined;
          if (mine.dead === undefined) closed ? end(mine) : idle.push(mine);
        }
        say();
        assign();
      };
      const heard = (report: Report, pid: number | undefined): void => {
        if (report.kind === 'started') options.onStarted?.(job, `${workerName()}/${pid}`);
        else if (report.kind === 'outcome') {
          largestBytes = Math.max(largestBytes, report.rss);
          settle(() => {
            try {
              resolved(parseOutcome(report.outcome, `process ${pid}`, job));
            } catch (error) {
              rejected(error);
            }
          });
        } else if (report.kind === 'elsewhere')
          settle(() => rejected(new ElsewhereError(report.message, { code: report.code })));
        else if (report.kind === 'stopped')
          // Not by us, then by a signal of the system's: somebody ends all of them.
          settle(() => rejected(signal?.aborted ? signal.reason : new Error('it was told to stop')));
      };
      const one: Waiting = {
        job,
        start: worker => {
          mine = worker;
          worker.onDeath = why => settle(() => resolved({ died: why }));
          worker.onReport = report => heard(report, worker.child.pid);
          if (worker.dead !== undefined) return worker.onDeath(worker.dead);
          worker.ready.then(
            () =>
              signal?.aborted
                ? settle(() => rejected(signal.reason))
                : send(worker, { kind: 'job', job, root, files: [...files], engines: [...engines] }),
            () => {}, // it died, which is told
          );
        },
      };
      signal?.addEventListener('abort', stop, { once: true });
      waiting.push(one);
      assign();
    });

  return {
    get slots() {
      return room();
    },
    async run(job, root, signal) {
      const until = performance.now() + patienceMs;
      for (let deaths = 0; ; ) {
        if (closed) throw new Error('this place is closed: open another');
        signal?.throwIfAborted();
        try {
          const came = await attempt(job, root, signal);
          if (!('died' in came)) return came;
          deaths++;
          if (deaths === mostDeaths)
            return failedOutcome(
              job,
              workerName(),
              `its process died ${deaths} times, the last time ${came.died}`,
            );
          options.onRetried?.(job, `its process died: ${came.died}`);
        } catch (error) {
          if (!(error instanceof ElsewhereError) || !passes(error) || performance.now() > until) throw error;
          await pause(200, undefined, signal && { signal }).catch(() => {});
        }
      }
    },
    async close() {
      closed = true;
      waiting.length = 0;
      const gone = [...all].map(
        ({ child }) =>
          new Promise<void>(done => {
            if (child.exitCode !== null || child.signalCode !== null) return done();
            // It stops after its iteration, with a checkpoint; what takes longer loses a few iterations, no more.
            const timer = setTimeout(() => child.kill('SIGKILL'), closingMs);
            child.once('exit', () => {
              clearTimeout(timer);
              done();
            });
          }),
      );
      for (const worker of [...all]) end(worker);
      await Promise.all(gone);
    },
  };
}

function send({ child }: Worker, order: Order): void {
  // One that dies is told by its end.
  if (child.connected) child.send(order, () => {});
}

/** Starts a process: the same from `dist` and, through tsx, from the sources. */
function spawnWorker(): Worker {
  const here = import.meta.url;
  const fromSources = here.endsWith('.ts');
  const entry = fileURLToPath(new URL(fromSources ? './child.ts' : './child.js', here));
  const tsx = fromSources ? ['--import', pathToFileURL(createRequire(here).resolve('tsx')).href] : [];
  // Without what a test runner or a debugger of this process set.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = fork(entry, [], { execArgv: tsx, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000);
  });
  let isReady = (): void => {};
  let isNotReady = (_: Error): void => {};
  const worker: Worker = {
    child,
    ready: new Promise<void>((done, failed) => {
      isReady = done;
      isNotReady = failed;
    }),
    code: null,
    onReport: undefined,
    onDeath: undefined,
    dead: undefined,
  };
  const died = (why: string): void => {
    if (worker.dead !== undefined) return;
    worker.dead = why;
    isNotReady(new Error(why));
    worker.onDeath?.(why);
  };
  child.on('message', message => {
    const { success, data } = z.safeParse(reportSchema, message);
    if (!success) {
      child.kill('SIGKILL');
      return;
    }
    if (data.kind === 'ready') isReady();
    worker.onReport?.(data);
  });
  child.on('error', error => died(error.message));
  // After its streams have ended, so that its last words are there.
  child.on('close', (code, signal) => {
    const last =
      said
        .trim()
        .split('\n')
        .findLast(line => /error/i.test(line)) ?? '';
    died(
      `${signal === null ? `with exit code ${code}` : `by ${signal}`}${last && `: ${last.slice(0, 300)}`}`,
    );
  });
  return worker;
}
