/** A learner and a run on disk that it writes to, whatever the algorithm: iterations, rows, events, checkpoints, the inbox. */
import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ConfigError, TrainError } from '../base/errors.ts';
import { wholeTrace } from '../base/trace.ts';
import { loadingFile } from '../envs/registry.ts';
import type { Adjustment } from '../runs/inbox.ts';
import { readRows } from '../runs/log.ts';
import { recentReturn, type ScoreKind, scoreEpisodes } from '../runs/score.ts';
import type { RunWriter } from '../runs/writer.ts';
import { type RunConfig, wrong } from '../settings/spec.ts';
import { type LiveRecorder, recordLive } from './agents/record.ts';
import type { Algorithm, Learner } from './algorithm.ts';
import { adjustmentsOf, type HandOver, type Pilot, type PilotStep, pilotOf } from './autopilot/pilot.ts';
import { evaluationRow, isEvaluated, type Reached, reachedIn } from './evaluation.ts';
import { sentenceOf, type TrainEvent } from './events.ts';
import { type HandChanges, handChanges } from './hand-changes.ts';
import type { TrainHooks, TrainProgress, TrainResult } from './hooks.ts';
import type { RewardRescale } from './same-task.ts';
import type { Subject } from './subject.ts';

/** A learner that is ready to begin, and what it was opened with. */
export interface Opened {
  readonly algorithm: Algorithm;
  readonly subject: Subject;
  readonly config: RunConfig;
  readonly learner: Learner;
}

/** How a session begins. */
export interface SessionStart {
  readonly writer: RunWriter;
  /** Puts the learner where it begins: at the start, at weights, at a checkpoint. */
  readonly begin: () => Promise<void>;
  /** Changes that were made by hand in earlier processes. */
  readonly changes?: readonly Adjustment[];
  /** Whether there is something to save before the first iteration. */
  readonly saveFirst?: boolean;
  /** Whether the run has just been made. */
  readonly made?: boolean;
  /** Whether `begin` goes on from a checkpoint of this run. */
  readonly restored?: boolean;
  /** What `begin` does to the critic, for the run's events. */
  readonly rescale?: RewardRescale | undefined;
}

/** What a session has come to: another run may be to go on for this one. */
export type SessionResult = TrainResult & { readonly handOver?: HandOver };

/** Opens the run on disk and trains in it; closes the learner, whose worker threads must not keep the process alive. */
export async function runSession(
  opened: Opened,
  hooks: TrainHooks,
  open: () => SessionStart,
): Promise<SessionResult> {
  try {
    refuseWhileLoading();
    refuseBlind(opened, hooks);
    return await trainIn(open(), opened, hooks);
  } finally {
    await opened.learner.close();
  }
}

/** A program that trains was named where an environment's file belongs: it would train as often as somebody looks for one in it. */
function refuseWhileLoading(): void {
  const file = loadingFile();
  if (file !== undefined)
    throw new ConfigError(
      `${file} trains while it is being loaded as an environment or a task: run a program of your own by itself, npx tsx ${file}`,
    );
}

/** An algorithm of someone's own may have the setting, and nothing that evaluates; a caller may bring no doctor. */
function refuseBlind(
  { algorithm, config: { evaluateEvery = 0, autopilot = false }, learner }: Opened,
  { advisor }: TrainHooks,
): void {
  if (evaluateEvery > 0 && learner.evaluate === undefined)
    throw new ConfigError([
      wrong(
        'evaluateEvery',
        `${evaluateEvery} has no effect: the learner of ${algorithm.name} has no evaluate(); add one, or remove evaluateEvery`,
      ),
    ]);
  if (autopilot && advisor === undefined)
    throw new ConfigError([
      wrong(
        'autopilot',
        'has nobody to ask here: train with keel train, or with train of the package keel; in a study remove it',
      ),
    ]);
}

