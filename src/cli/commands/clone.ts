import type { Command } from 'commander';
import type { CloneFlags } from '../clone-env.ts';
import { contextOf } from '../context.ts';
import { trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { countOption, settingOptions } from '../options.ts';
import { gatherSettings } from '../settings.ts';
import { beginText, refuseTextFlags, textOptions } from '../text.ts';

export function addClone(program: Command): void {
  textOptions(trainDashOptions(settingOptions(program.command('clone'))))
    .description('make a policy or a language model that does as demonstrations do: what train starts from')
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
    .action(async (argument: string | undefined, flags: CloneFlags, command: Command) => {
      const context = contextOf(command);
      const { env, ...wanted } = gatherSettings(argument, flags, 'clone');
      if (env === undefined)
        throw new UsageError('clone needs a task, such as keel clone arithmetic or keel clone cluster');
      const { meansTask } = await import('../../tasks/index.ts');
      if (await meansTask(env)) {
        if (flags.demonstrators !== undefined || flags.epochs !== undefined)
          throw new UsageError(
            `--demonstrators and --epochs are for environments, ${env} is a text task: remove them`,
          );
        return beginText(context, { ...wanted, env }, flags, 'clone');
      }
      refuseTextFlags(flags, env);
      if (flags.from !== undefined)
        throw new UsageError(
          `--from is for text tasks here, ${env} is an environment: clone starts anew, train goes on`,
        );
      const { cloneEnv } = await import('../clone-env.ts');
      await cloneEnv(context, { ...wanted, env }, flags);
    });
}
