/** Whole training runs: a trainer, and a run on disk that it writes to. */
import { dirname, join } from 'node:path';
import { saveOnnx } from '../engine/index.ts';
import {
  type ClusterOptions,
  clusterDefinition,
  makeVectorEnv,
  type OptionValues,
  resolveEnv,
} from '../envs/index.ts';
import {
  adjustedAt,
  type Checkpoint,
  loadCheckpoint,
  type Manifest,
  openRun,
  RunError,
  RunWriter,
  readAdjustments,
} from '../runs/index.ts';
import { filesOf, snapshotFrom, stateOf } from './checkpoint-files.ts';
import { settingProblems } from './explain-settings.ts';
import { policyGraph } from './export.ts';
import { fittingActions, refuseInertForActions } from './inert-for-actions.ts';
import type { PpoConfig } from './ppo-config.ts';
import type { TrainerCounters } from './ppo-control.ts';
import { createPpoTrainer, type PpoTrainer } from './ppo-trainer.ts';
import { recordLive, replayWriter } from './record.ts';
import { routingWriter } from './record-routing.ts';
import { rescaled } from './rescale.ts';
import {
  orClose,
  runSession,
  type Session,
  type TrainHooks,
  type TrainResult,
  VERSION,
} from './run-session.ts';
import { checkSameTask, type RewardRescale } from './same-task.ts';
import { loadPreset } from './settings-file.ts';
import { resolveConfig, settingsOf } from './train-config.ts';
import { TrainError } from './train-error.ts';
import { ConfigError, type TrainConfig, type TrainSettings, trainSchema } from './train-schema.ts';
import { readWeights, requireSameScale, warmStartPreset } from './warm-start.ts';

export type { TrainHooks, TrainProgress, TrainResult } from './run-session.ts';

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
   * was cloned, say. Unless `reference`, `klRefDecaySteps` or `warmupShare` are set, they are also a frozen reference, let go
   * over two thirds of the run, and the learning rate rises over a tenth of it.
   */
  from?: string;
  /** Which checkpoint of that run; the best, else the last; of a cluster the last. */
  fromCheckpoint?: 'last' | 'best' | number;
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
  const own = options.preset ?? loadPreset(envId);
  const preset = weights ? warmStartPreset(own, given) : own;
  const config = resolveConfig(preset, given);
  const session = await openSession(envId, options.envOptions ?? {}, config, given);
  const start = await orClose(session, () => {
    const { layout, observationSize } = session.trainer.model;
    const fitted = weights?.fit(layout);
    if (weights) requireSameScale(weights, options.from!, config.normaliseObservations, observationSize);
    return fitted;
  });
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
      if (start) session.trainer.warmStart(start, weights?.observationMoments ?? undefined);
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
  { trainer }: PpoSession,
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
export interface PpoSession extends Session {
  readonly trainer: PpoTrainer;
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
): Promise<PpoSession> {
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
    const session: PpoSession = {
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
      ...(config.record && {
        record: (runDir: string, onProblem: (message: string) => void) =>
          recordLive({
            open: () =>
              envId === clusterDefinition.id
                ? routingWriter(runDir, spec!.options as ClusterOptions, trainer)
                : replayWriter(runDir, envId, envOptions, trainer.model),
            policy: () => ({
              params: trainer.params,
              normaliser: trainer.observationNormaliser,
              step: trainer.counters.envSteps,
              iteration: trainer.counters.iteration,
            }),
            seed: config.seed,
            onProblem,
          }),
      }),
      async save() {
        const snapshot = await trainer.snapshot();
        return { files: filesOf(trainer.model.layout, snapshot), state: stateOf(snapshot) };
      },
      saved: writer => savePolicy(session, join(writer.dir, 'policy.onnx')),
      async close() {
        trainer.dispose();
        await envs.close();
      },
    };
    return session;
  } catch (error) {
    await envs.close();
    throw error;
  }
}

/** Writes the deployable policy. */
export async function savePolicy({ trainer, actionSpace }: PpoSession, path: string): Promise<void> {
  await saveOnnx(
    policyGraph(trainer.model, trainer.params, actionSpace, trainer.observationNormaliser),
    path,
  );
}

/** A run's config, which must be one of this version, and its environment as its user named it. */
function configOf({ id, config, environment, versions }: Manifest): { saved: TrainConfig; env: string } {
  const { env, task, ...settings } = config as Record<string, unknown>;
  if (task !== undefined)
    throw new RunError(
      `${id} is a run of a language model on ${task}: its checkpoints are model directories, keel resume goes on with it`,
    );
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

/** The trainer of a run as a checkpoint left it, to evaluate or export. */
export async function openTrained(
  dir: string,
  which: 'last' | 'best' | number = 'last',
): Promise<PpoSession & { env: string }> {
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
