/** Whole training runs: a trainer, and a run on disk that it writes to. */
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { saveOnnx } from '../engine/index.ts';
import { makeVectorEnv, type OptionValues, resolveEnv } from '../envs/index.ts';
import {
  type Adjustment,
  adjustedAt,
  type Checkpoint,
  type EnvironmentSpec,
  loadCheckpoint,
  type Manifest,
  openRun,
  RunError,
  type RunEvent,
  RunWriter,
  readAdjustments,
  readRows,
  recentReturn,
  scoreEpisodes,
} from '../runs/index.ts';
import { filesOf, snapshotFrom, stateOf } from './checkpoint-files.ts';
import { settingProblems } from './explain-settings.ts';
import { policyGraph } from './export.ts';
import { handChanges } from './hand-changes.ts';
import { fittingActions, refuseInertForActions } from './inert-for-actions.ts';
import type { PpoConfig } from './ppo-config.ts';
import {
  createPpoTrainer,
  type PpoTrainer,
  TrainError,
  type TrainEvent,
  type TrainerCounters,
} from './ppo-trainer.ts';
import { rescaled } from './rescale.ts';
import { checkSameTask, type RewardRescale } from './same-task.ts';
import { loadPreset } from './settings-file.ts';
import { resolveConfig, settingsOf } from './train-config.ts';
import { ConfigError, type TrainConfig, type TrainSettings, trainSchema } from './train-schema.ts';
import { readWeights, warmStartSettings } from './warm-start.ts';

/** Written into every manifest. */
export const VERSION = '0.1.0';

export interface TrainHooks {
  /** When the run is on disk and its programs are ready, before the first iteration, which waits for it. */
  onStart?: (progress: TrainProgress) => unknown;
  /** After each iteration's row is on disk. */
  onRow?: (row: Readonly<Record<string, number>>, progress: TrainProgress) => void;
  /** What happened, checkpoints included; `message` is the sentence of the run's events. */
  onEvent?: (event: TrainEvent & { step: number; message: string }) => void;
  /** Stops after the iteration under way, with a checkpoint. */
  signal?: AbortSignal;
}

export interface TrainProgress {
  readonly id: string;
  readonly dir: string;
  readonly config: TrainConfig;
  readonly step: number;
  readonly totalSteps: number;
}

export interface TrainOptions extends TrainHooks {
  /** An id (`cartpole`, `CartPole-v1`) or a file (`./my-env.ts`). */
  env: string;
  envOptions?: OptionValues;
  /** What differs from the defaults. */
  config?: TrainSettings;
  /**
   * Defaults below `config`; what they set is never called inert. Unless given, the environment's own (`configs/`), as on
   * the command line; `{}` does without.
   */
  preset?: TrainSettings;
  /** Directory of runs; `runs` unless told. */
  root?: string;
  /**
   * Begins from the weights of another run (its directory) or of a file (`.safetensors`), of the same network: one that
   * was cloned, say. Unless `reference` is set, they are also a frozen reference to stay near at first.
   */
  from?: string;
  /** Which checkpoint of that run; the best, else the last. */
  fromCheckpoint?: 'last' | 'best' | number;
}

export interface TrainResult {
  readonly id: string;
  readonly dir: string;
  readonly status: 'finished' | 'stopped';
  readonly step: number;
  readonly lastRow: Readonly<Record<string, number>> | undefined;
}

/** Trains from the beginning in a new run. */
export async function train(options: TrainOptions): Promise<TrainResult> {
  if (typeof options?.env !== 'string')
    throw new ConfigError(
      `train needs an environment, not ${JSON.stringify(options?.env)}: train({ env: 'cartpole' }), or a file such as './my-env.ts'`,
    );
  const { id: envId } = await resolveEnv(options.env);
  const given = settingsOf(options.config);
  const weights = options.from === undefined ? undefined : readWeights(options.from, options.fromCheckpoint);
  const preset = { ...(weights ? warmStartSettings : {}), ...(options.preset ?? loadPreset(envId)) };
  const config = resolveConfig(preset, given);
  const session = await openSession(envId, options.envOptions ?? {}, config, given);
  const start = await orClose(session, () => weights?.fit(session.trainer.model.layout));
  const writer = await orClose(session, () =>
    RunWriter.create(
      {
        algorithm: 'ppo',
        environment: session.environment,
        config: { ...config, env: options.env },
        seed: config.seed,
        versions: { keel: VERSION },
        ...(weights?.parent ? { parent: weights.parent } : {}),
      },
      options.root === undefined ? {} : { root: options.root },
      { csv: config.csv, tensorboard: config.tensorboard },
    ),
  );
  return runSession(session, writer, config, options, {
    // Without it a kill before the first checkpoint would begin again without them.
    saveFirst: start !== undefined,
    begin: async () => {
      if (start) session.trainer.warmStart(start);
      await session.trainer.start();
    },
  });
}

