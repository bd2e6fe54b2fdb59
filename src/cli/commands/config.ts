import type { Command } from 'commander';
import { stringify } from 'yaml';
import { tableFor } from '../../algos/settings.ts';
import { toJson } from '../../base/json.ts';
import { wrap } from '../../base/terminal.ts';
import { describeSettings, inertForActions, inertKeys, settingsJsonSchema } from '../../settings/resolve.ts';
import { type Context, contextOf } from '../context.ts';
import { settingOptions } from '../options.ts';
import { gatherSettings, located, type SettingFlags, type Wanted } from '../settings.ts';

type ConfigFlags = SettingFlags & {
  readonly schema?: boolean;
  readonly json?: boolean;
  readonly clone?: boolean;
};

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  settingOptions(command)
    .argument('[env]', "an environment's or a text task's, with its preset")
    .option('--clone', 'the config for keel clone')
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
      const verb = flags.clone ? 'clone' : 'train';
      const wanted = gatherSettings(argument, flags, verb);
      const { table, about, config, actionSpace } = await resolveConfig(wanted, flags, verb).catch(error => {
        throw located(error, wanted.sources);
      });
      if (flags.schema) return context.raw(toJson(settingsJsonSchema(table), 2));
      if (flags.json) return context.raw(toJson({ ...about, ...config }, 2));
      for (const [key, value] of Object.entries(about))
        if (typeof value === 'string' || Object.keys(value).length > 0)
          context.raw(stringify({ [key]: value }).trimEnd());
      const inert = inertKeys(table, config);
      if (actionSpace) for (const key of inertForActions(table, actionSpace).keys()) inert.add(key);
      print(context, config, describeSettings(table), inert);
    });
}

/** The settings that a run would have: of an environment or a task, or, without one, of training policies. */
async function resolveConfig(wanted: Wanted, flags: ConfigFlags, verb: 'train' | 'clone') {
  const { env, envOptions, settings } = wanted;
  const { prepareRun } = await import('../../algos/runs.ts');
  const { refuseInertForActions, resolveSettings } = await import('../../settings/resolve.ts');
  if (env === undefined) {
    const table = tableFor(verb, 'env');
    return { table, about: {}, config: resolveSettings(table, { given: settings }), actionSpace: undefined };
  }
  const { algorithm, subject, config } = await prepareRun(verb, {
    env,
    envOptions,
    config: settings,
    ...(flags.preset === false ? { preset: {} } : {}),
  });
  const table = algorithm.settings as unknown as ReturnType<typeof tableFor>;
  const about = { [subject.kind]: env, [`${subject.kind}Options`]: envOptions };
  if (subject.kind === 'task') return { table, about, config, actionSpace: undefined };
  const { makeEnv } = await import('../../envs/registry.ts');
  const made = makeEnv(subject.id, envOptions);
  const { actionSpace } = made;
  made.close?.();
  refuseInertForActions(table, settings, actionSpace);
  return { table, about, config, actionSpace };
}

function print(
  { raw, paint, columns }: Context,
  config: object,
  keys: ReturnType<typeof describeSettings>,
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
