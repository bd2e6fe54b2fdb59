import type { Command } from 'commander';
import { type BeginFlags, beginOptions, beginRun } from '../begin.ts';
import { contextOf } from '../context.ts';
import { trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { countOption, settingOptions } from '../options.ts';
import { gatherSettings } from '../settings.ts';

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  beginOptions(trainDashOptions(settingOptions(command)))
    .argument('[task]', 'a text task (chess), an environment with demonstrators (cluster), or a file')
    .option(
      '--demonstrators <names>',
      'environments: which of them, with commas between (default: its usual ones)',
    )
    .addOption(countOption('--epochs <n>', 'environments: passes over the demonstrations (default: 8)'))
    .option('--run-dir <root>', 'directory of runs', 'runs')
    .option('--json', 'rows and events as JSON lines on stdout, nothing else there')
    .addHelpText(
      'after',
      `
Settings win in this order: flags, --set, the file (-c), the task's preset,
defaults. Steps are demonstrations.

Examples:
  $ keel clone chess
  $ keel clone arithmetic --steps 50k --set taskOptions.digits=2
  $ keel clone cluster --demonstrators least-finish,least-requests --steps 100k
  $ keel train chess --from last`,
    )
    .action(async (argument: string | undefined, flags: BeginFlags, command: Command) => {
      const { env, ...wanted } = gatherSettings(argument, flags, 'clone');
      if (env === undefined)
        throw new UsageError('clone needs a task, such as keel clone arithmetic or keel clone cluster');
      await beginRun(contextOf(command), 'clone', { ...wanted, env }, flags);
    });
}
