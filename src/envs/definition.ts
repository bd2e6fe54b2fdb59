import type { Rng } from '../random/rng.ts';
import type { Env, EnvSpec } from './env.ts';
import { EnvError, errorCode, fail, messageOf, show } from './errors.ts';
import {
  type OptionSchemas,
  type OptionValue,
  type OptionValues,
  resolveOptions,
  schemaProblem,
} from './options.ts';
import { isSpace } from './spaces.ts';
import { checked } from './wrappers/checked.ts';
import { timeLimit } from './wrappers/time-limit.ts';

/** How to make an environment, and what is known of it before it is made. */
export interface EnvDefinition<O extends OptionValues = OptionValues> {
  /** A name with a version, `CartPole-v1`, or without (then `version` counts, 0 unless given). */
  readonly id: string;
  /** Goes up when results are no longer comparable with the version before. */
  readonly version?: number;
  /** Other names; case, `-` and `_` never matter, and a name without a version means the newest. */
  readonly aliases?: readonly string[];
  /** A sentence for lists. */
  readonly description: string;
  readonly options?: OptionSchemas<O>;
  /** Steps after which an episode is truncated; null for never. `makeEnv(id, { maxEpisodeSteps })` overrides it. */
  readonly maxEpisodeSteps: number | null;
  /** The mean return from which the task counts as solved. */
  readonly rewardThreshold?: number;
  /** What must be loaded once a thread before one can be made, such as a physics engine; `prepareEnv` awaits it. */
  prepare?(): Promise<void>;
  /** Whether a step takes so long (from about 20 µs) that worker threads pay. */
  readonly slow?: boolean;
  /**
   * Starts the process that its environments live in, without waiting until it can make one: only where there is such. Of
   * several that fail alike, all but one are quiet.
   */
  start?(options: O, isQuiet: boolean): void;
  /** Makes the environment without time limit and checks; `createEnv` adds those. */
  make(options: O): Env;
  /** Rules that choose actions, by name: what a policy can be cloned from (`keel clone`). */
  readonly demonstrators?: Readonly<Record<string, Demonstrator<O>>>;
  /** Which checkpoint of a run is read where none is named: `last` where returns of two episodes do not compare. */
  readonly checkpoint?: 'best' | 'last';
  /** Its own way to show what a policy does, where there is no body to draw. */
  readonly recording?: RecordingHook<O>;
}

/** How a policy sees one observation: writes its distribution's parameters, which of a discrete action are log-odds. */
export type Score = (observation: Float32Array, out: Float32Array) => void;

/** Tabs of the page that draw what an environment records in its own way. */
export const recordingTabs = ['cluster'] as const;
export type RecordingTab = (typeof recordingTabs)[number];

/** What a policy does in an environment, as data that a tab of the page draws. */
export interface RecordingHook<O extends OptionValues = OptionValues> {
  /** One of the page's tabs, which draws what is recorded; the file in the run's directory is called after it. */
  readonly tab: RecordingTab;
  /** Prepares for these options; what is returned lets a policy play, from a seed. */
  open(options: O): (score: Score, seed: number) => object;
}

/** A rule that chooses actions from observations; made anew for each environment that it plays. */
export interface Demonstrator<O extends OptionValues = OptionValues> {
  /** A few words for lists. */
  readonly doc: string;
  /** Cloned only where it is named: a rule that others are compared with, say. */
  readonly onlyIfNamed?: boolean;
  /** Writes an action for an observation. */
  make(options: O, rng: Rng): (obs: Float32Array, action: Float32Array) => void;
  /**
   * For one discrete action: writes the log of each action's odds, the highest at the action that `make` chooses. These are
   * cloned instead of the actions: a policy that knows near-ties from clear cases acts the same and has something to learn
   * from, where one that is always sure has not.
   */
  logits?(options: O): (obs: Float32Array, logits: Float32Array) => void;
}

/** What one may pass when making an environment of known options: those, and the time limit. */
export type MakeOptions<O extends OptionValues> = Partial<O> & { readonly maxEpisodeSteps?: number | null };

