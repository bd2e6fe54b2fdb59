import type { Command } from 'commander';
import type { CloneFlags } from '../clone-env.ts';
import { contextOf } from '../context.ts';
import { UsageError } from '../errors.ts';
import { countOption, settingOptions } from '../options.ts';
import { gatherSettings } from '../settings.ts';

export function addClone(program: Command): void {
  settingOptions(program.command('clone'))
    .description('make a policy that acts as demonstrators do: what train starts from')
    .argument('[env]', 'an environment with demonstrators (cluster), or a file')
    .option('--demonstrators <names>', 'which of them, with commas between (default: its usual ones)')
    .addOption(countOption('--epochs <n>', 'passes over the demonstrations (default: 8)'))
    .option('--run-dir <root>', 'directory of runs', 'runs')
    .option('--json', 'rows as JSON lines on stdout, nothing else there')
    .addHelpText(
      'after',
      `
Settings are those of train; steps are the demonstrations that are recorded.

Examples:
  $ keel clone cluster --demonstrators least-finish,least-requests --steps 100k
  $ keel train cluster --from last`,
    )
    .action(async (argument: string | undefined, flags: CloneFlags, command: Command) => {
      const wanted = gatherSettings(argument, flags);
      if (wanted.env === undefined)
        throw new UsageError('clone needs an environment with demonstrators, such as keel clone cluster');
      const { cloneEnv } = await import('../clone-env.ts');
      await cloneEnv(contextOf(command), { ...wanted, env: wanted.env }, flags);
    });
}
