/** The life of a run, for every algorithm: begin, start from weights, resume, fork, and hold what was learnt. */
import { dirname } from 'node:path';
import { isEnvFile } from '../base/code-reference.ts';
import { ConfigError, RunError, TrainError } from '../base/errors.ts';
import { typed } from '../base/typed.ts';
import type { EnvDefinition, Imported } from '../envs/definition.ts';
import type { OptionValues } from '../envs/options.ts';
import type { Space } from '../envs/spaces.ts';
import { type Checkpoint, listCheckpoints, loadCheckpoint } from '../runs/checkpoint.ts';
import { adjustedAt, readAdjustments, writeAdjustments } from '../runs/inbox.ts';
import { defaultRoot, requireRunId } from '../runs/layout.ts';
import type { Manifest } from '../runs/schema.ts';
import { listRuns, openRun, type Run, resolveRun } from '../runs/store.ts';
import { trustOwnRun } from '../runs/trust.ts';
import { RunWriter } from '../runs/writer.ts';
import { resolveSettings, savedSettings, settingsOf } from '../settings/resolve.ts';
import { type RunConfig, wrong } from '../settings/spec.ts';
import type { TextTaskDefinition } from '../tasks/text-task.ts';
import type { Algorithm, Settings, Start, WhichCheckpoint } from './algorithm.ts';
import { algorithmFor, algorithmOf } from './algorithms.ts';
import { handedOn } from './autopilot/hand-on.ts';
import { AUTOPILOT } from './autopilot/pilot.ts';
import { beginningOf } from './beginning.ts';
import { readCheckpoint } from './choose-checkpoint.ts';
import type { ClonePolicySettings } from './clone/policy/settings.ts';
import type { CloneTextSettings } from './clone/text/settings.ts';
import type { GrpoSettings } from './grpo/settings.ts';
import type { TrainHooks, TrainResult } from './hooks.ts';
import {
  type ContinueOptions,
  createRun,
  manifestConfig,
  openAgain,
  refuseNoShards,
  savesFirst,
} from './opening.ts';
import type { Policy } from './policy.ts';
import type { PpoSettings } from './ppo/settings.ts';
import type { OpenShardPlace } from './ppo/shards/place.ts';
import { checkSameTask, type RewardRescale } from './same-task.ts';
import { type Opened, runSession } from './session.ts';
import { resolveSubject, type Subject, type SubjectReference, subjectOf } from './subject.ts';
import type { Trust } from './trust.ts';

/** What a new run is told, whatever it learns in. */
export interface BeginOptions extends TrainHooks {
  /** Directory of runs; `runs` unless told. */
  root?: string | undefined;
  /** The new run's name; made of environment, time and seed unless given. Where a run of that name is, it is refused. */
  id?: string | undefined;
  /**
   * Begins from the weights of another run (its id, its directory or `last`), of a file (`.safetensors`, of the same
   * network) or of a model's directory (text). For PPO they are also a frozen reference, let go over two thirds of the run,
   * and the learning rate rises over a tenth of it, unless `reference`, `klRefDecaySteps` or `warmupShare` are set.
   */
  from?: string | undefined;
  /** Which checkpoint of that run; unless given, the best, else the last; where returns do not compare, the last. */
  fromCheckpoint?: WhichCheckpoint | undefined;
  /** Opens the place where the run's shards are collected, such as a queue; processes of this machine unless given. */
  shardPlace?: OpenShardPlace | undefined;
}

/** A new run of an algorithm of your own, instead of the usual one; its settings are checked when it begins. */
export type OfAlgorithm = { algorithm: Algorithm } & (InEnvironment<Settings> | OnTask<Settings>);
/** A new run of the usual one. */
export type Usual<O> = O & { algorithm?: undefined };

/** What a run is configured with. */
export interface Configured<S> {
  /** The file that defines an environment which is given as a definition: what the command line finds it by. */
  envFile?: string | undefined;
  /** What differs from the defaults. */
  config?: S;
  /**
   * Defaults below `config`; what they set is never called inert. Unless given, those of the environment or the task
   * (`configs/`), as on the command line; `{}` does without.
   */
  preset?: S;
}

/** A new run in an environment. */
export interface InEnvironment<S> extends Configured<S> {
  /** An id (`cartpole`, `CartPole-v1`), a file (`./my-env.ts`), or what `defineEnv` gives. */
  env: string | Imported<EnvDefinition>;
  envOptions?: OptionValues;
}