/** The same where only the id is known: checked when the environment is made. */
export type AnyMakeOptions = Readonly<Record<string, OptionValue | null | undefined>>;

/** An environment that knows where it comes from. */
export type MadeEnv = Env & { readonly spec: EnvSpec };

/** Those of environments in Python begin with a scheme: `gym:ALE/Pong-v5`. */
const ID = /^(?<name>(?:(?:gym|py):[\w.:/-]*?|[A-Za-z][\w.-]*?))-v(?<version>\d{1,6})$/;
const NAME = /^(?:(?:gym|py):[\w.:/-]+|[A-Za-z][\w.-]*)$/;

/** Checks a definition and gives its types; the default export of a user's file. */
export function defineEnv<O extends OptionValues = Record<never, never>>(
  definition: EnvDefinition<O>,
): EnvDefinition<O> {
  const problem = definitionProblem(definition);
  if (problem) fail('definition-invalid', problem);
  return definition;
}

/** A default export, or the module that an import gives in its place, as it does where the file is CommonJS. */
export type Imported<T> = T | { readonly default: T };

/** What a module exports as its default, where an import gave the module: of CommonJS, which a `.ts` of a project without `"type": "module"` becomes, it lies one level deeper. */
export function exportedIn(imported: unknown): unknown {
  const module = imported as { readonly __esModule?: unknown; readonly default?: unknown } | null | undefined;
  return module?.__esModule === true ? module.default : imported;
}

/** What is wrong with a would-be definition, if anything. */
export function definitionProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null)
    return `${show(value)} is not an environment definition: pass defineEnv({ id, description, maxEpisodeSteps, make })`;
  const {
    id,
    version,
    make,
    description,
    options,
    maxEpisodeSteps,
    aliases,
    rewardThreshold,
    demonstrators,
    checkpoint,
    recording,
  } = value as Partial<EnvDefinition>;
  if (typeof id !== 'string' || !NAME.test(id)) return `the id ${show(id)} is not a name such as MyEnv-v0`;
  const where = `environment ${id}`;
  if (version !== undefined && (!Number.isInteger(version) || version < 0 || version > 999_999))
    return `${where}: the version ${show(version)} is not a whole number such as 0`;
  const inId = ID.exec(id)?.groups?.version;
  if (inId !== undefined && version !== undefined && Number(inId) !== version)
    return `${where}: the id says version ${inId}, the field ${version}: leave one out`;
  if (typeof make !== 'function')
    return `${where}: make is ${show(make)}, not a function that returns an environment`;
  if (typeof description !== 'string' || description.trim() === '')
    return `${where} needs a description: a sentence`;
  if (maxEpisodeSteps !== null && !isCount(maxEpisodeSteps))
    return `${where}: maxEpisodeSteps ${show(maxEpisodeSteps)} is not a whole number of at least 1: try 1000, or null for no limit`;
  if (rewardThreshold !== undefined && !Number.isFinite(rewardThreshold))
    return `${where}: rewardThreshold ${show(rewardThreshold)} is not a finite number`;
  if (aliases !== undefined && !(Array.isArray(aliases) && aliases.every(alias => typeof alias === 'string')))
    return `${where}: aliases ${show(aliases)} is not a list of names`;
  for (const [name, rule] of Object.entries(demonstrators ?? {})) {
    if (typeof rule?.make !== 'function' || typeof rule.doc !== 'string')
      return `${where}: the demonstrator ${name} is ${show(rule)}: use { doc, make }`;
    if (rule.logits !== undefined && typeof rule.logits !== 'function')
      return `${where}: logits of the demonstrator ${name} is ${show(rule.logits)}: give a function of the options, or leave it out`;
  }
  if (checkpoint !== undefined && checkpoint !== 'best' && checkpoint !== 'last')
    return `${where}: checkpoint ${show(checkpoint)} is neither best nor last`;
  if (recording !== undefined) {
    if (typeof recording?.open !== 'function')
      return `${where}: recording is ${show(recording)}: use { tab, open }`;
    if (!recordingTabs.includes(recording.tab))
      return `${where}: the tab ${show(recording.tab)} of its recording is none of the page's: there is ${recordingTabs.join(', ')}`;
  }
  if (options !== undefined) {
    if (typeof options !== 'object' || options === null)
      return `${where}: options ${show(options)} is not an object`;
    if (Object.hasOwn(options, 'maxEpisodeSteps'))
      return `${where}: the option maxEpisodeSteps exists for every environment: give the field instead`;
    const problem = schemaProblem(options);
    if (problem) return `${where}: ${problem}`;
  }
  return undefined;
}

