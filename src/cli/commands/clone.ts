import type { Command } from 'commander';
import { contextOf } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { settingOptions } from '../options.ts';
import { gatherSettings } from '../settings.ts';
import { beginText, type TextFlags, textOptions } from '../text.ts';

export function addClone(program: Command): void {
  textOptions(trainDashOptions(settingOptions(program.command('clone'))))
    .description("make a language model that writes a text task's demonstrations: what train starts from")
    .argument('[task]', 'a text task (chess, arithmetic, format) or a file (./my-task.ts)')
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
  $ keel train chess --from last`,
    )
    .action(async (argument: string | undefined, flags: TextFlags & TrainDashFlags, command: Command) => {
      const wanted = gatherSettings(argument, flags, 'clone');
      if (wanted.env === undefined) throw new UsageError('clone needs a task, such as keel clone arithmetic');
      await beginText(contextOf(command), wanted, flags, 'clone');
    });
}
