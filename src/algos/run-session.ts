/** A trainer and a run on disk that it writes to, whatever the algorithm: iterations, rows, events, checkpoints, the inbox. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Adjustment,
  type CheckpointFile,
  type EnvironmentSpec,
  type RunEvent,
  type RunWriter,
  readRows,
  recentReturn,
  scoreEpisodes,
} from '../runs/index.ts';
import { handChanges } from './hand-changes.ts';
import type { IterationResult, TrainEvent } from './iteration.ts';
import type { LiveRecorder } from './record.ts';
import type { RewardRescale } from './same-task.ts';
import type { TrainConfig } from './train-schema.ts';

/** Written into every manifest. */
export const VERSION = '0.1.0';

/** What a session needs of a config, whatever the algorithm. */
export interface SessionConfig {
  readonly steps: number;
  readonly seed: number;
  readonly learningRate: number;
  readonly checkpointEvery: number;
  readonly keepEvery: number;
}

export interface TrainProgress<C extends SessionConfig = TrainConfig> {
  readonly id: string;
  readonly dir: string;
  readonly config: C;
  readonly step: number;
  readonly totalSteps: number;
  /** What is recorded to be looked at, if anything: the page's tab of that name shows it. */
  readonly recorded: 'robot' | 'cluster' | undefined;
}

export interface TrainHooks<C extends SessionConfig = TrainConfig> {
  /** When the run is on disk and its programs are ready, before the first iteration, which waits for it. */
  onStart?: (progress: TrainProgress<C>) => unknown;
  /** After each iteration's row is on disk. */
  onRow?: (row: Readonly<Record<string, number>>, progress: TrainProgress<C>) => void;
  /** What happened, checkpoints included; `message` is the sentence of the run's events. */
  onEvent?: (event: TrainEvent & { step: number; message: string }) => void;
  /** Stops after the iteration under way, with a checkpoint. */
  signal?: AbortSignal;
}

export interface TrainResult {
  readonly id: string;
  readonly dir: string;
  readonly status: 'finished' | 'stopped';
  readonly step: number;
  readonly lastRow: Readonly<Record<string, number>> | undefined;
}

/** The side of a trainer that a session drives. */
export interface SessionTrainer {
  /** Settings as they are now, by key. */
  readonly config: object;
  readonly counters: { readonly iteration: number; readonly envSteps: number };
  iterate(): Promise<IterationResult>;
  /** Other values from now on; throws a `TrainError` where one cannot change. */
  adjust(changes: Readonly<Record<string, number | null>>): void;
}

export interface Session {
  readonly trainer: SessionTrainer;
  readonly environment: EnvironmentSpec;
  /** All that a checkpoint holds. */
  save(): Promise<{
    files: Readonly<Record<string, CheckpointFile>>;
    state: Readonly<Record<string, unknown>>;
  }>;
  /** After a checkpoint is on the disk. */
  saved?(writer: RunWriter): Promise<void>;
  /** Begins to record episodes to look at, where there is something to see. */
  record?(runDir: string, onProblem: (message: string) => void): Promise<LiveRecorder>;
  /** After each iteration, before its row is written. */
  logged?(writer: RunWriter): void;
  close(): Promise<void>;
}

/** What `open` gives; if it fails, worker threads must not keep the process alive. */
export async function orClose<T>(session: Pick<Session, 'close'>, open: () => T): Promise<T> {
  try {
    return open();
  } catch (error) {
    await session.close();
    throw error;
  }
}

/** How a session begins. */
export interface SessionStart {
  readonly begin: () => Promise<void>;
  /** Changes that were made by hand in earlier processes, and whether there were others that no longer count. */
  readonly changes?: readonly Adjustment[];
  readonly changesWereDropped?: boolean;
  /** Whether there is something to save before the first iteration. */
  readonly saveFirst?: boolean;
  /** What `begin` does to the critic, for the run's events. */
  readonly rescale?: RewardRescale | undefined;
}

/** What `open` gives; if it fails, the run is left as one that failed. */
async function orFail<T>(session: Session, writer: RunWriter, open: () => T): Promise<T> {
  return orClose(session, () => {
    try {
      return open();
    } catch (error) {
      writer.end('failed', (error as Error).message);
      throw error;
    }
  });
}

