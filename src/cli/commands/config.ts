import type { Command } from 'commander';
import { stringify } from 'yaml';
import { z } from 'zod';
import { cloneSchema } from '../../algos/grpo/clone-config.ts';
import { grpoSchema } from '../../algos/grpo/config.ts';
import { inertForActions } from '../../algos/inert-for-actions.ts';
import { loadPreset } from '../../algos/settings-file.ts';
import { configJsonSchema, resolveConfig } from '../../algos/train-config.ts';
import { ConfigError, describeConfig } from '../../algos/train-schema.ts';
import type { Space } from '../../envs/index.ts';
import { type Context, contextOf } from '../context.ts';
import { UsageError } from '../errors.ts';
import { settingOptions } from '../options.ts';
import { checkedConfig, gatherSettings, type SettingFlags, type Wanted } from '../settings.ts';
import { toJson, wrap } from '../terminal.ts';
import { textConfig } from '../text.ts';

type ConfigFlags = SettingFlags & {
  readonly schema?: boolean;
  readonly json?: boolean;
  readonly clone?: boolean;
};

export function addConfig(program: Command): void {
  settingOptions(program.command('config'))
    .description('print the whole config, with what each key does')
    .argument('[env]', "an environment's or a text task's, with its preset")
    .option('--clone', "a text task's config for keel clone")
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
      if (flags.schema) return context.raw(toJson(await schemaFor(argument, flags.clone === true), 2));
      const wanted = gatherSettings(argument, flags, flags.clone ? 'clone' : 'train');
      const { meansTask } = await import('../../tasks/index.ts');
      if (wanted.env !== undefined && (await meansTask(wanted.env))) return printText(context, wanted, flags);
      if (flags.clone) throw new UsageError('--clone is for text tasks: keel config chess --clone');
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
      const inert = new Set([
        ...inertKeys(() => resolveConfig({}, config)),
        ...(actionSpace === undefined ? [] : inertForActions(actionSpace).keys()),
      ]);
      print(context, config, describeConfig(), inert);
    });
}

async function printText(context: Context, wanted: Wanted, flags: ConfigFlags): Promise<void> {
  const algorithm = flags.clone ? 'clone' : 'grpo';
  const { config } = await textConfig(wanted, algorithm, flags.preset !== false);
  const { env: task, envOptions: taskOptions } = wanted;
  if (flags.json) return context.raw(toJson({ task, taskOptions, ...config }, 2));
  context.raw(stringify({ task }).trimEnd());
  if (Object.keys(taskOptions).length > 0) context.raw(stringify({ taskOptions }).trimEnd());
  const { resolveTextConfig } = await import('../../algos/train-text.ts');
  const schema = algorithm === 'grpo' ? grpoSchema : cloneSchema;
  const inert = inertKeys(() => resolveTextConfig(algorithm, {}, config));
  print(context, config, describeConfig(schema), inert);
}

function print(
  { raw, paint, columns }: Context,
  config: object,
  keys: ReturnType<typeof describeConfig>,
  inert: ReadonlySet<string>,
): void {
  for (const { key, fallback, doc } of keys) {
    const value = (config as Record<string, unknown>)[key];
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
function inertKeys(check: () => unknown): Set<string> {
  try {
    check();
    return new Set();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return new Set([...error.message.matchAll(/^(\w+) has no effect/gm)].map(match => match[1]!));
  }
}

/** The schema of an environment's files, or of a text task's. */
async function schemaFor(argument: string | undefined, clone: boolean): Promise<Record<string, unknown>> {
  const { meansTask } = await import('../../tasks/index.ts');
  const isText = argument !== undefined && (await meansTask(argument));
  if (clone && !isText) throw new UsageError('--clone is for text tasks: keel config chess --clone --schema');
  return isText ? textFileSchema(clone ? 'clone' : 'grpo') : fileSchema();
}

/** Files of text tasks may name the task. */
export function textFileSchema(algorithm: 'grpo' | 'clone'): Record<string, unknown> {
  const schema = z.toJSONSchema(algorithm === 'grpo' ? grpoSchema : cloneSchema, { io: 'input' });
  return {
    ...schema,
    title: `Keel config of ${algorithm === 'grpo' ? 'GRPO' : 'cloning'}`,
    properties: {
      $schema: { type: 'string' },
      task: { type: 'string', description: 'A text task by its name, or a file such as ./my-task.ts.' },
      taskOptions: { type: 'object', description: "The task's own options." },
      ...schema.properties,
    },
  };
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
