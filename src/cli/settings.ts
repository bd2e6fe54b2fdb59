/** Where a run's settings come from: presets, files, `--set` and flags, in the order in which they win. */
import { resolve } from 'node:path';
import { parse } from 'yaml';
import { settingProblems } from '../algos/explain-settings.ts';
import { cloneProblems } from '../algos/grpo/clone-config.ts';
import { grpoProblems } from '../algos/grpo/settings.ts';
import { refuseInertForActions } from '../algos/inert-for-actions.ts';
import { readSettings } from '../algos/settings-file.ts';
import { resolveConfig } from '../algos/train-config.ts';
import { ConfigError, type TrainConfig, type TrainSettings } from '../algos/train-schema.ts';
import { isEnvFile, type OptionValues, type Space } from '../envs/index.ts';
import { isTaskName } from '../tasks/index.ts';
import { UsageError } from './errors.ts';

export type Settings = Record<string, unknown>;

/** What the options of `train`, `config` and `preflight` say. */
export interface SettingFlags {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly preset?: boolean;
  readonly steps?: number;
  readonly seed?: number;
  readonly envs?: number;
  readonly device?: string;
}

/** A task and its settings, checked. */
export interface Wanted {
  /** As the user named it, a file's path absolute: a run may be resumed from elsewhere. */
  readonly env: string | undefined;
  readonly envOptions: OptionValues;
  readonly settings: TrainSettings;
  readonly sources: ReadonlyMap<string, string>;
}

/** `key=value` pairs, values as YAML: `hidden=[32,32]`, `targetKl=null`. */
export function parseSets(pairs: readonly string[]): Settings {
  const settings: Settings = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`--set ${pair} has no value: write --set key=value`);
    const [key, text] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    if (text === '') throw new UsageError(`--set ${pair} has no value: write --set ${key}=value, or null`);
    let value: unknown;
    try {
      value = parse(text);
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
  algorithm: 'train' | 'clone' = 'train',
): Wanted {
  const sources = new Map<string, string>();
  const settings: Settings = {};
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
  const { steps, seed, envs, device } = flags;
  for (const [key, value] of Object.entries({ steps, seed, envs, device })) {
    if (value !== undefined) add({ [key]: value }, () => '--');
  }
  const { env: envSetting, ...rest } = settings;
  if (envSetting !== undefined && typeof envSetting !== 'string') {
    throw new ConfigError(
      `${sources.get('env')}env is ${JSON.stringify(envSetting)}: expected a name or a file`,
    );
  }
  const env = envArgument ?? envSetting;
  const wrong = overruled.flatMap(([key, value, source]) =>
    problemsFor(env, algorithm)({ [key]: value }).map(line => source + line),
  );
  if (wrong.length > 0) throw new ConfigError(wrong.join('\n'));
  return {
    env: env === undefined ? undefined : absoluteEnv(env),
    envOptions: envOptions as OptionValues,
    settings: rest as TrainSettings,
    sources,
  };
}

/** What checks the settings of this environment or task; a file may be either, and is checked as the kinder one. */
function problemsFor(
  env: string | undefined,
  algorithm: 'train' | 'clone',
): (settings: Settings) => readonly string[] {
  const textProblems = algorithm === 'clone' ? cloneProblems : grpoProblems;
  if (env === undefined) return settingProblems;
  if (isEnvFile(env))
    return settings => (textProblems(settings).length === 0 ? [] : settingProblems(settings));
  return isTaskName(env) ? textProblems : settingProblems;
}

/** Files by their absolute path, `#id` kept; ids as they are. */
export function absoluteEnv(env: string): string {
  if (!isEnvFile(env) || env.startsWith('file:')) return env;
  const [, path = env, id = ''] = /^(.*?)(#[^#/\\]*)?$/s.exec(env) ?? [];
  return resolve(path) + id;
}

/** The whole config; what is wrong is said with where it was set. */
export function checkedConfig(
  preset: TrainSettings,
  { settings, sources }: Pick<Wanted, 'settings' | 'sources'>,
  actionSpace?: Space,
): TrainConfig {
  try {
    const config = resolveConfig(preset, settings);
    if (actionSpace !== undefined) refuseInertForActions(settings, actionSpace);
    return config;
  } catch (error) {
    throw located(error, sources);
  }
}

/** Names and values one by one, where it is not known yet what they will be used with. */
export function checkEach({ settings, sources }: Pick<Wanted, 'settings' | 'sources'>): void {
  const problems = settingProblems(settings);
  if (problems.length > 0) throw located(new ConfigError(problems.join('\n')), sources);
}

/** A config error whose lines begin with the place of the key that they are about. */
export function located(error: unknown, sources: ReadonlyMap<string, string>): unknown {
  if (!(error instanceof ConfigError)) return error;
  const lines = error.message.split('\n').map(line => {
    const key = /^[^\s.]+/.exec(line)?.[0] ?? '';
    return `${sources.get(key) ?? ''}${line}`;
  });
  return new ConfigError(lines.join('\n'), { cause: error });
}

/** A whole number of a flag: `100000`, `1e5`, `100_000`, `100k`, `2M`. */
export function wholeNumber(text: string): number {
  const match = /^(\d[\d_]*(?:\.\d+)?(?:e\d+)?)([kM]?)$/i.exec(text.trim());
  const value =
    match === null
      ? Number.NaN
      : Number(match[1]!.replaceAll('_', '')) * ({ k: 1e3, m: 1e6 }[match[2]!.toLowerCase()] ?? 1);
  if (!Number.isSafeInteger(value))
    throw new UsageError(`${text} is not a whole number from 0: write 100000, 1e5 or 100k`);
  return value;
}

/** A number of a flag that is not negative: `0.8`, `12`, `1e-3`. */
export function positiveNumber(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY))
    throw new UsageError(`${text} is not a number from 0: write 0.8 or 12`);
  return value;
}

/** Which checkpoint: `last`, `best` or a step. */
export function whichCheckpoint(text: string): 'last' | 'best' | number {
  if (text === 'last' || text === 'best') return text;
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`${text} names no checkpoint: write last, best or the number of a step`);
}
