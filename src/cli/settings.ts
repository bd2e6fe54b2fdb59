/** Where a run's settings come from: presets, files, `--set` and flags, in the order in which they win. */
import { resolve } from 'node:path';
import type { Algorithm, Settings } from '../algos/algorithm.ts';
import { tableFor } from '../algos/settings.ts';
import { isEnvFile } from '../base/code-reference.ts';
import { ConfigError, type Problem } from '../base/errors.ts';
import { typed } from '../base/typed.ts';
import { parseYaml } from '../base/yaml.ts';
import type { OptionValues } from '../envs/options.ts';
import { settingProblems } from '../settings/explain.ts';
import { readSettings } from '../settings/files.ts';
import { isTaskName } from '../tasks/registry.ts';
import { UsageError } from './errors.ts';
import { environmentFlags, type PythonFlags } from './python-flags.ts';

/** What the options of `train`, `config` and `preflight` say. */
export interface SettingFlags extends PythonFlags {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly preset?: boolean;
  readonly steps?: number;
  readonly seed?: number;
  readonly envs?: number;
  readonly device?: string;
  readonly autopilot?: boolean;
  /** Cloning of environments: passes over the demonstrations. */
  readonly epochs?: number;
  /** The same: names with commas between. */
  readonly demonstrators?: string;
}

/** What a command is to be done with, and where each setting was set. */
export interface Wanted {
  /** As the user named it, a file's path absolute: a run may be resumed from elsewhere. */
  readonly env: string | undefined;
  readonly envOptions: OptionValues;
  readonly settings: Settings;
  readonly sources: ReadonlyMap<string, string>;
}

/** `key=value` pairs, values as YAML: `hidden=[32,32]`, `targetKl=null`. */
export function parseSets(pairs: readonly string[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`--set ${pair} has no value: write --set key=value`);
    const [key, text] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    if (text === '') throw new UsageError(`--set ${pair} has no value: write --set ${key}=value, or null`);
    let value: unknown;
    try {
      value = parseYaml(text);
    } catch (error) {
      throw new UsageError(`--set ${pair}: ${(error as Error).message.split('\n')[0]}`);
    }
    const option = /^(?:env|task)Options\.(.+)$/.exec(key)?.[1];
    if (option === undefined) settings[key] = value;
    else settings.envOptions = { ...(settings.envOptions as object | undefined), [option]: value };
  }
  return settings;
}

/** File, `--set` and flags together; the argument names the environment before all of them. */
export function gatherSettings(
  envArgument: string | undefined,
  flags: SettingFlags,
  verb: Algorithm['verb'] = 'train',
): Wanted {
  const sources = new Map<string, string>();
  const settings: Record<string, unknown> = {};
  let envOptions: Settings = {};
  const overruled: [key: string, value: unknown, source: string][] = [];
  const add = (layer: Settings, sourceOf: (key: string) => string): void => {
    for (const [name, value] of Object.entries(layer)) {
      // What an environment is to an agent, a task is to a language model.
      const key = name === 'task' ? 'env' : name === 'taskOptions' ? 'envOptions' : name;
      if (key === 'envOptions') {
        if (typeof value !== 'object' || value === null || Array.isArray(value))
          throw new ConfigError(
            `${sourceOf(key)}${name} is ${JSON.stringify(value)}: expected keys with values`,
          );
        envOptions = { ...envOptions, ...value };
        continue;
      }
      // What is wrong is wrong, also where something else wins.
      if (key !== 'env' && Object.hasOwn(settings, key))
        overruled.push([key, settings[key], sources.get(key)!]);
      settings[key] = value;
      sources.set(key, sourceOf(key));
    }
  };
  if (flags.config !== undefined) add(readSettings(flags.config), () => `${flags.config}: `);
  add(parseSets(flags.set ?? []), () => '--set ');
  const { steps, seed, envs, device, autopilot, epochs } = flags;
  const demonstrators = flags.demonstrators?.split(',').map(name => name.trim());
  for (const [key, value] of Object.entries({
    steps,
    seed,
    envs,
    device,
    autopilot,
    epochs,
    demonstrators,
  })) {
    if (value !== undefined) add({ [key]: value }, () => '--');
  }
  const { env: envSetting, ...rest } = settings;
  if (envSetting !== undefined && typeof envSetting !== 'string') {
    throw new ConfigError(
      `${sources.get('env')}env is ${JSON.stringify(envSetting)}: expected a name or a file`,
    );
  }
  const env = envArgument ?? envSetting;
  envOptions = { ...envOptions, ...environmentFlags(env, flags) };
  const wrong = overruled.flatMap(([key, value, source]) =>
    problemsFor(env, verb, { [key]: value }).map(problem => ({ key, text: source + problem.text })),
  );
  if (wrong.length > 0) throw new ConfigError(wrong);
  return {
    env: env === undefined ? undefined : absoluteEnv(env),
    envOptions: envOptions as OptionValues,
    settings: rest,
    sources,
  };
}

