/** Whole runs over text: GRPO and cloning, from the beginning, from a model, and taken up again. */
import { resolve } from 'node:path';
import { type LanguageModel, languageModel, loadModel, ownTokenizer } from '../lm/index.ts';
import { Rng } from '../random/index.ts';
import {
  adjustedAt,
  type Checkpoint,
  type EnvironmentSpec,
  loadCheckpoint,
  type Manifest,
  openRun,
  RunError,
  RunWriter,
  readAdjustments,
} from '../runs/index.ts';
import {
  createTask,
  resolveTask,
  type TextTask,
  type TextTaskDefinition,
  taskOptions,
} from '../tasks/index.ts';
import { type CloneSnapshot, createCloneTrainer } from './clone.ts';
import { checkpointModel, textFiles, textSnapshot } from './grpo/checkpoint.ts';
import {
  type CloneConfig,
  type CloneSettings,
  cloneProblems,
  cloneSchema,
  resolveCloneConfig,
} from './grpo/clone-config.ts';
import { CompletionLog } from './grpo/completion-records.ts';
import { type GrpoConfig, type GrpoSettings, grpoSchema } from './grpo/config.ts';
import { grpoProblems, resolveGrpoConfig } from './grpo/settings.ts';
import { createGrpoTrainer, type GrpoSnapshot } from './grpo.ts';
import type { IterationResult } from './iteration.ts';
import {
  orClose,
  runSession,
  type Session,
  type SessionTrainer,
  type TrainHooks,
  type TrainResult,
  VERSION,
} from './run-session.ts';
import { checkSameTask } from './same-task.ts';
import { loadPreset } from './settings-file.ts';
import { settingsOf } from './train-config.ts';
import { TrainError } from './train-error.ts';
import { ConfigError } from './train-schema.ts';

/** How a text is learnt: from rewards, or from demonstrations. */
export type TextAlgorithm = 'grpo' | 'clone';

export type TextConfig = GrpoConfig | CloneConfig;
export type TextSettings = GrpoSettings | CloneSettings;

export interface TextTrainOptions extends TrainHooks<TextConfig> {
  /** A task by its name (`chess`) or a file (`./my-task.ts`). */
  task: string;
  taskOptions?: object;
  /** What differs from the defaults. */
  config?: TextSettings;
  /** Defaults below `config`; the task's own (`configs/`) unless given. */
  preset?: TextSettings;
  /** The directory of a model to start from; without one a small new model is made. */
  from?: string;
  /** The run that `from` is a checkpoint of, for the manifest. */
  parent?: { readonly id: string; readonly step: number };
  /** Directory of runs; `runs` unless told. */
  root?: string;
}

/** What differs between the two ways of learning. */
const algorithms = {
  grpo: {
    resolve: resolveGrpoConfig as (...layers: readonly Readonly<Record<string, unknown>>[]) => TextConfig,
    problems: grpoProblems,
    schema: grpoSchema,
    streams: ['prompt', 'sample', 'order'],
    preset: (task: string) => task,
  },
  clone: {
    resolve: resolveCloneConfig as (...layers: readonly Readonly<Record<string, unknown>>[]) => TextConfig,
    problems: cloneProblems,
    schema: cloneSchema,
    streams: ['prompt'],
    preset: (task: string) => `${task}-clone`,
  },
} as const;

/** What manifests call them: `clone` alone is the cloning of policies. */
const manifestNames: Readonly<Record<TextAlgorithm, string>> = { grpo: 'grpo', clone: 'clone-text' };

/** Whether a run is of a language model, by the algorithm in its manifest. */
export function isTextRun({ algorithm }: Pick<Manifest, 'algorithm'>): boolean {
  return Object.values(manifestNames).includes(algorithm);
}

/** The preset of a task for one way of learning; without one, nothing. */
export function textPreset(task: string, algorithm: TextAlgorithm): Record<string, unknown> {
  return loadPreset(algorithms[algorithm].preset(task)) as Record<string, unknown>;
}

/** A whole config of one way of learning. */
export function resolveTextConfig(
  algorithm: TextAlgorithm,
  ...layers: readonly Readonly<Record<string, unknown>>[]
): TextConfig {
  return algorithms[algorithm].resolve(...layers);
}

