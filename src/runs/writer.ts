/**
 * The one process that writes a run: holds its lock and keeps the order that makes a resume exact.
 *
 * Everything of an iteration is on the disk before its checkpoint appears: its events (that of the checkpoint
 * included), its row, then the checkpoint. So whatever a kill interrupts, cutting the log back to the newest checkpoint's
 * iteration gives what an uninterrupted run had at that point.
 */
import { existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, resolve } from 'node:path';
import { cleanLeftovers } from '../base/directories.ts';
import { fail, RunError } from '../base/errors.ts';
import { writeFileAtomic } from '../base/files.ts';
import { typed } from '../base/typed.ts';
import type { Row } from '../metrics/row.ts';
import { jsonlSink } from '../metrics/sinks/jsonl.ts';
import type { Sink } from '../metrics/sinks/sink.ts';
import {
  type Checkpoint,
  type CheckpointInfo,
  type CheckpointInput,
  checkpointProblem,
  discardCheckpointsAfter,
  listCheckpoints,
  loadCheckpoint,
  pruneCheckpoints,
  saveCheckpoint,
  updatePointers,
  wouldBeBest,
} from './checkpoint.ts';
import { runPaths } from './layout.ts';
import { acquireLock, type Lock } from './lock.ts';
import { readEvents, readLastRow, truncateTo } from './log.ts';
import { type ManifestPatch, type RunSpec, updateManifest } from './manifest.ts';
import { openProjections, type ProjectionOptions, rebuildProjections } from './projections.ts';
import { referenceTo } from './reference.ts';
import { discardReplaysAfter } from './replays.ts';
import { describeEventType, type EventFields, type Manifest, parseEvent, type RunEvent } from './schema.ts';
import { cleanRoot, createLockedRun, openRun, type Place } from './store.ts';

/** Characters of a stack that are kept. */
const longestTrace = 65_536;

/** How a run is written. */
export interface WriterOptions extends ProjectionOptions {
  /** How many of the newest checkpoints stay, besides the best, those to keep and a thin history. Default 2. */
  readonly keepLast?: number | undefined;
  /** More places for rows and events, such as a terminal. The writer closes them. */
  readonly sinks?: readonly Sink[] | undefined;
  /** The clock, in milliseconds since 1970; for tests. */
  readonly now?: (() => number) | undefined;
}

/** How a run is resumed. */
export interface ResumeOptions extends WriterOptions {
  /** Which checkpoint to go on from. Default `last`. */
  readonly from?: 'last' | 'best' | number | undefined;
  /** Allows going back behind checkpoints that are whole, or to the beginning if all are gone, which deletes what follows. */
  readonly discardLater?: boolean | undefined;
  /** Looks at what was loaded before anything is changed; throws to refuse, e.g. because the reward is another. */
  readonly check?: ((manifest: Manifest, checkpoint: Checkpoint | undefined) => void) | undefined;
  /** New values for the manifest, such as a config with more steps. */
  readonly patch?: Pick<ManifestPatch, 'config' | 'versions' | 'environment' | 'wentOn'> | undefined;
}

/** Writes one run: `RunWriter.create` for a new one, `RunWriter.resume` for one that ended. */
export class RunWriter {
  readonly id: string;
  readonly dir: string;
  readonly #lock: Lock;
  readonly #truth: Sink;
  readonly #sinks: readonly Sink[];
  readonly #options: WriterOptions;
  readonly #now: () => number;
  #manifest: Manifest;
  #iteration = 0;
  #step = 0;
  /** The iteration of the newest checkpoint: nothing more may happen in it, or a resume would miss it. */
  #sealed = -1;
  /** Which directory the checkpoints are in, once there is one: another of that name would not have the earlier ones. */
  #checkpoints: string | undefined;
  #ended = false;