/** Iterates until the steps are done, a return is reached or someone stops it, and leaves a run that can be resumed. */
async function trainIn(
  { writer, ...start }: SessionStart,
  opened: Opened,
  hooks: TrainHooks,
): Promise<SessionResult> {
  const { learner, config, algorithm } = opened;
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
  let byHand: HandChanges | undefined;
  let pilot: Pilot | undefined;
  /** The iteration of the newest row. */
  let written = 0;
  let lastRow: Record<string, number> | undefined;
  /** Ends this run for one that goes on. */
  const handOver = (step: PilotStep): SessionResult => {
    const why = `its autopilot has ${step.child} go on`;
    writer.end('stopped', why);
    byHand?.close(why);
    const { id, dir } = writer;
    return { id, dir, status: 'stopped', step: counters.steps, lastRow, handOver: pilot!.handOver(step) };
  };
  try {
    byHand = handChanges(learner, writer.dir, start.changes ?? [], tell);
    recording = await recordLive({
      open: async () => learner.recorder?.(writer.dir),
      progress: counters,
      seed: config.seed,
      onProblem: text => tell({ type: 'note', text }),
    });
    await start.begin();
    // Of the first iteration that it affects; of the checkpoint, where there will be one with it before that.
    if (start.rescale)
      tell({ type: 'rescaled', ...start.rescale }, counters.iteration + (start.saveFirst ? 0 : 1));
    await checkpoints.begin(start);
    pilot = pilotOf({ algorithm, learner, config, writer, advisor: hooks.advisor });
    written = counters.iteration;
    const logBeside = learner.besideLog?.(writer.dir, counters.iteration);
    const progress = (): TrainProgress => ({
      id: writer.id,
      dir: writer.dir,
      subject: learner.environment.id,
      unit: algorithm.unit,
      config,
      step: counters.steps,
      totalSteps: learner.totalSteps,
      recorded: recording?.active,
    });
    await hooks.onStart?.(progress());
    let logSeconds = 0;
    // A run that goes on may be one that had come to its end.
    let reached = checkpoints.reached();
    while (counters.steps < learner.totalSteps && !reached && !hooks.signal?.aborted) {
      byHand.apply();
      if (byHand.stopped) break;
      const { row, events } = await learner.iterate();
      const evaluated = isEvaluated(config, counters, learner.totalSteps);
      if (evaluated) await evaluate(learner, row, events);
      const iteratedAt = performance.now();
      row['time/log_s'] = logSeconds;
      row['time/elapsed_s'] = (iteratedAt - startedAt) / 1000;
      writer.requireThere();
      for (const event of events) tell(event);
      logBeside?.();
      writer.row(row);
      written = counters.iteration;
      lastRow = row;
      checkpoints.see(row);
      hooks.onRow?.(row, progress());
      reached = checkpoints.reached();
      // Before its checkpoint: a kill after that one must not have lost it.
      if (reached) tell({ type: 'reached', ...reached });
      const step = reached ? undefined : await pilot?.after(row);
      if (step) tell(step);
      // Without a checkpoint, for which the healthy one might have to go: who resumes it decides the same again.
      if (step && step.action !== 'set') return handOver(step);
      if (step) byHand.add(adjustmentsOf(step, counters.iteration + 1));
      // What was judged is what is kept.
      if (evaluated || counters.iteration % config.checkpointEvery === 0) await checkpoints.save();
      // A recording makes its own directory: never where the run's is gone.
      writer.requireThere();
      recording?.tick();
      logSeconds = (performance.now() - iteratedAt) / 1000;
      // Programs block the thread: let signals, timers and the page have their turn.
      await nextTurn();
    }
    if (counters.iteration > 0) {
      await checkpoints.save();
      writer.requireThere();
      recording?.last();
    }
    const status = counters.steps < learner.totalSteps && !reached ? 'stopped' : 'finished';
    const by = byHand.stopped ? 'stopped from the page' : 'stopped by its user';
    const why = reached ? sentenceOf({ type: 'reached', ...reached }) : undefined;
    writer.end(status, status === 'stopped' ? by : why);
    byHand.close(`the run has ${status}`);
    const { id, dir } = writer;
    return {
      id,
      dir,
      status,
      step: counters.steps,
      lastRow,
      ...(reached && { reached }),
      ...learner.results?.(),
    };
  } catch (error) {
    const step = error instanceof TrainError ? await pilot?.failed(error) : undefined;
    if (step) {
      tell(step, written + 1);
      return handOver(step);
    }
    writer.end('failed', error instanceof Error ? error.message : String(error), wholeTrace(error));
    byHand?.close('the run has failed');
    if (start.made && counters.iteration === 0 && hooks.discardsFailedStart?.())
      rmSync(writer.dir, { recursive: true, force: true });
    throw error;
  } finally {
    recording?.close();
  }
}