export interface ResumeRunOptions extends TrainHooks {
  /** Changes to the run's config, such as more steps. */
  config?: TrainSettings;
  from?: 'last' | 'best' | number;
  discardLater?: boolean;
  /**
   * What to do when rewards have another scale than the value function learnt: refuse (default), or rescale the critic,
   * which is an error where they have not.
   */
  onRewardScale?: 'refuse' | 'rescale';
}

/** Takes a run up again: stopped, killed or finished with more steps to do. */
export async function resume(dir: string, options: ResumeRunOptions = {}): Promise<TrainResult> {
  requireDirectory(dir, 'resume');
  const { manifest } = openRun(dir);
  refuseClone(manifest);
  const { saved, env: reference } = configOf(manifest);
  const given = settingsOf(options.config);
  const config = resolveConfig(saved, given);
  refuseOtherShape(saved, config);
  const { id: envId } = await resolveEnv(reference);
  const session = await openSession(envId, manifest.environment.options as OptionValues, config, given);
  let rescale: RewardRescale | undefined;
  const made = await orClose(session, () => readAdjustments(dir));
  const { writer, checkpoint } = await orClose(session, () =>
    RunWriter.resume(dir, {
      csv: config.csv,
      tensorboard: config.tensorboard,
      ...(options.from === undefined ? {} : { from: options.from }),
      ...(options.discardLater === undefined ? {} : { discardLater: options.discardLater }),
      check: (saved_, point) => {
        const done = point?.index.step ?? 0;
        const wanted = options.config?.steps;
        if (wanted !== undefined && wanted < done) {
          throw new ConfigError(
            `this run has done ${done} steps, steps ${wanted} is less: give more, or leave it out`,
          );
        }
        rescale = checkSameTask(
          saved_,
          point?.index.environment,
          session.environment,
          options.onRewardScale ?? 'refuse',
        );
      },
      patch: { config: { ...config, env: reference }, environment: session.environment },
    }),
  );
  const iteration = checkpoint?.index.iteration ?? 0;
  // Made by hand before: they hold again from the same iterations on. What is set now goes before them, and who goes
  // back behind them on purpose does without.
  const changes = made.filter(
    change =>
      !Object.hasOwn(options.config ?? {}, change.key) &&
      (options.discardLater !== true || change.iteration <= iteration),
  );
  return runSession(session, writer, config, options, {
    changes,
    changesWereDropped: changes.length < made.length,
    rescale,
    begin: () => restore(session, checkpoint, { rescale, adjusted: adjustedAt(changes, iteration) }),
  });
}

export interface ForkOptions extends TrainHooks {
  /** The checkpoint to start from. Default `last`. */
  from?: 'last' | 'best' | number;
  /** What differs from the settings of the run that it comes from. */
  config?: TrainSettings;
  /** Directory of runs; that of the parent unless told. */
  root?: string;
  /** The new run's name; made of environment, time and seed unless given. */
  id?: string;
  onRewardScale?: 'refuse' | 'rescale';
}

/**
 * Starts a new run from a checkpoint of another, with other settings. The other run is not touched; the new one names it
 * as its parent. Steps go on from the checkpoint's, iterations begin at 1.
 */
