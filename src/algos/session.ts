/** A learner and a run on disk that it writes to, whatever the algorithm: iterations, rows, events, checkpoints, the inbox. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Adjustment } from '../runs/inbox.ts';
import { readRows } from '../runs/log.ts';
import { recentReturn, scoreEpisodes } from '../runs/score.ts';
import type { RunWriter } from '../runs/writer.ts';
import type { RunConfig } from '../settings/spec.ts';
import { type LiveRecorder, recordLive } from './agents/record.ts';
import type { Learner } from './algorithm.ts';
import { sentenceOf, type TrainEvent } from './events.ts';
import { handChanges } from './hand-changes.ts';
import type { TrainHooks, TrainProgress, TrainResult } from './hooks.ts';
import type { RewardRescale } from './same-task.ts';

/** How a session begins. */
export interface SessionStart {
  /** What its steps are called. */
  readonly unit: string;
  /** Puts the learner where it begins: at the start, at weights, at a checkpoint. */
  readonly begin: () => Promise<void>;
  /** Changes that were made by hand in earlier processes, and whether there were others that no longer count. */
  readonly changes?: readonly Adjustment[];
  readonly changesWereDropped?: boolean;
  /** Whether there is something to save before the first iteration. */
  readonly saveFirst?: boolean;
  /** What `begin` does to the critic, for the run's events. */
  readonly rescale?: RewardRescale | undefined;
}

/** Iterates until the steps are done or someone stops it, and leaves a run that can be resumed. Closes the learner. */
export async function runSession(
  learner: Learner,
  writer: RunWriter,
  config: RunConfig,
  hooks: TrainHooks,
  start: SessionStart,
): Promise<TrainResult> {
  const { counters } = learner;
  const startedAt = performance.now();
  const tell = (event: TrainEvent, iteration = counters.iteration): void => {
    const { steps: step } = counters;
    const message = sentenceOf(event);
    writer.event({ iteration, step, message, ...event });
    hooks.onEvent?.({ ...event, step, message });
  };
  const checkpoints = checkpointsOf(learner, writer, config, hooks);
  let recording: LiveRecorder | undefined;
  let byHand: ReturnType<typeof handChanges> | undefined;
  try {
    const { changes: earlier = [], changesWereDropped: rewrite = false } = start;
    byHand = handChanges(learner, writer.dir, { earlier, rewrite }, tell);
    recording = await openRecording(learner, writer.dir, config, tell);
    await start.begin();
    // Of the first iteration that it affects; of the checkpoint, where there will be one with it before that.
    if (start.rescale)
      tell({ type: 'rescaled', ...start.rescale }, counters.iteration + (start.saveFirst ? 0 : 1));
    await checkpoints.begin(start.saveFirst === true);
    const logBeside = learner.besideLog?.(writer.dir, counters.iteration);
    const progress = (): TrainProgress => ({
      id: writer.id,
      dir: writer.dir,
      subject: learner.environment.id,
      unit: start.unit,
      config,
      step: counters.steps,
      totalSteps: learner.totalSteps,
      recorded: recording?.active,
    });
    await hooks.onStart?.(progress());
    let lastRow: Record<string, number> | undefined;
    let logSeconds = 0;
    while (counters.steps < learner.totalSteps && !hooks.signal?.aborted) {
      byHand.apply();
      if (byHand.stopped) break;
      const { row, events } = await learner.iterate();
      const iteratedAt = performance.now();
      row['time/log_s'] = logSeconds;
      row['time/elapsed_s'] = (iteratedAt - startedAt) / 1000;
      for (const event of events) tell(event);
      logBeside?.();
      writer.row(row);
      lastRow = row;
      checkpoints.see(row);
      hooks.onRow?.(row, progress());
      if (counters.iteration % config.checkpointEvery === 0) await checkpoints.save();
      recording?.tick();
      logSeconds = (performance.now() - iteratedAt) / 1000;
      // Programs block the thread: let signals, timers and the page have their turn.
      await nextTurn();
    }
    if (counters.iteration > 0) {
      await checkpoints.save();
      recording?.last();
    }
    const status = counters.steps < learner.totalSteps ? 'stopped' : 'finished';
    const by = byHand.stopped ? 'stopped from the page' : 'stopped by its user';
    writer.end(status, status === 'stopped' ? by : undefined);
    byHand.close(`the run has ${status}`);
    const { id, dir } = writer;
    return { id, dir, status, step: counters.steps, lastRow, ...learner.results?.() };
  } catch (error) {
    writer.end('failed', error instanceof Error ? error.message : String(error));
    byHand?.close('the run has failed');
    throw error;
  } finally {
    recording?.close();
    await learner.close();
  }
}

/** When a run is saved, and what its checkpoints are scored by. */
function checkpointsOf(learner: Learner, writer: RunWriter, config: RunConfig, hooks: TrainHooks) {
  const { counters } = learner;
  // What `best` looks at goes back no further than the last regular checkpoint, which had another policy.
  const scoredRows = Math.min(config.checkpointEvery, scoreEpisodes);
  let recent: Readonly<Record<string, number>>[] = [];
  let savedAt = -1;
  const save = async (): Promise<void> => {
    const { iteration, steps } = counters;
    if (iteration === savedAt) return;
    const score = recentReturn(recent);
    const keep = config.keepEvery > 0 && iteration % config.keepEvery === 0;
    const { isBest } = await writer.checkpoint({
      step: steps,
      iteration,
      ...(await learner.save()),
      keep,
      ...(score === undefined ? {} : { score }),
    });
    await learner.saved?.(writer);
    savedAt = iteration;
    // Before anything was learnt it is nothing to tell people about; the run's events have it.
    if (iteration === 0 && steps === 0) return;
    const event = { type: 'checkpoint', checkpoint: steps, best: isBest, keep } as const;
    hooks.onEvent?.({ ...event, step: steps, message: sentenceOf(event) });
  };
  return {
    /** Before the first iteration: what was restored is on the disk already, what was made may not be. */
    async begin(saveFirst: boolean): Promise<void> {
      if (saveFirst) await save();
      savedAt = counters.iteration;
      recent = readRows(writer.dir).items.slice(-scoredRows);
    },
    see(row: Readonly<Record<string, number>>): void {
      recent = [...recent, row].slice(-scoredRows);
    },
    save,
  };
}

/** Recordings of the policy as it is trained, where there is something to see and the config wants it. */
async function openRecording(
  learner: Learner,
  runDir: string,
  { seed }: RunConfig,
  tell: (event: TrainEvent) => void,
): Promise<LiveRecorder | undefined> {
  if (learner.recorder === undefined) return undefined;
  return recordLive({
    open: () => learner.recorder!(runDir),
    progress: learner.counters,
    seed,
    onProblem: text => tell({ type: 'note', text }),
  });
}