/** Adds what an evaluation says of what was learnt to the row of its iteration, and what happened in it to the events. */
async function evaluate(learner: Learner, row: Record<string, number>, events: TrainEvent[]): Promise<void> {
  const startedAt = performance.now();
  const evaluation = await learner.evaluate!();
  Object.assign(row, evaluationRow(evaluation));
  row['time/eval_s'] = (performance.now() - startedAt) / 1000;
  events.push(...(evaluation.events ?? []));
}

/** When a run is saved, and what its checkpoints are scored by. */
function checkpointsOf(learner: Learner, writer: RunWriter, config: RunConfig, hooks: TrainHooks) {
  const { counters } = learner;
  // What `best` looks at goes back no further than the last regular checkpoint, which had another policy.
  const scoredRows = Math.min(config.checkpointEvery, scoreEpisodes);
  let recent: Readonly<Record<string, number>>[] = [];
  // What `stopAt` looks at: the newest row, and as many before it with episodes as can matter.
  let ended: Readonly<Record<string, number>>[] = [];
  const withEpisodes = (rows: typeof ended) => rows.filter(row => row['episode/return'] !== undefined);
  /** By an evaluation where the run has some: a checkpoint between two of them has no score. */
  const scored = (): { score?: number; scoredBy?: ScoreKind } => {
    const evaluates = (config.evaluateEvery ?? 0) > 0;
    const score = evaluates ? recent.at(-1)?.['eval/return'] : recentReturn(recent);
    return score === undefined ? {} : { score, ...(evaluates && { scoredBy: 'evaluation' }) };
  };
  let savedAt = -1;
  const save = async (): Promise<void> => {
    const { iteration, steps } = counters;
    if (iteration === savedAt) return;
    const keep = config.keepEvery > 0 && iteration % config.keepEvery === 0;
    const saved = { ...(await learner.save()), ...scored() };
    const { isBest } = await writer.checkpoint({ step: steps, iteration, keep, ...saved });
    await learner.saved?.(writer);
    savedAt = iteration;
    // Before anything was learnt it is nothing to tell people about; the run's events have it.
    if (iteration === 0 && steps === 0) return;
    const event = { type: 'checkpoint', checkpoint: steps, best: isBest, keep } as const;
    hooks.onEvent?.({ ...event, step: steps, message: sentenceOf(event) });
  };
  return {
    /** Before the first iteration: what was restored is on the disk already, what was made may not be. */
    async begin({ saveFirst, restored }: Pick<SessionStart, 'saveFirst' | 'restored'>): Promise<void> {
      if (saveFirst) await save();
      // What follows a checkpoint may be what a kill cut off.
      else if (restored) await learner.saved?.(writer);
      savedAt = counters.iteration;
      const { items } = readRows(writer.dir);
      recent = items.slice(-scoredRows);
      ended = [...withEpisodes(items.slice(0, -1)).slice(-scoreEpisodes), ...items.slice(-1)];
    },
    see(row: Readonly<Record<string, number>>): void {
      recent = [...recent, row].slice(-scoredRows);
      ended = [...withEpisodes(ended).slice(-scoreEpisodes), row];
    },
    reached: (): Reached | undefined => reachedIn(config, ended),
    save,
  };
}