export async function fork(dir: string, options: ForkOptions = {}): Promise<TrainResult> {
  requireDirectory(dir, 'fork');
  const parent = openRun(dir);
  refuseClone(parent.manifest);
  const checkpoint = loadCheckpoint(dir, options.from ?? 'last');
  if (!checkpoint) throw new TrainError(`${dir} has no checkpoint yet: start a new run`);
  const { step, iteration } = checkpoint.index;
  const { saved: written, env: reference } = configOf(parent.manifest);
  const saved = trainSchema.parse({ ...written, ...adjustedAt(readAdjustments(dir), iteration) });
  const given = settingsOf(options.config);
  const config = resolveConfig(saved, given);
  refuseOtherShape(saved, config);
  if (config.steps <= step) {
    throw new ConfigError(
      `steps ${config.steps} were done at checkpoint ${step}: give more, such as steps ${2 * step}`,
    );
  }
  const { id: envId } = await resolveEnv(reference);
  const session = await openSession(
    envId,
    parent.manifest.environment.options as OptionValues,
    config,
    given,
  );
  const { writer, rescale } = await orClose(session, () => ({
    rescale: checkSameTask(
      parent.manifest,
      checkpoint.index.environment,
      session.environment,
      options.onRewardScale ?? 'refuse',
    ),
    writer: RunWriter.create(
      {
        algorithm: parent.manifest.algorithm,
        environment: session.environment,
        config: { ...config, env: reference },
        seed: config.seed,
        versions: { keel: VERSION },
        parent: { id: parent.id, step },
      },
      { root: options.root ?? dirname(parent.dir), id: options.id },
      { csv: config.csv, tensorboard: config.tensorboard },
    ),
  }));
  const fresh = (counters: TrainerCounters): TrainerCounters => ({
    ...counters,
    iteration: 0,
    recoveries: 0,
    // A rate that was set is the rate, whatever controllers had made of the one before.
    ...('learningRate' in given ? { adaptiveFactor: 1, guardedFactor: 1, recoveryFactor: 1 } : {}),
    ...('klCoef' in given ? { klCoef: config.klCoef } : {}),
  });
  return runSession(session, writer, config, options, {
    // Without it a kill before the first checkpoint would begin again from the seed, not from the parent.
    saveFirst: true,
    rescale,
    begin: () => restore(session, checkpoint, { rescale, counters: fresh }),
  });
}

/** Puts a trainer where a checkpoint left it; without one, at the beginning. */
async function restore(
  { trainer }: Session,
  checkpoint: Checkpoint | undefined,
  {
    rescale,
    adjusted = {},
    counters = same => same,
  }: {
    readonly rescale: RewardRescale | undefined;
    /** Settings that were changed by hand up to there. */
    readonly adjusted?: Readonly<Record<string, number | null>>;
    readonly counters?: (saved: TrainerCounters) => TrainerCounters;
  },
): Promise<void> {
  // First, because what the counters say, such as an adaptive coefficient, is newer.
  trainer.adjust(adjusted as Partial<PpoConfig>);
  if (!checkpoint) return trainer.start();
  const snapshot = snapshotFrom(trainer.model.layout, checkpoint.files, checkpoint.state);
  const scaled = rescale ? rescaled(snapshot, trainer.model, rescale.factor) : snapshot;
  return trainer.restore({ ...scaled, counters: counters(scaled.counters) });
}

/** A trainer on the environments of a run. */
export interface Session {
  readonly trainer: PpoTrainer;
  readonly environment: EnvironmentSpec;
  close(): Promise<void>;
  readonly actionSpace: Parameters<typeof policyGraph>[2];
}

/** From JavaScript, anything may come. */
function requireDirectory(dir: string, name: string): void {
  if (typeof dir !== 'string')
    throw new ConfigError(
      `${name} needs the directory of a run, not ${JSON.stringify(dir)}: ${name}('runs/…')`,
    );
}

/** `written` are the settings that someone wrote for this session, of which each must mean something. */
export async function openSession(
  envId: string,
  envOptions: OptionValues,
  config: TrainConfig,
  written: TrainSettings = {},
): Promise<Session> {
  const envs = await makeVectorEnv(envId, {
    envCount: config.envs,
    workers: config.workers,
    options: envOptions,
  });
  try {
    refuseInertForActions(written, envs.actionSpace);
    const trainer = await createPpoTrainer({
      envs,
      config: fittingActions(config, envs.actionSpace),
      seed: config.seed,
      totalSteps: config.steps,
      rewardScale: config.rewardScale,
      device: config.device,
      threads: config.threads,
    });
    const { spec } = envs;
    return {
      trainer,
      actionSpace: envs.actionSpace,
      environment: {
        id: spec?.id ?? envId,
        version: String(spec?.version ?? 0),
        options: {
          ...(spec?.options ?? envOptions),
          // Not among the environment's own options, and part of the task.
          ...('maxEpisodeSteps' in envOptions && spec ? { maxEpisodeSteps: spec.maxEpisodeSteps } : {}),
        },
        reward: { scale: config.rewardScale, normalised: config.normaliseRewards },
      },
      async close() {
        trainer.dispose();
        await envs.close();
      },
    };
  } catch (error) {
    await envs.close();
    throw error;
  }
}

