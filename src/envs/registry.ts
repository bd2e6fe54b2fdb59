/** Environments by id. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { isGymReference } from '../base/code-reference.ts';
import { didYouMean, plainName } from '../base/nearest.ts';
import { builtIn } from './built-in.ts';
import {
  type AnyMakeOptions,
  createEnv,
  definitionProblem,
  type EnvDefinition,
  exportedIn,
  type Imported,
  identify,
  type MadeEnv,
} from './definition.ts';
import { fail, show } from './errors.ts';
import type { OptionSchemas, OptionValues } from './options.ts';
import { gymDefinition } from './python/definition.ts';

/** What lists show of an environment. */
export interface EnvInfo {
  /** With its version: `CartPole-v1`. */
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly description: string;
  readonly aliases: readonly string[];
  readonly options: OptionSchemas;
  readonly maxEpisodeSteps: number | null;
  readonly rewardThreshold: number | null;
  /** The user's file that defines it; null for Keel's own, for Gymnasium's and for those registered in code. */
  readonly file: string | null;
}

/** A registered environment: what is known of it, and its definition. */
export interface RegisteredEnv extends EnvInfo {
  /** One of Keel's own, whichever copy of Keel registered it: every process has it. */
  readonly isOwn: boolean;
  readonly definition: EnvDefinition;
}

interface Registry {
  readonly byId: Map<string, RegisteredEnv>;
  /** The file whose own lines are running, because it is being loaded: what registers there comes from it. */
  readonly loading: AsyncLocalStorage<string>;
}

/**
 * One registry for the whole thread, whichever copy of this module asks. A user's TypeScript file is loaded by tsx, apart
 * from the program, and gets its own copy; what it registers must be found here all the same.
 */
const registry: Registry = globalRegistry(Symbol.for('keel.envs.registry.v2'));

function globalRegistry(key: symbol): Registry {
  const holder = globalThis as unknown as Record<symbol, Registry | undefined>;
  let shared = holder[key];
  if (shared === undefined) {
    shared = { byId: new Map(), loading: new AsyncLocalStorage() };
    for (const definition of builtIn) {
      const env: RegisteredEnv = { ...describe(definition, null), isOwn: true };
      shared.byId.set(env.id, env);
    }
    holder[key] = shared;
  }
  return shared;
}

/**
 * Makes an environment known by its id, to `makeEnv` and the command line. Also for what a user's file defines without
 * exporting it. An id can be taken once; a file that is loaded again replaces its own, and so does what a program imports from a
 * file that was also loaded by its name, or the other way round: both are the same environment, made by two copies of one module.
 */
export function registerEnv<O extends OptionValues>(
  typed: Imported<EnvDefinition<O>>,
  file: string | null = registry.loading.getStore() ?? null,
): RegisteredEnv {
  const definition = exportedIn(typed) as EnvDefinition;
  const problem = definitionProblem(definition);
  if (problem) fail('definition-invalid', problem);
  let env = describe(definition, file);
  for (const name of [env.id, ...env.aliases]) {
    const holder = [...registry.byId.values()].find(other => plainNames(other).includes(plainName(name)));
    if (holder === undefined || holder.definition === definition) continue;
    if (holder.id === env.id && env.file !== null && holder.file === env.file) continue;
    if (isImportedTwice(holder, env)) {
      env = { ...env, file: env.file ?? holder.file };
      continue;
    }
    const by = holder.file ? ` by ${holder.file}` : '';
    fail(
      'env-duplicate',
      `environment ${name} is already registered${by}: choose another name or version, such as ${env.name}-v${nextVersion(env.name)}`,
    );
  }
  registry.byId.set(env.id, env);
  return env;
}

/** Whether one comes from a file and the other from a program, and all that can be compared of them is the same. */
function isImportedTwice(one: RegisteredEnv, other: RegisteredEnv): boolean {
  if (one.isOwn || (one.file === null) === (other.file === null)) return false;
  const shown = ({ definition: _, file: __, isOwn: ___, ...info }: RegisteredEnv): string =>
    JSON.stringify(info);
  return shown(one) === shown(other);
}

/** Probes are for trying a trainer: they are found by their names, and offered to nobody who looks for a task. */
const isProbe = ({ isOwn, name }: RegisteredEnv): boolean => isOwn && name.startsWith('Probe');