/** `CartPole-v1` in its parts. */
export function identify(definition: Pick<EnvDefinition, 'id' | 'version'>): {
  id: string;
  name: string;
  version: number;
} {
  const match = ID.exec(definition.id)?.groups;
  const name = match?.name ?? definition.id;
  const version = match ? Number(match.version) : (definition.version ?? 0);
  return { id: `${name}-v${version}`, name, version };
}

/** Starts what an environment needs that lives in another process, so that several such processes start side by side. */
export function startEnv(definition: EnvDefinition, options: AnyMakeOptions, isQuiet: boolean): void {
  const { maxEpisodeSteps: _, ...own } = options;
  definition.start?.(resolveOptions(definition.id, definition.options ?? {}, own), isQuiet);
}

/** Makes an environment from its definition: options checked, time limit and checks of every call added. */
export function createEnv<O extends OptionValues>(
  definition: EnvDefinition<O>,
  options: MakeOptions<O> | AnyMakeOptions = {},
  file: string | null = null,
): MadeEnv {
  const problem = definitionProblem(definition);
  if (problem) fail('definition-invalid', problem);
  const { id, version } = identify(definition);
  const { maxEpisodeSteps: limit, ...own } = options as AnyMakeOptions;
  if (limit !== undefined && limit !== null && !isCount(limit)) {
    fail(
      'option-invalid',
      `${id}: option maxEpisodeSteps is ${show(limit)}, not a whole number of at least 1: try ${definition.maxEpisodeSteps ?? 1000}, or null for no limit`,
    );
  }
  const values = resolveOptions(id, (definition.options ?? {}) as OptionSchemas, own);
  let env: Env;
  try {
    env = definition.make(values as O);
  } catch (error) {
    throw new EnvError(errorCode(error) ?? 'env-threw', `${id} could not be made: ${messageOf(error)}`, {
      cause: error,
    });
  }
  checkMade(id, env);
  const maxEpisodeSteps = limit !== undefined ? limit : (env.outside?.limit ?? definition.maxEpisodeSteps);
  const spec: EnvSpec = {
    id,
    version,
    options: values,
    maxEpisodeSteps,
    rewardThreshold: definition.rewardThreshold ?? null,
    file,
  };
  return checked(maxEpisodeSteps === null ? env : timeLimit(env, maxEpisodeSteps), spec);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

function checkMade(id: string, env: unknown): void {
  const made = (typeof env === 'object' && env !== null ? env : {}) as Partial<Env>;
  for (const method of ['reset', 'step', 'state', 'restore'] as const) {
    if (typeof made[method] === 'function') continue;
    const what = made === env ? `an object without ${method}()` : show(env);
    fail('definition-invalid', `${id}: make returned ${what}: return simulation({ … }), or an Env`);
  }
  if (made.view !== undefined && typeof made.view !== 'function')
    fail(
      'definition-invalid',
      `${id}: view is ${show(made.view)}, not a function: leave it out where there is nothing to draw`,
    );
  for (const space of ['observationSpace', 'actionSpace'] as const) {
    if (!isSpace(made[space]))
      fail(
        'definition-invalid',
        `${id}: ${space} is ${show(made[space])}, not a space: use box, discrete, …`,
      );
  }
  const terms: unknown = made.rewardTerms;
  if (
    !Array.isArray(terms) ||
    new Set(terms).size !== terms.length ||
    terms.some(name => typeof name !== 'string')
  )
    fail(
      'definition-invalid',
      `${id}: rewardTerms ${show(terms)} is not a list of distinct names: use [] for none`,
    );
}