/** What is wrong with settings of this environment or task; a file may be either: what one of them takes is not wrong. */
function problemsFor(
  env: string | undefined,
  verb: Algorithm['verb'],
  settings: Settings,
): readonly Problem[] {
  const isFile = env !== undefined && isEnvFile(env);
  const isTask = env !== undefined && isTaskName(env);
  const kinds = isFile ? (['task', 'env'] as const) : isTask ? (['task'] as const) : (['env'] as const);
  const all = kinds.map(kind => settingProblems(tableFor(verb, kind), settings));
  return all.some(problems => problems.length === 0) ? [] : all.at(-1)!;
}

/** Files by their absolute path, `#id` kept; ids as they are. */
export function absoluteEnv(env: string): string {
  if (!isEnvFile(env) || env.startsWith('file:')) return env;
  const [, path = env, id = ''] = /^(.*?)(#[^#/\\]*)?$/s.exec(env) ?? [];
  return resolve(path) + id;
}

/** What a run that goes on, or is forked, is to change: `--set` and `--steps`, over what was `given` elsewhere. */
export function changesOf(
  { set = [], steps }: { readonly set?: readonly string[]; readonly steps?: number | undefined },
  given?: Pick<Wanted, 'settings' | 'envOptions' | 'sources'>,
): { settings: Record<string, unknown>; sources: ReadonlyMap<string, string> } {
  const sets = parseSets(set);
  if ('env' in sets || 'envOptions' in sets || Object.keys(given?.envOptions ?? {}).length > 0)
    throw new UsageError(`the environment of a run cannot change: ${typed('train')} starts a new one`);
  const fromSets = Object.keys(sets).map((key): [string, string] => [key, '--set ']);
  return {
    settings: { ...given?.settings, ...sets, ...(steps === undefined ? {} : { steps }) },
    sources: new Map([...(given?.sources ?? []), ...fromSets]),
  };
}

/** Names and values one by one, where it is not known yet what they will be used with. */
export function checkEach({ settings, sources }: Pick<Wanted, 'settings' | 'sources'>): void {
  const problems = settingProblems(tableFor('train', 'env'), settings);
  if (problems.length > 0) throw located(new ConfigError(problems), sources);
}

/** For the end of a promise: what it fails with, located. */
export const locate =
  (sources: ReadonlyMap<string, string>) =>
  (error: unknown): never => {
    throw located(error, sources);
  };

/** A config error whose lines begin with the place of the key that they are about. */
export function located(error: unknown, sources: ReadonlyMap<string, string>): unknown {
  if (!(error instanceof ConfigError)) return error;
  const problems = error.problems.map(({ key, text }) => ({
    key,
    text: `${key === undefined ? '' : (sources.get(key) ?? '')}${text}`,
  }));
  return new ConfigError(problems, { cause: error });
}
