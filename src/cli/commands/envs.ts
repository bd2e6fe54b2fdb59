import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { resolveEnv } from '../../envs/load.ts';
import type { OptionSchema, OptionSchemas } from '../../envs/options.ts';
import { listEnvs, makeEnv, offeredEnvs, prepareEnv } from '../../envs/registry.ts';
import { listTasks, meansTask, resolveTask, taskNames } from '../../tasks/registry.ts';
import type { Context } from '../context.ts';
import type { Examples } from '../examples.ts';
import { absoluteEnv } from '../settings.ts';

interface EnvsFlags {
  readonly json?: boolean;
  readonly all?: boolean;
}

export function define(command: Command): void {
  command
    .argument('[env]', 'one of them, with its options: an id, a text task or a file')
    .option('--all', 'the probes too, which are for trying a trainer')
    .option('--json', 'as JSON');
}

export const help = `Your own: ${typed('train', './my-env.ts')}, a file with "export default defineEnv({ … })".`;

export const examples: Examples = [
  ['envs'],
  ['envs arachne', 'its options, spaces and what it logs'],
  ["envs --json | jq -r '.[].id'"],
];

export async function run(context: Context, named: string | undefined, flags: EnvsFlags): Promise<void> {
  if (named === undefined) return list(context, flags);
  const reference = absoluteEnv(named);
  return (await meansTask(reference))
    ? showTask(context, reference, flags)
    : showEnv(context, reference, flags);
}

/** What is there to be known of an environment without training in it. */
async function factsOf(id: string) {
  const { definition: _, isOwn: __, ...info } = await prepareEnv(id);
  const env = makeEnv(id);
  const facts = {
    ...info,
    observations: env.observationSpace.describe(),
    actions: env.actionSpace.describe(),
    logs: [
      'episode/return',
      'episode/length',
      ...(env.mayBlowUp ? ['episode/blow_ups'] : []),
      ...env.rewardTerms.map(name => `reward/part/${name}`),
      ...(env.measures ?? []).map(name => `env/${name}`),
    ],
    drawn: env.view !== undefined,
  };
  env.close?.();
  return facts;
}

const limitsOf = ({
  maxEpisodeSteps,
  rewardThreshold,
}: {
  maxEpisodeSteps: number | null;
  rewardThreshold: number | null;
}): string =>
  `${maxEpisodeSteps === null ? 'no step limit' : `at most ${maxEpisodeSteps} steps`}${rewardThreshold === null ? '' : `, solved at ${rewardThreshold}`}`;

async function list({ print, json, paint }: Context, flags: EnvsFlags): Promise<void> {
  const envs = [];
  for (const { id } of flags.all ? listEnvs() : offeredEnvs()) {
    const { logs: _, drawn: __, ...shown } = await factsOf(id);
    envs.push(shown);
  }
  const tasks = listTasks();
  if (flags.json) {
    const texts = tasks.map(({ name, summary }) => ({ id: name, kind: 'text task', description: summary }));
    return json([...envs, ...texts], 2);
  }
  const fact = (name: string, text: string): void => print(`  ${paint(name.padEnd(13), 'dim')}${text}`, 15);
  for (const env of envs) {
    print(`${paint(env.id, 'bold')}  ${env.description}`);
    fact('observations', env.observations);
    fact('actions', env.actions);
    fact('episodes', limitsOf(env));
  }
  for (const { name, summary } of tasks) {
    print(`${paint(name, 'bold')}  ${summary}`);
    fact('text task', typed('clone', name));
    fact('then', typed('train', name, '--from', 'last'));
  }
}

/** An option's value, what it may be and what it does. */
function describeOption({ default: value, doc, oneOf, min, max, integer }: OptionSchema): string {
  const bounds = [
    oneOf?.map(String).join(', '),
    integer && 'whole',
    min !== undefined && max !== undefined
      ? `${min} to ${max}`
      : min !== undefined
        ? `at least ${min}`
        : max !== undefined && `at most ${max}`,
  ].filter(part => typeof part === 'string');
  return `${value}${bounds.length > 0 ? ` (${bounds.join(', ')})` : ''}: ${doc}`;
}

/** Names and texts in two columns, below a heading. */
function table(
  { print, paint }: Context,
  heading: string,
  rows: readonly (readonly [string, string])[],
): void {
  if (rows.length === 0) return;
  print(`  ${paint(heading, 'dim')}`);
  const width = 2 + Math.max(...rows.map(([name]) => name.length));
  for (const [name, text] of rows) print(`    ${name.padEnd(width)}${text}`, 4 + width);
}

const optionRows = (options: OptionSchemas) =>
  Object.entries(options).map(([name, schema]) => [name, describeOption(schema)] as const);

async function showEnv(context: Context, reference: string, flags: EnvsFlags): Promise<void> {
  const { print, paint, json, raw } = context;
  const env = await factsOf((await resolveEnv(reference, taskNames())).id);
  if (flags.json) return json(env, 2);
  const fact = (name: string, text: string): void => print(`  ${paint(name.padEnd(13), 'dim')}${text}`, 15);
  print(`${paint(env.id, 'bold')}  ${env.description}`);
  if (env.aliases.length > 0) fact('also called', env.aliases.join(', '));
  fact('observations', env.observations);
  fact('actions', env.actions);
  fact('episodes', limitsOf(env));
  fact('logs', env.logs.join(', '));
  fact('seen with', env.drawn ? typed('play', 'last') : 'nothing: it has no view');
  table(context, 'options', optionRows(env.options));
  const called = env.file ?? env.id;
  const [option] = Object.entries(env.options);
  const set = option ? ['--set', `envOptions.${option[0]}=${option[1].default}`] : [];
  print(`  ${paint('train', 'dim')}`);
  raw(`    ${typed('train', called, ...set)}`);
  raw(`    ${typed('config', called)}`);
}

async function showTask(context: Context, reference: string, flags: EnvsFlags): Promise<void> {
  const { print, paint, json, raw } = context;
  const { name, summary, options = {} } = await resolveTask(reference);
  if (flags.json) return json({ id: name, kind: 'text task', description: summary, options }, 2);
  print(`${paint(name, 'bold')}  ${summary}`);
  table(context, 'options', optionRows(options as OptionSchemas));
  print(`  ${paint('train', 'dim')}`);
  const [option] = Object.entries(options as OptionSchemas);
  raw(
    `    ${typed('clone', reference, ...(option ? ['--set', `taskOptions.${option[0]}=${option[1].default}`] : []))}`,
  );
  raw(`    ${typed('train', reference, '--from', 'last')}`);
}