/** Iterates until the steps are done or someone stops it, and leaves a run that can be gone on with. */
export async function runSession<C extends SessionConfig>(
  session: Session,
  writer: RunWriter,
  config: C,
  hooks: TrainHooks<C>,
  { begin, changes = [], changesWereDropped = false, saveFirst = false, rescale }: SessionStart,
): Promise<TrainResult> {
  const { trainer } = session;
  let lastRow: Record<string, number> | undefined;
  let savedAt = -1;
  // What `best` looks at: nothing from before the regular checkpoint before this one, which had another policy.
  const scoredRows = Math.min(config.checkpointEvery, scoreEpisodes);
  let recent: Readonly<Record<string, number>>[] = [];
  const startedAt = performance.now();
  const save = async (): Promise<void> => {
    const { iteration, envSteps } = trainer.counters;
    if (iteration === savedAt) return;
    const score = recentReturn(recent);
    const { isBest } = await writer.checkpoint({
      step: envSteps,
      iteration,
      ...(await session.save()),
      keep: config.keepEvery > 0 && iteration % config.keepEvery === 0,
      ...(score === undefined ? {} : { score }),
    });
    await session.saved?.(writer);
    savedAt = iteration;
    const message = `saved checkpoint ${envSteps}${isBest ? ', the best so far' : ''}`;
    // Before anything was learnt it is nothing to tell people about; the run's events have it.
    if (iteration === 0 && envSteps === 0) return;
    hooks.onEvent?.({ type: 'checkpoint', checkpoint: envSteps, best: isBest, step: envSteps, message });
  };
  const tell = (event: TrainEvent, iteration: number, step: number): void => {
    const message = messageOf(event);
    writer.event({ iteration, step, message, ...event } as unknown as RunEvent);
    hooks.onEvent?.({ ...event, step, message });
  };
  const byHand = await orFail(session, writer, () =>
    handChanges(trainer, writer, { earlier: changes, rewrite: changesWereDropped }, hooks.onEvent),
  );
  const recording = await session.record?.(writer.dir, text => {
    const { iteration, envSteps: step } = trainer.counters;
    writer.event({ type: 'note', iteration, step, message: text, text });
    hooks.onEvent?.({ type: 'note', step, message: text });
  });
  try {
    await begin();
    if (rescale) {
      const { iteration, envSteps } = trainer.counters;
      // Of the first iteration that it affects; of the checkpoint, where there will be one with it before that.
      tell({ type: 'rescaled', ...rescale }, saveFirst ? iteration : iteration + 1, envSteps);
    }
    if (saveFirst) await save();
    // What was restored is on the disk already.
    savedAt = trainer.counters.iteration;
    recent = readRows(writer.dir).items.slice(-scoredRows);
    const progress = (step: number): TrainProgress<C> => ({
      id: writer.id,
      dir: writer.dir,
      config,
      step,
      totalSteps: config.steps,
      recorded: recording?.active,
    });
    await hooks.onStart?.(progress(trainer.counters.envSteps));
    let logged = performance.now();
    let logSeconds = 0;
    while (trainer.counters.envSteps < config.steps && !hooks.signal?.aborted) {
      byHand.apply();
      if (byHand.stopped) break;
      const { row, events } = await trainer.iterate();
      const { iteration, envSteps: step } = trainer.counters;
      logged = performance.now();
      row['time/log_s'] = logSeconds;
      row['time/elapsed_s'] = (logged - startedAt) / 1000;
      for (const event of events) tell(event, iteration, step);
      session.logged?.(writer);
      writer.row(row);
      lastRow = row;
      recent = [...recent, row].slice(-scoredRows);
      hooks.onRow?.(row, progress(step));
      if (iteration % config.checkpointEvery === 0) await save();
      recording?.tick();
      logSeconds = (performance.now() - logged) / 1000;
      // Programs block the thread: let signals, timers and the page have their turn.
      await nextTurn();
    }
    if (trainer.counters.iteration > 0) {
      await save();
      recording?.last();
    }
    const status = trainer.counters.envSteps < config.steps ? 'stopped' : 'finished';
    const by = byHand.stopped ? 'stopped from the page' : 'stopped by its user';
    writer.end(status, status === 'stopped' ? by : undefined);
    byHand.close(`the run has ${status}`);
    return { id: writer.id, dir: writer.dir, status, step: trainer.counters.envSteps, lastRow };
  } catch (error) {
    writer.end('failed', error instanceof Error ? error.message : String(error));
    byHand.close('the run has failed');
    throw error;
  } finally {
    recording?.close();
    await session.close();
  }
}

function messageOf(event: TrainEvent): string {
  const short = (value: unknown): string =>
    typeof value === 'number' ? Number(value.toPrecision(3)).toString() : String(value);
  switch (event.type) {
    case 'early-stop':
      return `stopped in epoch ${Number(event.epoch) + 1}: KL ${short(event.kl)} above ${short(event.limit)}`;
    case 'guard':
      return `KL ${short(event.klBefore)} ${event.scale === 1 ? 'done again, now' : 'taken back to'} ${short(event.klAfter)}, bound ${short(event.bound)}`;
    case 'skipped':
      return `${event.count} minibatches were not finite and changed nothing`;
    case 'notice':
      return String(event.text);
    case 'ungraded':
      return `${event.count} of ${event.of} completions could not be graded: ${event.reason}`;
    case 'restored':
      return `restored the last healthy parameters, learning rate ${short(event.lrFrom)} to ${short(event.lrTo)}`;
    case 'rate-change':
      return `${event.what} ${short(event.from)} to ${short(event.to)}: ${event.why}`;
    case 'reference':
      return 'the reference policy was refreshed';
    case 'rescaled':
      return `critic rescaled by ${short(event.factor)}: rewardScale ${event.from} to ${event.to}`;
    default:
      return event.type;
  }
}