/** A new run on a text task. */
export interface OnTask<S> extends Configured<S> {
  /** A task by its name (`chess`), a file (`./my-task.ts`), or what `defineTask` gives. */
  task: string | Imported<TextTaskDefinition>;
  taskOptions?: object;
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

const kinds = { env: 'an environment', task: 'a text task' } as const;

/** What a run would be made of: all that is found out and checked before anything is made. */
export async function prepareRun(verb: Algorithm['verb'], options: TrainOptions | CloneOptions) {
  const what = options && ('task' in options ? options.task : options.env);
  if (what === undefined || what === null)
    throw new ConfigError(
      `${verb} needs an environment or a task, not ${what}: ${verb}({ env: 'cartpole' }), or a file such as './my-env.ts'`,
    );
  refuseBoth(verb, options);
  if (options.id !== undefined) requireRunId(options.id);
  const given = 'task' in options ? options.taskOptions : options.envOptions;
  const subject = await resolveSubject(what, given, options.envFile);
  const algorithm = options.algorithm ?? algorithmFor(verb, subject);
  if (algorithm.learnsIn !== subject.kind)
    throw new ConfigError(
      `${algorithm.name} needs ${kinds[algorithm.learnsIn]}, ${subject.id} is ${kinds[subject.kind]}: use another one, or another algorithm`,
    );
  const written = settingsOf(options.config);
  refuseSubjectOptions(algorithm, subject, written);
  const start = startOf(algorithm, options);
  const own = options.preset === undefined ? algorithm.preset(subject.id) : settingsOf(options.preset);
  const preset = (start && algorithm.startPreset?.(own, written, start)) ?? own;
  const config = resolveSettings(algorithm.settings, { preset, given: written });
  return { subject, algorithm, config, written, start };
}

/** An option of the environment among the settings, which is what one writes first: where it belongs. */
function refuseSubjectOptions(
  { settings }: Algorithm,
  { kind, id, definition }: Subject,
  written: Settings,
): void {
  const options: object = definition.options ?? {};
  const problems = Object.keys(written)
    .filter(key => !Object.hasOwn(settings.keys, key) && Object.hasOwn(options, key))
    .map(key => ({ key, text: `${key} is an option of ${id}, not a setting: write ${kind}Options.${key}` }));
  if (problems.length > 0) throw new ConfigError(problems);
}

/** The types leave it to a look: an environment and a task are not learnt in at once. */
function refuseBoth(verb: string, given: object): void {
  const { env, task, envOptions, taskOptions } = given as Readonly<Record<string, unknown>>;
  const wrong = [
    env !== undefined && task !== undefined && 'env and task',
    task !== undefined && envOptions !== undefined && 'task and envOptions',
    task === undefined && taskOptions !== undefined && 'env and taskOptions',
  ].find(pair => pair !== false);
  if (wrong !== undefined)
    throw new ConfigError(
      `${verb} was given ${wrong}, of which one would be ignored: use { env, envOptions } or { task, taskOptions }`,
    );
}

async function begin(verb: Algorithm['verb'], options: TrainOptions | CloneOptions): Promise<TrainResult> {
  const prepared = await prepareRun(verb, options);
  const { algorithm, start, config, written } = prepared;
  const { shardPlace } = options;
  if (shardPlace !== undefined) refuseNoShards(algorithm, config, written);
  const learner = await algorithm.open({ ...prepared, shardPlace });
  const opened = { ...prepared, learner };
  const result = await runSession(opened, options, () => ({
    writer: createRun(
      opened,
      { parent: start?.parent, beginning: start?.source && { ...start.source, forked: false, written: {} } },
      { root: options.root, id: options.id },
    ),
    made: true,
    saveFirst: savesFirst(algorithm, config as RunConfig, start !== undefined),
    begin: () => learner.begin(),
  }));
  return handedOn(opened, result, options);
}

function startOf(algorithm: Algorithm, { from, fromCheckpoint, root }: BeginOptions): Start | undefined {
  if (from === undefined) return undefined;
  if (algorithm.start === undefined)
    throw new ConfigError(
      `${algorithm.name} starts anew, it cannot begin from ${from}: leave it out (--from)`,
    );
  return algorithm.start(from, { checkpoint: fromCheckpoint, root: root ?? defaultRoot });
}

/** How a run is resumed. */
export interface ResumeOptions extends ContinueOptions {
  /** Allows going back behind checkpoints that are whole, which deletes what follows. */
  discardLater?: boolean | undefined;
}

/** How a run is forked. */
export interface ForkOptions extends ContinueOptions {
  /** The new run's name; made of environment, time and seed unless given. */
  id?: string | undefined;
}

/** Resumes a run (its id, its directory, or `last`): stopped, killed, or finished with more to do. */
export async function resume(reference: string, options: ResumeOptions = {}): Promise<TrainResult> {
  const run = namedRun(reference, 'resume', options.root);
  const saved = loadCheckpoint(run.dir, options.from);
  const beginning = saved === undefined ? beginningOf(run, algorithmOf(run.manifest)) : undefined;
  const before = writtenBefore(run.manifest, saved) ?? beginning?.written;
  const from = { checkpoint: saved ?? beginning?.checkpoint, start: beginning?.start, before };
  const opened = await openAgain('resuming', run, from, options);
  const { algorithm, learner, config, written, now } = opened;
  const result = await runSession(opened, options, () => {
    const made = readAdjustments(run.dir);
    // What is set now goes before what was set by hand. Also in the manifest: a kill may come before they are deleted.
    const replaced = new Set((run.manifest.wentOn?.replaced ?? []).map(change => JSON.stringify(change)));
    const [dropped, left] = parted(
      made,
      change => Object.hasOwn(now, change.key) || replaced.has(JSON.stringify(change)),
    );
    let rescale: RewardRescale | undefined;
    const { writer, checkpoint } = RunWriter.resume(run.dir, {
      csv: config.csv,
      tensorboard: config.tensorboard,
      from: options.from,
      discardLater: options.discardLater,
      check: (before, point) => {
        refuseLess(opened, point?.index.step ?? 0);
        const trainedIn = (point ?? beginning?.checkpoint)?.index.environment;
        rescale = checkSameTask(before, trainedIn, learner.environment, options.onRewardScale);
      },
      patch: {
        config: manifestConfig(opened),
        environment: learner.environment,
        wentOn: { checkpoint: saved?.index.step ?? null, written, replaced: dropped },
      },
    });
    // It may name another file now.
    trustOwnRun(openRun(run.dir));
    const iteration = checkpoint?.index.iteration ?? 0;
    // Made by hand before: they hold again from the same iterations on. Who goes back behind them on purpose does without.
    // What an autopilot did later it decides again.
    const changes = left.filter(
      change =>
        (!options.discardLater || change.iteration <= iteration) &&
        (change.by !== AUTOPILOT || change.iteration <= iteration + 1),
    );
    return {
      writer,
      changes,
      rescale,
      restored: checkpoint !== undefined,
      saveFirst:
        checkpoint === undefined && savesFirst(algorithm, config as RunConfig, beginning !== undefined),
      async begin() {
        if (changes.length < made.length) writeAdjustments(run.dir, changes);
        // First, because what the counters say, such as an adaptive coefficient, is newer.
        learner.adjust(adjustedAt(changes, iteration));
        const parent = beginning?.checkpoint;
        if (checkpoint) await learner.restore(checkpoint, { rescale });
        else if (parent) await learner.restore(parent, { rescale, forkedWith: beginning.written });
        else await learner.begin();
      },
    };
  });
  return handedOn(opened, result, options);
}

/**
 * What was written for a session that went on from the same checkpoint and was killed before it saved another: it counts
 * as if it were written again, or a rate that was set anew would be cut as the one before it was.
 */
function writtenBefore({ wentOn }: Manifest, checkpoint: Checkpoint | undefined): Settings | undefined {
  return wentOn !== undefined && wentOn.checkpoint === (checkpoint?.index.step ?? null)
    ? wentOn.written
    : undefined;
}

/** Refuses a length that is written for a run and that it has passed. */
function refuseLess(
  { algorithm, learner, written }: Opened & { readonly written: Settings },
  step: number,
): void {
  const { length = 'steps' } = algorithm.settings;
  const wanted = written[length];
  if (typeof wanted !== 'number') return;
  const done = length === 'steps' ? step : (step * wanted) / learner.totalSteps;
  if (wanted < done)
    throw new ConfigError(
      `this run has done ${done} ${length}, ${length} ${wanted} is less: give more, or leave it out`,
    );
}

/**
 * Starts a new run from a checkpoint of another, with other settings. The other run is not touched; the new one names it
 * as its parent. Steps go on from the checkpoint's, iterations begin at 1.
 */
export async function fork(reference: string, options: ForkOptions = {}): Promise<TrainResult> {
  const run = namedRun(reference, 'fork', options.root);
  const { id, dir, manifest } = run;
  const checkpoint = loadCheckpoint(dir, options.from);
  if (!checkpoint) throw new TrainError(`${dir} has no checkpoint yet: start a new run`);
  const { step, iteration, environment } = checkpoint.index;
  const adjusted = adjustedAt(readAdjustments(dir), iteration);
  const opened = await openAgain('forking', run, { checkpoint, adjusted }, options);
  const { learner, written } = opened;
  const result = await runSession(opened, options, () => {
    if (learner.totalSteps <= step) throw allDone(opened, step);
    const rescale = checkSameTask(manifest, environment, learner.environment, options.onRewardScale);
    return {
      writer: createRun(
        opened,
        { parent: { id, step }, beginning: { path: dir, step, forked: true, written } },
        { root: options.root ?? dirname(dir), id: options.id },
      ),
      saveFirst: true,
      rescale,
      begin: () => learner.restore(checkpoint, { rescale, forkedWith: written }),
    };
  });
  return handedOn(opened, result, options);
}

/** Those of a list that are so, and the others. */
function parted<T>(items: readonly T[], isSo: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isSo), items.filter(item => !isSo(item))];
}

