import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { type BeginFlags, beginOptions, beginRun } from '../begin.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { settingOptions, wholeNumber } from '../options.ts';
import { trainingOptions } from '../page.ts';
import { gatherSettings } from '../settings.ts';

export function define(command: Command): void {
  beginOptions(settingOptions(command))
    .argument('[task]', 'a text task (chess), an environment with demonstrators (cluster), or a file')
    .option(
      '--demonstrators <names>',
      'environments: which of them, with commas between (default: its usual ones)',
    )
    .option('--epochs <n>', 'environments: passes over the demonstrations (default: 8)', wholeNumber);
  trainingOptions(command);
}

export const help = `Settings win in this order: flags, --set, the file (-c), the task's preset,
defaults. Steps are demonstrations.`;

export const examples: Examples = [
  ['clone chess'],
  ['clone arithmetic --steps 50k --set taskOptions.digits=2'],
  ['clone cluster --demonstrators least-finish,least-requests --steps 100k'],
  ['train chess --from last'],
];

export async function run(context: Context, argument: string | undefined, flags: BeginFlags): Promise<void> {
  const { env, ...wanted } = gatherSettings(argument, flags, 'clone');
  if (env === undefined)
    throw new UsageError(
      `clone needs a task, such as ${typed('clone', 'arithmetic')} or ${typed('clone', 'cluster')}`,
    );
  await beginRun(context, 'clone', { ...wanted, env }, flags);
}