/** What there is to train in: all environments but the probes, Keel's own first. */
export function offeredEnvs(): EnvInfo[] {
  return [...registry.byId.values()]
    .filter(env => !isProbe(env))
    .map(({ definition: _, isOwn: __, ...info }) => info);
}

/** All environments, Keel's own first. */
export function listEnvs(): EnvInfo[] {
  return [...registry.byId.values()].map(({ definition: _, isOwn: __, ...info }) => info);
}

/**
 * The environment of that id or alias. Case, `-` and `_` do not matter, and without a version it is the newest:
 * `CartPole-v1`, `cartpole`, `cart-pole`. `others` are names of what is no environment and may have been meant where this is asked.
 */
export function findEnv(id: string, others: readonly string[] = []): RegisteredEnv {
  if (typeof id !== 'string') fail('env-unknown', `environment ${show(id)} is not a name: try 'CartPole-v1'`);
  if (isGymReference(id)) return knownEnv(identify({ id }).id) ?? registerEnv(gymDefinition(id));
  const envs = [...registry.byId.values()];
  const wanted = plainName(id);
  const exact = envs.find(env => plainName(env.id) === wanted);
  if (exact) return exact;
  const newest = envs
    .filter(env => plainNames(env).includes(wanted))
    .sort((a, b) => b.version - a.version)[0];
  if (newest) return newest;

  const unversioned = wanted.replace(/v\d+$/, '');
  const versions = envs.filter(env => plainNames(env).includes(unversioned)).map(env => env.id);
  if (versions.length > 0)
    fail('env-unknown', `environment ${show(id)} is unknown: there is ${versions.join(', ')}`);
  const offered = unversioned.startsWith('probe') ? envs : envs.filter(env => !isProbe(env));
  const guess = didYouMean(unversioned, [...offered.map(env => env.name), ...others], 3);
  const names = guess || `there are ${[...offered.map(env => env.id), ...others].join(', ')}`;
  return fail('env-unknown', `environment ${show(id)} is unknown: ${names} (a file is written ./my-env.ts)`);
}

/** Whether there is an environment of that id or alias. */
export function isEnvName(name: string): boolean {
  if (isGymReference(name)) return true;
  return [...registry.byId.values()].some(env => plainNames(env).includes(plainName(name)));
}

/** The environment of exactly that id, if it is known here. */
export function knownEnv(id: string): RegisteredEnv | undefined {
  return registry.byId.get(id);
}

/** Loads what the environment needs before `makeEnv` can make one; for most that is nothing. */
export async function prepareEnv(id: string): Promise<RegisteredEnv> {
  const env = findEnv(id);
  await env.definition.prepare?.();
  return env;
}

/** Makes an environment by its id or alias: `makeEnv('pendulum', { gravity: 9.81, maxEpisodeSteps: 400 })`. */
export function makeEnv(id: string, options: AnyMakeOptions = {}): MadeEnv {
  const env = findEnv(id);
  return createEnv(env.definition, options, env.file);
}

/** The file from whose own lines this is called, while they run because it is being loaded as an environment or a task. */
export const loadingFile = (): string | undefined => registry.loading.getStore();

/** Runs `load`, which may register environments as of that file, and returns those that it did. */
export async function registeringFrom(file: string, load: () => Promise<void>): Promise<RegisteredEnv[]> {
  await registry.loading.run(file, load);
  return [...registry.byId.values()].filter(env => env.file === file);
}

function describe(definition: EnvDefinition, file: string | null): RegisteredEnv {
  return {
    ...identify(definition),
    description: definition.description,
    aliases: definition.aliases ?? [],
    options: definition.options ?? {},
    maxEpisodeSteps: definition.maxEpisodeSteps,
    rewardThreshold: definition.rewardThreshold ?? null,
    file,
    isOwn: false,
    definition,
  };
}

/** What the environment may be called, versions left out or not. */
const plainNames = (env: EnvInfo): string[] => [env.id, env.name, ...env.aliases].map(plainName);

function nextVersion(name: string): number {
  const versions = [...registry.byId.values()]
    .filter(env => plainName(env.name) === plainName(name))
    .map(env => env.version);
  return Math.max(-1, ...versions) + 1;
}