function allDone({ algorithm, config }: Opened, step: number): ConfigError {
  const { length = 'steps' } = algorithm.settings;
  const now = Number((config as Settings)[length]);
  const [done, more] = length === 'steps' ? [step, 2 * step] : [now, 2 * now];
  return new ConfigError([
    wrong(
      length,
      `${now} is no more than the ${done} that were done at checkpoint ${step}: give more, such as ${more}`,
    ),
  ]);
}

/** The run that is meant. From JavaScript, anything may come. */
function namedRun(reference: string, verb: string, root: string | undefined) {
  if (typeof reference !== 'string')
    throw new ConfigError(
      `${verb} needs a run, not ${JSON.stringify(reference)}: ${verb}('last'), its id or its directory`,
    );
  return resolveRun(reference, [root ?? defaultRoot]);
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
  /** Whether code that the run names may run, if the run was not made here. */
  readonly trust?: Trust | undefined;
  /** Spaces that differ from the environment's: a network over sets acts on any number of items. */
  readonly spaces?: { readonly observationSpace: Space; readonly actionSpace: Space } | undefined;
}

/** Opens the policy of a run: its id, its directory, or `last`. */
export async function openPolicy(reference: string, options: OpenPolicyOptions = {}): Promise<Policy> {
  const run = namedRun(reference, 'openPolicy', options.root);
  const algorithm = algorithmOf(run.manifest);
  if (algorithm.openPolicy === undefined)
    throw new ConfigError(
      `${run.id} is a run of ${algorithm.name}, which makes no policy to hold: use a run of another algorithm`,
    );
  const subject = await subjectOf(run, options);
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
  // The file that is named here is used, whichever the run names.
  const envFile = options.envFile ?? (typeof what === 'string' && isEnvFile(what) ? what : undefined);
  if (run !== undefined) return openPolicy(run.dir, { ...options, envFile });
  const { openStart, start } = algorithmFor('train', subject);
  if (from === undefined || openStart === undefined || start === undefined)
    throw new ConfigError(noPolicy(subject, from, root));
  return openStart(start(from, { checkpoint: options.checkpoint, root }), subject);
}

function noPolicy({ kind, id, reference }: Subject, from: string | undefined, root: string): string {
  const [what, verb, start] =
    kind === 'task' ? ['model', 'clone', 'a directory or a run'] : ['policy', 'train', 'a run'];
  const missing = from === undefined ? `${root} has no run of ${id}` : `${from} is none`;
  return `${id} needs a ${what}, and ${missing}: ${typed(verb, reference)} makes one, --from takes ${start}`;
}

/** The run of a subject that was started last and has a checkpoint. */
export function newestRun({ id }: Subject, root: string): Run | undefined {
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