/** Trains a language model on a task's rewards in a new run. */
export function trainText(options: TextTrainOptions): Promise<TrainResult> {
  return begin('grpo', options);
}

/** Makes a language model that writes a task's demonstrations, in a new run. */
export function cloneText(options: TextTrainOptions): Promise<TrainResult> {
  return begin('clone', options);
}

async function begin(algorithm: TextAlgorithm, options: TextTrainOptions): Promise<TrainResult> {
  if (typeof options?.task !== 'string')
    throw new ConfigError(
      `training needs a task, not ${JSON.stringify(options?.task)}: { task: 'arithmetic' }, or a file such as './my-task.ts'`,
    );
  const definition = await resolveTask(options.task);
  const given = settingsOf(options.config);
  const config = resolveTextConfig(
    algorithm,
    settingsOf(options.preset ?? textPreset(definition.name, algorithm)),
    given,
  );
  if (options.from !== undefined) refuseSizes(given);
  const notices: string[] = [];
  const task = await makeTask(definition, options.taskOptions, notices);
  const session = await orCloseTask(task, async () => {
    const model = options.from === undefined ? newModel(task, config) : await loadModel(options.from);
    return openSession(algorithm, definition, task, model, config, options.taskOptions ?? {}, notices);
  });
  const writer = await orClose(session, () =>
    RunWriter.create(
      {
        algorithm: manifestNames[algorithm],
        environment: session.environment,
        config: manifestConfig(config, options.task, options.from, task),
        seed: config.seed,
        versions: { keel: VERSION },
        ...(options.parent ? { parent: options.parent } : {}),
      },
      options.root === undefined ? {} : { root: options.root },
      { csv: config.csv, tensorboard: config.tensorboard },
    ),
  );
  // Saved before the first iteration: a kill must not need the model that it started from.
  return runSession(session, writer, config, options, {
    saveFirst: true,
    begin: async () => session.open(writer.dir, 0),
  });
}

export interface TextResumeOptions extends TrainHooks<TextConfig> {
  /** Changes to the run's config, such as more steps. */
  config?: TextSettings;
  from?: 'last' | 'best' | number;
  discardLater?: boolean;
}

/** Takes a run up again: stopped, killed or finished with more steps to do. */
export async function resumeText(dir: string, options: TextResumeOptions = {}): Promise<TrainResult> {
  const { manifest } = openRun(dir);
  const { algorithm, saved, task: reference } = textRun(manifest);
  const given = settingsOf(options.config);
  const config = resolveTextConfig(algorithm, saved, given);
  refuseOtherShape(saved, config);
  const definition = await resolveTask(reference);
  const notices: string[] = [];
  const task = await makeTask(definition, manifest.environment.options, notices);
  const session = await orCloseTask(task, async () => {
    const found = loadCheckpoint(dir, options.from ?? 'last');
    if (!found) throw new TrainError(`${dir} has no checkpoint: train again`);
    const model = checkpointModel(found);
    return openSession(
      algorithm,
      definition,
      task,
      model,
      config,
      manifest.environment.options as object,
      notices,
    );
  });
  const made = await orClose(session, () => readAdjustments(dir));
  const { writer, checkpoint } = await orClose(session, () =>
    RunWriter.resume(dir, {
      csv: config.csv,
      tensorboard: config.tensorboard,
      ...(options.from === undefined ? {} : { from: options.from }),
      ...(options.discardLater === undefined ? {} : { discardLater: options.discardLater }),
      check: (before, point) => {
        const wanted = (given as { steps?: number }).steps;
        if (wanted !== undefined && wanted < (point?.index.step ?? 0)) {
          throw new ConfigError(
            `this run has done ${point?.index.step} steps, steps ${wanted} is less: give more, or leave it out`,
          );
        }
        checkSameTask(before, point?.index.environment, session.environment, 'refuse');
      },
      patch: {
        config: {
          ...manifestConfig(config, reference, (manifest.config as { from?: string }).from, task),
          ...earlierSources(manifest, task),
        },
        environment: session.environment,
      },
    }),
  );
  const iteration = checkpoint?.index.iteration ?? 0;
  const changes = made.filter(
    change =>
      !Object.hasOwn(given, change.key) && (options.discardLater !== true || change.iteration <= iteration),
  );
  return runSession(session, writer, config, options, {
    changes,
    changesWereDropped: changes.length < made.length,
    begin: async () => {
      session.trainer.adjust(adjustedAt(changes, iteration) as Record<string, number | null>);
      if (checkpoint) session.restore(checkpoint);
      session.open(writer.dir, iteration);
    },
  });
}