/** What `open` gives; if it fails, worker threads must not keep the process alive. */
export async function orClose<T>(session: Session, open: () => T): Promise<T> {
  try {
    return open();
  } catch (error) {
    await session.close();
    throw error;
  }
}

/** How a session begins. */
interface SessionStart {
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
async function runSession(
  session: Session,
  writer: RunWriter,
  config: TrainConfig,
  hooks: TrainHooks,
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
    const snapshot = await trainer.snapshot();
    const score = recentReturn(recent);
    const { isBest } = await writer.checkpoint({
      step: envSteps,
      iteration,
      files: filesOf(trainer.model.layout, snapshot),
      state: stateOf(snapshot),
      keep: config.keepEvery > 0 && iteration % config.keepEvery === 0,
      ...(score === undefined ? {} : { score }),
    });
    await savePolicy(session, join(writer.dir, 'policy.onnx'));
    savedAt = iteration;
    const message = `saved checkpoint ${envSteps}${isBest ? ', the best so far' : ''}`;
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
    const progress = (step: number): TrainProgress => ({
      id: writer.id,
      dir: writer.dir,
      config,
      step,
      totalSteps: config.steps,
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
      writer.row(row);
      lastRow = row;
      recent = [...recent, row].slice(-scoredRows);
      hooks.onRow?.(row, progress(step));
      if (iteration % config.checkpointEvery === 0) await save();
      logSeconds = (performance.now() - logged) / 1000;
      // Programs block the thread: let signals, timers and the page have their turn.
      await nextTurn();
    }
    if (trainer.counters.iteration > 0) await save();
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
    await session.close();
  }
}

/** Writes the deployable policy. */
export async function savePolicy({ trainer, actionSpace }: Session, path: string): Promise<void> {
  await saveOnnx(
    policyGraph(trainer.model, trainer.params, actionSpace, trainer.observationNormaliser),
    path,
  );
}

/** A run's config, which must be one of this version, and its environment as its user named it. */
function configOf({ id, config, environment, versions }: Manifest): { saved: TrainConfig; env: string } {
  const { env, ...settings } = config as Record<string, unknown>;
  const [problem] = settingProblems(settings);
  if (problem !== undefined) {
    throw new RunError(
      `${id} was written by another version of Keel (${versions.keel ?? 'unknown'}): ${problem.split(':')[0]}; use that version, or train again`,
      { code: 'other-version' },
    );
  }
  return { saved: trainSchema.parse(settings), env: typeof env === 'string' ? env : environment.id };
}

/** A cloned policy has no training to go on with. */
function refuseClone({ id, algorithm }: Manifest): void {
  if (algorithm === 'clone')
    throw new ConfigError(
      `${id} was cloned, not trained, so there is nothing to go on with: use keel train --from ${id}`,
    );
}

/** Sizes cannot change in mid-run. */
function refuseOtherShape(saved: TrainConfig, wanted: TrainConfig): void {
  const fixed = [
    'hidden',
    'activation',
    'network',
    'envs',
    'seed',
    'reference',
    'normaliseObservations',
    'normaliseRewards',
  ] as const;
  for (const key of fixed) {
    if (JSON.stringify(saved[key]) !== JSON.stringify(wanted[key])) {
      throw new ConfigError(
        `${key} is ${JSON.stringify(saved[key])} in this run and cannot become ${JSON.stringify(wanted[key])} on resuming: start a new run`,
      );
    }
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

/** The trainer of a run as a checkpoint left it, to evaluate or export. */
export async function openTrained(
  dir: string,
  which: 'last' | 'best' | number = 'last',
): Promise<Session & { env: string }> {
  const { manifest } = openRun(dir);
  const checkpoint = loadCheckpoint(dir, which);
  if (!checkpoint) throw new TrainError(`${dir} has no checkpoint yet: train it first`);
  const { saved, env: reference } = configOf(manifest);
  const { id } = await resolveEnv(reference);
  const session = await openSession(id, manifest.environment.options as OptionValues, saved);
  await session.trainer.restore(
    snapshotFrom(session.trainer.model.layout, checkpoint.files, checkpoint.state),
  );
  return { ...session, env: reference };
}