  /** Makes a new run and begins to write it. */
  static create(spec: RunSpec, place: Place = {}, options: WriterOptions = {}): RunWriter {
    const now = options.now ?? Date.now;
    const { run, lock } = createLockedRun(spec, place, new Date(now()));
    try {
      const writer = new RunWriter(run.dir, run.manifest, lock, options);
      writer.#happened('the run began', { type: 'started', pid: process.pid });
      return writer;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /**
   * Resumes a run. The checkpoint is undefined if it ended before its first one: then it begins again from its
   * seed or from what its manifest says that it began from, to the same bits. One that had checkpoints, which are gone, is refused unless `discardLater` allows it. Nothing
   * is changed before the checkpoint was found whole and `check` agreed.
   */
  static resume(
    directory: string,
    options: ResumeOptions = {},
  ): { readonly writer: RunWriter; readonly checkpoint: Checkpoint | undefined } {
    const dir = resolve(directory);
    openRun(dir); // not a run, or damaged: say so before leaving a lock in it
    const lock = acquireLock(dir);
    try {
      const { manifest } = openRun(dir);
      cleanLeftovers(dir);
      cleanLeftovers(runPaths(dir).checkpoints);
      cleanRoot(dirname(dir));
      const checkpoint = loadCheckpoint(dir, options.from ?? 'last');
      const { step, iteration } = checkpoint?.index ?? { step: 0, iteration: 0 };
      if (checkpoint === undefined) refuseToBeginAgain(dir, manifest, options.discardLater === true);
      else if (options.discardLater !== true) refuseToDiscard(dir, step);
      options.check?.(manifest, checkpoint);

      const dropped = truncateTo(dir, checkpoint === undefined ? -1 : iteration);
      if (checkpoint !== undefined) discardCheckpointsAfter(dir, step);
      discardReplaysAfter(dir, step);
      updatePointers(dir);
      pruneCheckpoints(dir, options.keepLast ?? 2); // a kill may have come before it
      const now = options.now ?? Date.now;
      const patched = updateManifest(
        dir,
        {
          ...options.patch,
          status: 'running',
          endedAt: null,
          reason: null,
          pid: process.pid,
          host: hostname(),
          resumes: manifest.resumes + 1,
          iteration,
          step,
        },
        new Date(now()),
      );
      rebuildProjections(dir, options);
      const writer = new RunWriter(dir, patched, lock, options);
      writer.#iteration = iteration;
      writer.#step = step;
      writer.#sealed = checkpoint === undefined ? -1 : iteration;
      const from = checkpoint === undefined ? 'from the beginning' : `from checkpoint ${step}`;
      writer.#happened(`the run went on ${from}`, {
        type: 'resumed',
        pid: process.pid,
        checkpoint: checkpoint === undefined ? null : step,
        ...dropped,
        ...writtenNow(manifest, options.patch),
      });
      return { writer, checkpoint };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  private constructor(dir: string, manifest: Manifest, lock: Lock, options: WriterOptions) {
    const { metrics, events } = runPaths(dir);
    this.id = basename(dir);
    this.dir = dir;
    this.#manifest = manifest;
    this.#lock = lock;
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#checkpoints = identityOf(runPaths(dir).checkpoints);
    this.#truth = jsonlSink({ metrics, events });
    try {
      // The truth first: a projection that fails must not cost a row.
      this.#sinks = [this.#truth, ...openProjections(dir, options), ...(options.sinks ?? [])];
    } catch (error) {
      this.#truth.close();
      throw error;
    }
  }

  /** As it is on the disk. */
  get manifest(): Manifest {
    return this.#manifest;
  }

  /**
   * Fails if something of the run was deleted or replaced under it: its directory, manifest, log or checkpoints. What is
   * written looks itself; ask before writing beside it, so that no half of a run appears where one was.
   */
  requireThere(): void {
    this.#truth.requireThere?.();
    const { manifest, checkpoints } = runPaths(this.dir);
    if (!existsSync(manifest))
      gone(
        `${manifest} was deleted`,
        `its log and its checkpoints are safe; put the manifest back and resume the run, or begin another from its weights (${typed('train')} --from ${checkpoints}/<step>/policy.safetensors)`,
      );
    if (this.#checkpoints === undefined || identityOf(checkpoints) === this.#checkpoints) return;
    gone(
      `${checkpoints} was ${existsSync(checkpoints) ? 'replaced' : 'deleted'}`,
      `its log is safe; put the checkpoints back and resume the run, or let it begin again (${typed('resume', referenceTo(this.dir), '--discard-later')})`,
    );
  }

  /** Writes an iteration's row; the time is added. Iterations must go up by one. */
  row(row: Row): void {
    this.#requireOpen();
    this.requireThere();
    const iteration = row['train/iteration'];
    if (iteration !== this.#iteration + 1) {
      fail(
        `row of iteration ${iteration} after ${this.#iteration}: write one row for each iteration, in order`,
      );
    }
    const timed = { ...row, 'time/unix_s': this.#now() / 1000 };
    for (const sink of this.#sinks) sink.write(timed);
    this.#iteration = iteration;
    this.#step = row['train/step'];
  }

  /** Writes something that happened; the time is added. */
  event(event: RunEvent): void {
    this.#requireOpen();
    const checked = parseEvent(event);
    const { type, iteration } = checked;
    const now = this.#iteration;
    const allowed = (iteration === now || iteration === now + 1) && iteration > this.#sealed;
    if (!allowed && describeEventType(type).scope === 'training') {
      fail(
        `event ${type} of iteration ${iteration} after the row of ${now}${this.#sealed === now ? ' and its checkpoint' : ''}: it belongs to ${this.#sealed === now ? now + 1 : `${now} or ${now + 1}`}`,
      );
    }
    const timed = { ...checked, 'time/unix_s': this.#now() / 1000 };
    for (const sink of this.#sinks) sink.event(timed);
  }

  /** Saves a checkpoint after its iteration's row, with its event and everything before it on the disk first. */
  async checkpoint(input: CheckpointInput): Promise<CheckpointInfo> {
    this.#requireOpen();
    if (input.iteration !== this.#iteration || (this.#iteration > 0 && input.step !== this.#step)) {
      fail(
        `checkpoint of iteration ${input.iteration}, step ${input.step} after the row of iteration ${this.#iteration}, step ${this.#step}: save right after the row`,
      );
    }
    this.requireThere();
    const best = wouldBeBest(this.dir, input);
    const keep = input.keep ?? false;
    this.event({
      type: 'checkpoint',
      iteration: input.iteration,
      step: input.step,
      message: `saved checkpoint ${input.step}${best ? ', the best so far' : ''}`,
      checkpoint: input.step,
      best,
      keep,
      ...(input.score === undefined ? {} : { score: input.score }),
      ...(input.scoredBy && { scoredBy: input.scoredBy }),
    });
    this.#truth.flush(); // the projections can be made again
    const { environment } = this.#manifest;
    const info = await saveCheckpoint(
      this.dir,
      { environment, ...input },
      { keepLast: this.#options.keepLast ?? 2, now: () => new Date(this.#now()) },
    );
    this.#sealed = input.iteration;
    // Of a run that begins from another, before its first row.
    this.#step = input.step;
    this.#checkpoints ??= identityOf(runPaths(this.dir).checkpoints);
    return info;
  }

  /** Writes a config into the manifest that came to differ under way, such as by where labels are from. */
  reconfigure(config: Manifest['config']): void {
    this.#requireOpen();
    this.#update({ config });
  }

  /** Ends the run: says how, and why where it is not that all its steps are done, in events and manifest, closes everything, gives up the lock. `trace` is where in the program it failed. May be called twice. */
  end(status: 'finished' | 'stopped' | 'failed', reason?: string, trace?: string): void {
    if (this.#ended) return;
    const errors: unknown[] = [];
    const trying = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        errors.push(error);
      }
    };
    const message = reason ?? (status === 'finished' ? 'the run did all its steps' : status);
    const event = status === 'finished' ? { type: status } : { type: status, reason: message };
    trying(() => this.#happened(message, event));
    if (trace !== undefined)
      trying(() => writeFileAtomic(runPaths(this.dir).failure, `${trace.slice(0, longestTrace)}\n`));
    for (const sink of this.#sinks) trying(() => sink.close());
    trying(() =>
      this.#update({
        status,
        reason: status === 'finished' ? (reason ?? null) : message,
        endedAt: new Date(this.#now()).toISOString(),
        iteration: this.#iteration,
        step: this.#step,
      }),
    );
    this.#ended = true;
    this.#lock.release();
    // After a failure the first error is the one that counts, and the caller has it.
    if (errors.length > 0 && status !== 'failed') throw errors[0];
  }

  /** Writes what happened to the process, now. */
  #happened(message: string, event: EventFields): void {
    this.event({ iteration: this.#iteration, step: this.#step, message, ...event });
  }

  #update(patch: ManifestPatch): void {
    this.#manifest = updateManifest(this.dir, patch, new Date(this.#now()));
  }

  #requireOpen(): void {
    if (this.#ended)
      throw new RunError(`run ${this.id} has ended, nothing more can be written to it: resume it first`);
  }
}

/** What tells a directory from another of its name; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev} ${stat.ino}`;
}

function gone(what: string, rest: string): never {
  fail(`${what} while the run was trained, so it stops here; ${rest}`, 'gone');
}

/** For the event of a resume: the settings that were written for it, and what they were. */
function writtenNow({ config }: Manifest, patch: ResumeOptions['patch']): object {
  const written = patch?.wentOn?.written ?? {};
  const keys = Object.keys(written);
  if (keys.length === 0) return {};
  return { written, before: Object.fromEntries(keys.map(key => [key, config[key] ?? null])) };
}

function refuseToDiscard(dir: string, step: number): void {
  const whole = listCheckpoints(dir)
    .map(info => info.step)
    .filter(later => later > step && checkpointProblem(dir, later) === undefined);
  if (whole.length === 0) return;
  fail(
    `going on from ${step} would delete the later checkpoint${whole.length > 1 ? 's' : ''} ${whole.join(', ')} of ${dir}: allow it (discardLater, --discard-later), or start a new run from ${step}`,
    'would-discard',
  );
}

/** A run without checkpoints may begin again if it never had one; what it has done since would be lost without a word. */
function refuseToBeginAgain(dir: string, manifest: Manifest, discardLater: boolean): void {
  const { parent, beginning } = manifest;
  // An earlier version wrote it, which did not say where that run is and what was set for it.
  if (parent !== null && beginning === undefined) {
    fail(
      `${dir} began from step ${parent.step} of ${parent.id} and has no checkpoint: it cannot begin again from its seed; delete it (${typed('runs', 'delete', referenceTo(dir))}), and start it from that run again`,
      'no-checkpoint',
    );
  }
  if (discardLater) return;
  const lastRow = readLastRow(dir);
  const done = lastRow?.['train/step'] ?? manifest.step;
  if (!hadCheckpoint(dir, manifest, lastRow)) return;
  fail(
    `${dir} has done ${done} steps, but its checkpoints are gone: put them back or train anew; or allow it to begin again from 0, which deletes its log (discardLater, --discard-later)`,
    'would-discard',
  );
}

/** Whether one was whole once. Its event alone is no proof, because that comes first. */
function hadCheckpoint(dir: string, { status, iteration }: Manifest, lastRow: Row | undefined): boolean {
  if ((status === 'finished' && iteration > 0) || existsSync(runPaths(dir).onnx)) return true;
  const saved = readEvents(dir).items.filter(({ type }) => type === 'checkpoint');
  const newest = lastRow?.['train/iteration'] ?? 0;
  // Those after which the run did more, if only to say that it stops.
  return saved.length > (status === 'stopped' ? 0 : 1) || saved.some(event => event.iteration < newest);
}