/** The model and the task of a run's checkpoint, to evaluate; close the task when done. `others` go before the run's options. */
export async function openTextRun(
  dir: string,
  which: 'last' | 'best' | number = 'last',
  others: object = {},
): Promise<{
  model: LanguageModel;
  task: TextTask;
  taskOptions: object;
  config: TextConfig;
  step: number;
  name: string;
}> {
  const { manifest } = openRun(dir);
  const { saved, task: reference } = textRun(manifest);
  const checkpoint = loadCheckpoint(dir, which);
  if (!checkpoint) throw new TrainError(`${dir} has no checkpoint yet: train it first`);
  const definition = await resolveTask(reference);
  const model = checkpointModel(checkpoint);
  const options = { ...manifest.environment.options, ...others };
  const task = await makeTask(definition, options, []);
  return {
    model,
    task,
    taskOptions: options,
    config: saved,
    step: checkpoint.index.step,
    name: definition.name,
  };
}

/** A small model for a task, from its seed. */
export function newModel(task: TextTask, config: TextConfig): LanguageModel {
  const tokenizer = ownTokenizer(`${task.characters}${task.stop.join('')}`, task.pieces);
  // The end token stands before every prompt.
  const needed =
    1 + task.maxPromptTokens + Math.max(task.maxNewTokens, (config as GrpoConfig).maxNewTokens ?? 0);
  const context = config.context ?? Math.ceil(needed / 16) * 16;
  const { layers, width, heads } = config;
  const [, , , , rng] = new Rng(config.seed).split(5);
  return languageModel({ vocabulary: tokenizer.size, context, layers, width, heads }, tokenizer, { rng });
}

// ---- a session -----------------------------------------------------------------------------------------------------------

interface TextSession extends Session {
  /** Begins to write beside the log of a run that has done so many iterations. */
  open(dir: string, iteration: number): void;
  restore(checkpoint: Checkpoint): void;
}

async function openSession(
  algorithm: TextAlgorithm,
  definition: TextTaskDefinition,
  task: TextTask,
  model: LanguageModel,
  config: TextConfig,
  given: object,
  notices: string[],
): Promise<TextSession> {
  const environment: EnvironmentSpec = {
    id: definition.name,
    version: '0',
    options: { ...taskOptions(definition, given) } as EnvironmentSpec['options'],
    reward: { scale: 1, normalised: false },
  };
  checkFits(task, model);
  const made =
    algorithm === 'grpo'
      ? grpoSide(createGrpoTrainer({ model, task, config: config as GrpoConfig }))
      : cloneSide(createCloneTrainer({ model, task, config: config as CloneConfig }));
  let log: CompletionLog | undefined;
  const { trainer } = made;
  return {
    environment,
    trainer: {
      get config() {
        return trainer.config;
      },
      counters: trainer.counters,
      adjust: changes => trainer.adjust(changes),
      async iterate(): Promise<IterationResult> {
        const result = await trainer.iterate();
        for (const message of notices.splice(0)) result.events.push({ type: 'notice', text: message });
        return result;
      },
    } satisfies SessionTrainer,
    async save() {
      const snapshot = trainer.snapshot();
      return {
        files: textFiles(model, snapshot),
        state: { counters: snapshot.counters, rng: snapshot.rng },
      };
    },
    // An engine may have failed for good: the manifest says where labels truly came from.
    async saved(writer) {
      const sources = task.sources?.() ?? {};
      const { config: written } = writer.manifest;
      if (JSON.stringify((written as { sources?: unknown }).sources) !== JSON.stringify(sources))
        writer.reconfigure({ ...written, sources });
    },
    open(dir, iteration) {
      log = algorithm === 'grpo' ? new CompletionLog(dir, iteration) : undefined;
    },
    logged() {
      log?.add(made.records());
    },
    restore: checkpoint => made.restore(checkpoint),
    async close() {
      await trainer.dispose();
      await task.close?.();
    },
  };
}

