import type { Command } from 'commander';
import { stringify } from 'yaml';
import { prepareRun } from '../../algos/runs.ts';
import { tableFor } from '../../algos/settings.ts';
import { wrap } from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { makeEnv } from '../../envs/registry.ts';
import {
  describeSettings,
  inertForActions,
  inertKeys,
  refuseInertForActions,
  resolveSettings,
  settingsJsonSchema,
} from '../../settings/resolve.ts';
import { newRun } from '../begin.ts';
import type { Context } from '../context.ts';
import type { Examples } from '../examples.ts';
import { settingOptions } from '../options.ts';
import { gatherSettings, locate, type SettingFlags, type Wanted } from '../settings.ts';

interface ConfigFlags extends SettingFlags {
  readonly schema?: boolean;
  readonly json?: boolean;
  readonly clone?: boolean;
}

export function define(command: Command): void {
  settingOptions(command)
    .argument('[env]', "an environment's or a text task's, with its preset")
    .option('--clone', 'the config of cloning')
    .option('--schema', 'print the JSON schema of config files, for editors')
    .option('--json', 'the config as JSON');
}

export const help = `What it prints is a config file:
  ${typed('config', 'cartpole')} > my.yaml; ${typed('train', '-c', 'my.yaml')}
For an editor's help, put this line on top of it (or "$schema" in a JSON file):
  # yaml-language-server: $schema=./node_modules/keel/configs/schema.json`;

export const examples: Examples = [['config'], ['config pendulum --set epochs=5'], ['config --schema']];

export async function run(context: Context, argument: string | undefined, flags: ConfigFlags): Promise<void> {
  const verb = flags.clone ? 'clone' : 'train';
  const wanted = gatherSettings(argument, flags, verb);
  const { table, about, config, actionSpace } = await resolveConfig(wanted, flags, verb).catch(
    locate(wanted.sources),
  );
  if (flags.schema) return context.json(settingsJsonSchema(table), 2);
  if (flags.json) return context.json({ ...about, ...config }, 2);
  for (const [key, value] of Object.entries(about))
    if (typeof value === 'string' || Object.keys(value).length > 0)
      context.raw(stringify({ [key]: value }).trimEnd());
  const inert = inertKeys(table, config);
  if (actionSpace) for (const key of inertForActions(table, actionSpace).keys()) inert.add(key);
  print(context, config, describeSettings(table), inert);
}

/** The settings that a run would have: of an environment or a task, or, without one, of training policies. */
async function resolveConfig(wanted: Wanted, flags: ConfigFlags, verb: 'train' | 'clone') {
  const { env, envOptions, settings } = wanted;
  if (env === undefined) {
    const table = tableFor(verb, 'env');
    return { table, about: {}, config: resolveSettings(table, { given: settings }), actionSpace: undefined };
  }
  const { algorithm, subject, config } = await prepareRun(verb, await newRun({ ...wanted, env }, flags));
  const table = algorithm.settings as unknown as ReturnType<typeof tableFor>;
  const about = { [subject.kind]: env, [`${subject.kind}Options`]: envOptions };
  if (subject.kind === 'task') return { table, about, config, actionSpace: undefined };
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
