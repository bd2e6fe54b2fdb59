/** The life of a run, for every algorithm: begin, start from weights, resume, fork, and hold what was learnt. */
import { dirname } from 'node:path';
import { ConfigError, RunError, TrainError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import type { EnvDefinition } from '../envs/definition.ts';
import type { OptionValues } from '../envs/options.ts';
import type { Space } from '../envs/spaces.ts';
import { listCheckpoints, loadCheckpoint } from '../runs/checkpoint.ts';
import { adjustedAt, readAdjustments } from '../runs/inbox.ts';
import { defaultRoot } from '../runs/layout.ts';
import { listRuns, type Place, type Run, resolveRun } from '../runs/store.ts';
import { RunWriter } from '../runs/writer.ts';
import { refuseOtherShape, resolveSettings, savedSettings, settingsOf } from '../settings/resolve.ts';
import type { RunConfig } from '../settings/spec.ts';
import type { TextTaskDefinition } from '../tasks/text-task.ts';
import type { Algorithm, Learner, Settings, Start, WhichCheckpoint } from './algorithm.ts';
import { algorithmFor, algorithmOf } from './algorithms.ts';
import { readCheckpoint } from './choose-checkpoint.ts';
import type { ClonePolicySettings } from './clone/policy/settings.ts';
import type { CloneTextSettings } from './clone/text/settings.ts';
import type { GrpoSettings } from './grpo/settings.ts';
import type { TrainHooks, TrainResult } from './hooks.ts';
import type { Policy } from './policy.ts';
import type { PpoSettings } from './ppo/settings.ts';
import { checkSameTask, type RewardRescale } from './same-task.ts';
import { runSession } from './session.ts';
import { resolveSubject, type Subject, type SubjectReference, subjectOf } from './subject.ts';

/** What a new run is told, whatever it learns in. */
interface BeginOptions extends TrainHooks {
  /** Directory of runs; `runs` unless told. */
  root?: string | undefined;
  /**
   * Begins from the weights of another run (its id, its directory or `last`), of a file (`.safetensors`, of the same
   * network) or of a model's directory (text). For PPO they are also a frozen reference, let go over two thirds of the run,
   * and the learning rate rises over a tenth of it, unless `reference`, `klRefDecaySteps` or `warmupShare` are set.
   */
  from?: string | undefined;
  /** Which checkpoint of that run; unless given, the best, else the last; where returns do not compare, the last. */
  fromCheckpoint?: WhichCheckpoint | undefined;
}

/** A new run of an algorithm of your own, instead of the usual one; its settings are checked when it begins. */
type OfAlgorithm = { algorithm: Algorithm } & (InEnvironment<Settings> | OnTask<Settings>);
/** A new run of the usual one. */
type Usual<O> = O & { algorithm?: undefined };

/** A new run in an environment. */
interface InEnvironment<S> {
  /** An id (`cartpole`, `CartPole-v1`), a file (`./my-env.ts`), or what `defineEnv` gives. */
  env: string | EnvDefinition;
  envOptions?: OptionValues;
  /** The file that defines an environment which is given as a definition: what the command line finds it by. */
  envFile?: string | undefined;
  /** What differs from the defaults. */
  config?: S;
  /**
   * Defaults below `config`; what they set is never called inert. Unless given, the environment's own (`configs/`), as on
   * the command line; `{}` does without.
   */
  preset?: S;
}

/** A new run on a text task. */
interface OnTask<S> {
  /** A task by its name (`chess`), a file (`./my-task.ts`), or what `defineTask` gives. */
  task: string | TextTaskDefinition;
  taskOptions?: object;
  envFile?: string | undefined;
  /** What differs from the defaults. */
  config?: S;
  /** Defaults below `config`; the task's own (`configs/`) unless given. */
  preset?: S;
}

/** What `train` is told. */
export type TrainOptions = BeginOptions &
  (Usual<InEnvironment<PpoSettings> | OnTask<GrpoSettings>> | OfAlgorithm);
/** What `clone` is told. */
export type CloneOptions = BeginOptions &
  (Usual<InEnvironment<ClonePolicySettings> | OnTask<CloneTextSettings>> | OfAlgorithm);

/** Trains from the beginning in a new run: a policy with PPO, or a language model with GRPO. */
export function train(options: TrainOptions): Promise<TrainResult> {
  return begin('train', options);
}

/** Makes a policy or a language model that does as demonstrations do, in a new run: what training can start from. */
export function clone(options: CloneOptions): Promise<TrainResult> {
  return begin('clone', options);
}

/** What a run would be made of: all that is found out and checked before anything is made. */
export interface PreparedRun {
  readonly subject: Subject;
  readonly algorithm: Algorithm;
  readonly config: RunConfig;
  /** What of the config was written for it. */
  readonly written: Settings;
  readonly start: Start | undefined;
}

const kinds = { env: 'an environment', task: 'a text task' } as const;

/** Resolves what is learnt in, by which algorithm, with which settings and from which weights. */
export async function prepareRun(
  verb: Algorithm['verb'],
  options: TrainOptions | CloneOptions,
): Promise<PreparedRun> {
  const what = options && ('task' in options ? options.task : options.env);
  if (what === undefined || what === null)
    throw new ConfigError(
      `${verb} needs an environment or a task, not ${what}: ${verb}({ env: 'cartpole' }), or a file such as './my-env.ts'`,
    );
  const given = 'task' in options ? options.taskOptions : options.envOptions;
  const subject = await resolveSubject(what, given, options.envFile);
  const algorithm = options.algorithm ?? algorithmFor(verb, subject);
  if (algorithm.learnsIn !== subject.kind)
    throw new ConfigError(
      `${algorithm.name} needs ${kinds[algorithm.learnsIn]}, ${subject.id} is ${kinds[subject.kind]}: use another one, or another algorithm`,
    );
  const written = settingsOf(options.config);
  const start = startOf(algorithm, options);
  const own = options.preset === undefined ? algorithm.preset(subject.id) : settingsOf(options.preset);
  const preset = (start && algorithm.startPreset?.(own, written)) ?? own;
  const config = resolveSettings(algorithm.settings, { preset, given: written });
  return { subject, algorithm, config, written, start };
}

async function begin(verb: Algorithm['verb'], options: TrainOptions | CloneOptions): Promise<TrainResult> {
  const { subject, algorithm, config, written, start } = await prepareRun(verb, options);
  const learner = await algorithm.open({ subject, config, written, start });
  const { writer } = await orClose(learner, () => ({
    writer: createRun(algorithm, subject, learner, config, start?.parent, { root: options.root }),
  }));
  return runSession(learner, writer, config, options, {
    unit: algorithm.unit,
    // Without it a kill before the first checkpoint would begin again from the seed.
    saveFirst: start !== undefined || algorithm.savesBeginning === true,
    begin: () => learner.begin(),
  });
}

function startOf(algorithm: Algorithm, { from, fromCheckpoint, root }: BeginOptions): Start | undefined {
  if (from === undefined) return undefined;
  if (algorithm.start === undefined)
    throw new ConfigError(
      `${algorithm.name} starts anew, it cannot begin from ${from}: leave it out (--from)`,
    );
  return algorithm.start(from, { checkpoint: fromCheckpoint, root: root ?? defaultRoot });
}

/** Makes the run of a learner that begins. */
function createRun(
  algorithm: Algorithm,
  subject: Subject,
  learner: Learner,
  config: RunConfig,
  parent: Start['parent'],
  place: Place,
): RunWriter {
  const { csv, tensorboard, seed } = config;
  return RunWriter.create(
    {
      algorithm: algorithm.name,
      environment: learner.environment,
      config: manifestConfig(config, subject, learner),
      seed,
      versions: { keel: VERSION },
      ...(parent && { parent }),
    },
    place,
    { csv, tensorboard },
  );
}

/** All that a manifest says of how a run is trained. */
function manifestConfig(config: RunConfig, subject: Subject, learner: Learner): Record<string, unknown> {
  return { ...config, [subject.kind]: subject.reference, ...learner.notes?.() };
}

/** How a run goes on. */
export interface ResumeOptions extends TrainHooks {
  /** Changes to the run's config, such as more steps. */
  config?: Settings;
  /** The checkpoint to go on from. Default `last`. */
  from?: WhichCheckpoint | undefined;
  /** Allows going back behind checkpoints that are whole, which deletes what follows. */
  discardLater?: boolean | undefined;
  /**
   * What to do when rewards have another scale than the value function learnt: refuse (default), or rescale the critic,
   * which is an error where they have not.
   */
  onRewardScale?: 'refuse' | 'rescale';
  /** Directory of runs; `runs` unless told. */
  root?: string | undefined;
  /** Where an environment that was registered in code is defined. */
  envFile?: string | undefined;
}

/** Resumes a run (its id, its directory, or `last`): stopped, killed, or finished with more to do. */
export async function resume(reference: string, options: ResumeOptions = {}): Promise<TrainResult> {
  const { dir, manifest } = namedRun(reference, 'resume', options.root);
  const algorithm = algorithmOf(manifest);
  const written = settingsOf(options.config);
  const saved = savedSettings(algorithm.settings, manifest);
  const config = resolveSettings(algorithm.settings, { preset: saved, given: written });
  refuseOtherShape(algorithm.settings, saved, config);
  const subject = await subjectOf(manifest, options.envFile);
  const learner = await algorithm.open({
    subject,
    config,
    written,
    from: { manifest, checkpoint: loadCheckpoint(dir, options.from) },
  });
  let rescale: RewardRescale | undefined;
  const { made, writer, checkpoint } = await orClose(learner, () => ({
    made: readAdjustments(dir),
    ...RunWriter.resume(dir, {
      csv: config.csv,
      tensorboard: config.tensorboard,
      from: options.from,
      discardLater: options.discardLater,
      check: (before, point) => {
        refuseFewerSteps(written.steps, point?.index.step ?? 0);
        const { onRewardScale = 'refuse' } = options;
        rescale = checkSameTask(before, point?.index.environment, learner.environment, onRewardScale);
      },
      patch: { config: manifestConfig(config, subject, learner), environment: learner.environment },
    }),
  }));
  const iteration = checkpoint?.index.iteration ?? 0;
  // Made by hand before: they hold again from the same iterations on. What is set now goes before them, and who goes
  // back behind them on purpose does without.
  const changes = made.filter(
    change =>
      !Object.hasOwn(written, change.key) && (options.discardLater !== true || change.iteration <= iteration),
  );
  return runSession(learner, writer, config, options, {
    unit: algorithm.unit,
    changes,
    changesWereDropped: changes.length < made.length,
    rescale,
    async begin() {
      // First, because what the counters say, such as an adaptive coefficient, is newer.
      learner.adjust(adjustedAt(changes, iteration));
      if (checkpoint) await learner.restore(checkpoint, { rescale });
      else await learner.begin();
    },
  });
}

function refuseFewerSteps(wanted: unknown, done: number): void {
  if (typeof wanted === 'number' && wanted < done) {
    const text = `this run has done ${done} steps, steps ${wanted} is less: give more, or leave it out`;
    throw new ConfigError([{ text }]);
  }
}

/** How a run is forked. */
export interface ForkOptions extends TrainHooks {
  /** The checkpoint to start from. Default `last`. */
  from?: WhichCheckpoint | undefined;
  /** What differs from the settings of the run that it comes from. */
  config?: Settings;
  /** Directory of runs; that of the parent unless told. */
  root?: string | undefined;
  /** The new run's name; made of environment, time and seed unless given. */
  id?: string | undefined;
  onRewardScale?: 'refuse' | 'rescale';
  envFile?: string | undefined;
}

/**
 * Starts a new run from a checkpoint of another, with other settings. The other run is not touched; the new one names it
 * as its parent. Steps go on from the checkpoint's, iterations begin at 1.
 */
export async function fork(reference: string, options: ForkOptions = {}): Promise<TrainResult> {
  const parent = namedRun(reference, 'fork', options.root);
  const { dir, manifest } = parent;
  const algorithm = algorithmOf(manifest);
  const checkpoint = loadCheckpoint(dir, options.from);
  if (!checkpoint) throw new TrainError(`${dir} has no checkpoint yet: start a new run`);
  const { step, iteration } = checkpoint.index;
  const written = settingsOf(options.config);
  const saved = {
    ...savedSettings(algorithm.settings, manifest),
    ...adjustedAt(readAdjustments(dir), iteration),
  };
  const config = resolveSettings(algorithm.settings, { preset: saved, given: written });
  refuseOtherShape(algorithm.settings, saved, config);
  const subject = await subjectOf(manifest, options.envFile);
  const learner = await algorithm.open({ subject, config, written, from: { manifest, checkpoint } });
  const { writer, rescale } = await orClose(learner, () => {
    if (learner.totalSteps <= step) throw allDone(algorithm, config, step);
    const { onRewardScale = 'refuse' } = options;
    return {
      rescale: checkSameTask(manifest, checkpoint.index.environment, learner.environment, onRewardScale),
      writer: createRun(
        algorithm,
        subject,
        learner,
        config,
        { id: parent.id, step },
        {
          root: options.root ?? dirname(dir),
          id: options.id,
        },
      ),
    };
  });
  return runSession(learner, writer, config, options, {
    unit: algorithm.unit,
    // Without it a kill before the first checkpoint would begin again from the seed, not from the parent.
    saveFirst: true,
    rescale,
    begin: () => learner.restore(checkpoint, { rescale, forkedWith: written }),
  });
}

function allDone({ settings }: Algorithm, config: RunConfig, step: number): ConfigError {
  const { length = 'steps' } = settings;
  const now = Number((config as unknown as Record<string, unknown>)[length]);
  const more = length === 'steps' ? 2 * step : 2 * now;
  const text = `${length} ${now} were done at checkpoint ${step}: give more, such as ${length} ${more}`;
  return new ConfigError([{ key: length, text }]);
}

/** The run that is meant. From JavaScript, anything may come. */
function namedRun(reference: string, verb: string, root: string | undefined) {
  if (typeof reference !== 'string')
    throw new ConfigError(
      `${verb} needs a run, not ${JSON.stringify(reference)}: ${verb}('last'), its id or its directory`,
    );
  return resolveRun(reference, [root ?? defaultRoot]);
}

/** What `open` gives; if it fails, worker threads must not keep the process alive. */
async function orClose<T>(learner: Learner, open: () => T): Promise<T> {
  try {
    return open();
  } catch (error) {
    await learner.close();
    throw error;
  }
}

/** Which policy of a run to open. */
export interface OpenPolicyOptions {
  /** Unless given, the best, else the last; where returns do not compare, the last. */
  readonly checkpoint?: WhichCheckpoint | undefined;
  /** Directory of runs; `runs` unless told. */
  readonly root?: string | undefined;
  /** Where an environment that was registered in code is defined. */
  readonly envFile?: string | undefined;
  /** Options of the environment or the task that differ from the run's. */
  readonly options?: object | undefined;
  /** Spaces that differ from the environment's: a network over sets acts on any number of items. */
  readonly spaces?: { readonly observationSpace: Space; readonly actionSpace: Space } | undefined;
}

/** Opens the policy of a run: its id, its directory, or `last`. */
export async function openPolicy(reference: string, options: OpenPolicyOptions = {}): Promise<Policy> {
  const run = namedRun(reference, 'openPolicy', options.root);
  const algorithm = algorithmOf(run.manifest);
  if (algorithm.openPolicy === undefined)
    throw new ConfigError(`${run.id} is a run of ${algorithm.name}, which makes no policy to hold`);
  const subject = await subjectOf(run.manifest, options.envFile, options.options);
  const config = savedSettings(algorithm.settings, run.manifest);
  const checkpoint = readCheckpoint(run, options.checkpoint);
  return algorithm.openPolicy({ run, subject, config, checkpoint, spaces: options.spaces });
}

/**
 * Opens a policy on an environment or a task: that of the newest run of it, of the run that `from` names, or, of tasks, any
 * model that it names.
 */
export async function openPolicyOn(
  what: SubjectReference,
  { from, ...options }: OpenPolicyOptions & { readonly from?: string | undefined } = {},
): Promise<Policy> {
  const subject = await resolveSubject(what, options.options, options.envFile);
  const root = options.root ?? defaultRoot;
  const run = from === undefined ? newestRun(subject, root) : runOf(subject, from, root);
  if (run !== undefined) return openPolicy(run.dir, options);
  const { openStart, start } = algorithmFor('train', subject);
  if (from === undefined || openStart === undefined || start === undefined)
    throw new ConfigError(noPolicy(subject, from, root));
  return openStart(start(from, { checkpoint: options.checkpoint, root }), subject);
}

function noPolicy({ kind, id, reference }: Subject, from: string | undefined, root: string): string {
  const [what, verb, start] =
    kind === 'task' ? ['model', 'clone', 'a directory or a run'] : ['policy', 'train', 'a run'];
  const missing = from === undefined ? `${root} has no run of ${id}` : `${from} is none`;
  return `${id} needs a ${what}, and ${missing}: keel ${verb} ${reference} makes one, --from takes ${start}`;
}

/** The run of a subject that was started last and has a checkpoint. */
function newestRun({ id }: Subject, root: string): Run | undefined {
  return listRuns([root]).runs.find(
    ({ manifest, dir }) => manifest.environment.id === id && listCheckpoints(dir).length > 0,
  );
}

/** The run that is named, if it is one of this subject. */
function runOf({ id }: Subject, from: string, root: string): Run | undefined {
  try {
    const run = resolveRun(from, [root]);
    return run.manifest.environment.id === id ? run : undefined;
  } catch (error) {
    // It may name something else, such as a model's directory: whoever takes that says what is wrong with it.
    if (error instanceof RunError) return undefined;
    throw error;
  }
}