const grpoSide = (trainer: ReturnType<typeof createGrpoTrainer>) => ({
  trainer,
  records: () => trainer.records,
  restore: (checkpoint: Checkpoint) =>
    trainer.restore(textSnapshot<GrpoSnapshot>(trainer.model, checkpoint, algorithms.grpo.streams)),
});

const cloneSide = (trainer: ReturnType<typeof createCloneTrainer>) => ({
  trainer,
  records: () => [],
  restore: (checkpoint: Checkpoint) =>
    trainer.restore(textSnapshot<CloneSnapshot>(trainer.model, checkpoint, algorithms.clone.streams)),
});

/** A tokenizer that cannot write what the task asks for is refused before anything is trained. */
function checkFits(task: TextTask, { tokenizer, options }: LanguageModel): void {
  tokenizer.encode(task.characters);
  if (task.maxNewTokens + 1 > options.context) {
    throw new TrainError(
      `${task.name} needs ${task.maxNewTokens} new tokens, the model's context holds ${options.context}: use a model with a larger context`,
    );
  }
}

async function makeTask(
  definition: TextTaskDefinition,
  options: unknown,
  notices: string[],
): Promise<TextTask> {
  return createTask(definition, (options ?? {}) as object, {
    notice: message => {
      // A faulty engine may have one for every position: the first say enough.
      if (notices.length < 20) notices.push(message);
    },
  });
}

async function orCloseTask<T>(task: TextTask, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await task.close?.();
    throw error;
  }
}

function manifestConfig(
  config: TextConfig,
  task: string,
  from: string | null | undefined,
  made: TextTask,
): Record<string, unknown> {
  return {
    ...config,
    task,
    from: from === undefined || from === null ? null : resolve(from),
    sources: made.sources?.() ?? {},
  };
}

/** Where prompts and grades came from before this resumption, where that was not the same: an engine that had given up. */
function earlierSources({ config }: Manifest, task: TextTask): { sourcesBefore?: readonly unknown[] } {
  const { sources, sourcesBefore = [] } = config as { sources?: unknown; sourcesBefore?: readonly unknown[] };
  const changed = sources !== undefined && JSON.stringify(sources) !== JSON.stringify(task.sources?.() ?? {});
  const before = changed ? [...sourcesBefore, sources] : sourcesBefore;
  return before.length === 0 ? {} : { sourcesBefore: before };
}

/** A text run's algorithm, config and task as its user named it. */
function textRun({ id, algorithm, config, environment, versions }: Manifest): {
  algorithm: TextAlgorithm;
  saved: TextConfig;
  task: string;
} {
  const known = (Object.keys(algorithms) as TextAlgorithm[]).find(name => manifestNames[name] === algorithm);
  if (known === undefined)
    throw new RunError(`${id} is a run of ${algorithm}, not of a language model: use the commands for that`);
  const { task, from: _, sources: __, sourcesBefore: ___, ...settings } = config as Record<string, unknown>;
  const [problem] = algorithms[known].problems(settings);
  if (problem !== undefined) {
    throw new RunError(
      `${id} was written by another version of Keel (${versions.keel ?? 'unknown'}): ${problem.split(':')[0]}; use that version, or train again`,
      { code: 'other-version' },
    );
  }
  return {
    algorithm: known,
    saved: algorithms[known].schema.parse(settings) as TextConfig,
    task: typeof task === 'string' ? task : environment.id,
  };
}

const sizes = ['layers', 'width', 'heads', 'context'] as const;

function refuseSizes(given: Readonly<Record<string, unknown>>): void {
  const written = sizes.filter(key => Object.hasOwn(given, key));
  if (written.length > 0) {
    throw new ConfigError(
      written
        .map(
          key =>
            `${key} has no effect with a model to start from, which has its own: remove ${key}, or --from`,
        )
        .join('\n'),
    );
  }
}

/** Sizes cannot change in mid-run. */
function refuseOtherShape(saved: TextConfig, wanted: TextConfig): void {
  for (const key of [...sizes, 'seed', 'reference'] as const) {
    const [before, now] = [saved, wanted].map(config => (config as Record<string, unknown>)[key]);
    if (JSON.stringify(before) !== JSON.stringify(now)) {
      throw new ConfigError(
        `${key} is ${JSON.stringify(before)} in this run and cannot become ${JSON.stringify(now)} on resuming: start a new run`,
      );
    }
  }
}
