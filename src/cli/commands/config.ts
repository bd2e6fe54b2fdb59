import type { Command } from 'commander';
import { stringify } from 'yaml';
import { inertForActions } from '../../algos/inert-for-actions.ts';
import { loadPreset } from '../../algos/settings-file.ts';
import { configJsonSchema, resolveConfig } from '../../algos/train-config.ts';
import { ConfigError, describeConfig, type TrainConfig } from '../../algos/train-schema.ts';
import type { Space } from '../../envs/index.ts';
import { type Context, contextOf } from '../context.ts';
import { settingOptions } from '../options.ts';
import { checkedConfig, gatherSettings, type SettingFlags } from '../settings.ts';
import { toJson, wrap } from '../terminal.ts';

type ConfigFlags = SettingFlags & { readonly schema?: boolean; readonly json?: boolean };

export function addConfig(program: Command): void {
  settingOptions(program.command('config'))
    .description('print the whole config, with what each key does')
    .argument('[env]', "an environment's, with its preset")
    .option('--schema', 'print the JSON schema of config files, for editors')
    .option('--json', 'the config as JSON')
    .addHelpText(
      'after',
      `
What it prints is a config file:
  keel config cartpole > my.yaml; keel train -c my.yaml
For an editor's help, put this line on top of it (or "$schema" in a JSON file):
  # yaml-language-server: $schema=./node_modules/keel/configs/schema.json

Examples:
  $ keel config
  $ keel config pendulum --set epochs=5
  $ keel config --schema`,
    )
    .action(async (argument: string | undefined, flags: ConfigFlags, command: Command) => {
      const context = contextOf(command);
      if (flags.schema) return context.raw(toJson(fileSchema(), 2));
      const wanted = gatherSettings(argument, flags);
      let id: string | undefined;
      let actionSpace: Space | undefined;
      if (wanted.env !== undefined) {
        const { makeEnv, resolveEnv } = await import('../../envs/index.ts');
        ({ id } = await resolveEnv(wanted.env));
        const env = makeEnv(id, wanted.envOptions);
        ({ actionSpace } = env);
        env.close?.();
      }
      const preset = id === undefined || flags.preset === false ? {} : loadPreset(id);
      const config = checkedConfig(preset, wanted, actionSpace);
      const { envOptions } = wanted;
      if (flags.json)
        return context.raw(toJson({ ...(id ? { env: wanted.env, envOptions } : {}), ...config }, 2));
      if (wanted.env !== undefined) context.raw(stringify({ env: wanted.env }).trimEnd());
      if (Object.keys(envOptions).length > 0) context.raw(stringify({ envOptions }).trimEnd());
      print(context, config, actionSpace);
    });
}

function print({ raw, paint, columns }: Context, config: TrainConfig, actionSpace: Space | undefined): void {
  const inert = new Set([
    ...inertKeys(config),
    ...(actionSpace === undefined ? [] : inertForActions(actionSpace).keys()),
  ]);
  for (const { key, fallback, doc } of describeConfig()) {
    const value = config[key as keyof TrainConfig];
    const changed = JSON.stringify(value) !== JSON.stringify(fallback);
    const note = changed ? ` Default ${JSON.stringify(fallback)}.` : '';
    // Each line of a comment is one by itself: this is a file, too.
    for (const line of wrap(`${doc}${note}`, columns - 2)) raw(paint(`# ${line}`, 'dim'));
    const line = `${key}: ${Array.isArray(value) ? JSON.stringify(value) : stringify(value).trimEnd()}`;
    // As a file it would be refused with settings that do nothing.
    if (inert.has(key)) raw(paint(`# ${line}  (no effect as things are)`, 'dim'));
    else raw(changed ? paint(line, 'bold') : line);
  }
}

/** Keys that would be refused if a user wrote them. */
function inertKeys(config: TrainConfig): Set<string> {
  try {
    resolveConfig({}, config);
    return new Set();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return new Set([...error.message.matchAll(/^(\w+) has no effect/gm)].map(match => match[1]!));
  }
}

/** Files may name the environment too. */
export function fileSchema(): Record<string, unknown> {
  const schema = configJsonSchema() as { properties: Record<string, unknown> };
  return {
    ...schema,
    title: 'Keel config',
    properties: {
      $schema: { type: 'string' },
      env: { type: 'string', description: 'An environment by its id, or a file such as ./my-env.ts.' },
      envOptions: { type: 'object', description: "The environment's own options, and maxEpisodeSteps." },
      ...schema.properties,
    },
  };
}
