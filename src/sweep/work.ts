/** Does one job: begins or resumes its run, trains up to where it is to go, and judges it. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { TrainHooks, TrainResult } from '../algos/hooks.ts';
import { resume, train } from '../algos/runs.ts';
import { tableFor } from '../algos/settings.ts';
import { isEnvFile } from '../base/code-reference.ts';
import { codeOf } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { listCheckpoints } from '../runs/checkpoint.ts';
import { requireRunId, runPaths } from '../runs/layout.ts';
import { subjectReference } from '../runs/named-code.ts';
import { openRun, type Run } from '../runs/store.ts';
import type { UntrustedCode } from '../runs/trust.ts';
import type { RunOutcome } from '../studies/schema.ts';
import { ElsewhereError, elsewhere } from './elsewhere.ts';
import { failedOutcome } from './job.ts';
import { judge } from './judge.ts';
import { type NamedHere, type Permitted, permit } from './permit.ts';
import type { RunJob } from './place.ts';

/** Where and how a job is done. */
export interface WorkOptions extends NamedHere {
  /** Directory of runs. */
  readonly root: string;
  /** Stops the run with a checkpoint; the job is then not done, and `doJob` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the run keeps to one core, because others run beside it: as a rule. The bits are the same. */
  readonly oneCore?: boolean | undefined;
  /** Before the first iteration. */
  readonly onStart?: (() => void) | undefined;
}

/** This process, as outcomes name it. */
export const workerName = (): string => `${hostname().slice(0, 150)}:${process.pid}`;

/**
 * Does a job. What keeps the run from being trained, a setting or a NaN, is an outcome with status `failed`; what keeps
 * this machine from training it is an {@link ElsewhereError}.
 */
export async function doJob(job: RunJob, options: WorkOptions): Promise<RunOutcome> {
  const { root, signal } = options;
  const startedAt = performance.now();
  const seconds = (): number => (performance.now() - startedAt) / 1000;
  const dir = join(root, requireRunId(job.run));
  if (job.version !== VERSION)
    throw new ElsewhereError(
      `the job is of Keel ${job.version}, this is ${VERSION}, whose bits may be others: use that version, or begin the study anew`,
      { code: 'version' },
    );
  const permitted = permit(job.subject, options);
  signal?.throwIfAborted();
  try {
    const there = existsSync(runPaths(dir).manifest) ? openRun(dir) : undefined;
    if (there !== undefined) requireSame(there, job);
    if (there === undefined || !isFarEnough(there, job.until)) {
      const { status } = await trainOn(there, job, permitted, options);
      if (status === 'stopped' && signal?.aborted && !isFarEnough(openRun(dir), job.until))
        throw signal.reason;
    }
    const judged = await judge(dir, job.until, job.objective);
    const { run, seed } = job;
    return {
      run,
      seed,
      status: 'done',
      ...judged,
      seconds: seconds(),
      worker: workerName(),
      problem: null,
    };
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw error;
    const machine = elsewhere(error);
    if (machine !== undefined) throw machine;
    if (codeOf(error) === 'untrusted')
      throw new ElsewhereError((error as Error).message, { code: 'refused', cause: error });
    const said = error instanceof Error ? error.message : String(error);
    return { ...failedOutcome(job, workerName(), said), seconds: seconds() };
  }
}

/** A run of this id that is another one, such as of a study that was begun anew under the same name. */
function requireSame({ dir, manifest }: Run, { seed, subject }: RunJob): void {
  const { value } = subjectReference(manifest);
  // A file may be elsewhere on another machine, an id may be one of several names of the same.
  if (manifest.seed === seed && isEnvFile(value) === isEnvFile(subject.reference)) return;
  throw new ElsewhereError(
    `${dir} is a run of ${value} with seed ${manifest.seed}, not of ${subject.reference} with seed ${seed}: delete it, or use another directory`,
    { code: 'another-run' },
  );
}

/** Whether a run has a checkpoint at the step or behind it, or is over. */
function isFarEnough({ dir, manifest, status }: Run, until: number | null): boolean {
  if (status === 'finished') return true;
  if (until === null || status === 'running') return false;
  const saved = listCheckpoints(dir).findLast(({ problem }) => problem === undefined);
  return saved !== undefined && saved.step >= until && manifest.status !== 'failed';
}

async function trainOn(
  there: Run | undefined,
  job: RunJob,
  { reference, file, mayStart }: Permitted,
  { root, signal, oneCore = true, onStart }: WorkOptions,
): Promise<TrainResult> {
  const { kind, options } = job.subject;
  const pause = new AbortController();
  const stop = (): void => pause.abort();
  signal?.addEventListener('abort', stop, { once: true });
  const hooks: TrainHooks = {
    signal: pause.signal,
    onRow: row => {
      // `steps` stays what the run's schedules are made for; it only pauses here.
      if (job.until !== null && row['train/step'] >= job.until) pause.abort();
    },
    ...(onStart && { onStart: () => onStart() }),
  };
  try {
    if (there !== undefined)
      return await resume(there.dir, {
        ...hooks,
        envFile: file,
        trust: ({ code }: UntrustedCode) => code.every(({ path }) => mayStart(path)),
      });
    const { keys } = tableFor('train', kind);
    // A thousand runs are not looked at one by one: who wants films of them sets `record`.
    const own = { ...(oneCore && { workers: 0, threads: 1 }), record: false };
    const known = Object.fromEntries(Object.entries(own).filter(([key]) => Object.hasOwn(keys, key)));
    const config = { ...known, ...job.config, seed: job.seed };
    const { preset } = job;
    const begin = { ...hooks, root, id: job.run, config, preset };
    return kind === 'task'
      ? await train({ ...begin, task: reference, taskOptions: options })
      : await train({ ...begin, env: reference, envOptions: options as never });
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
