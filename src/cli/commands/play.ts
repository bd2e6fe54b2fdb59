import type { Command } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { listReplays } from '../../runs/replays.ts';
import { resolveRun } from '../../runs/store.ts';
import { contextOf } from '../context.ts';
import { checkDashFlags, type DashFlags, dashOptions } from '../dash-options.ts';
import { UsageError } from '../errors.ts';
import { hasScreen } from '../open-browser.ts';
import { envFileOption, policyCheckpointOption, runArgument, runDirOption } from '../options.ts';
import { recordCheckpoint } from '../recording.ts';

interface PlayFlags extends DashFlags {
  readonly checkpoint?: WhichCheckpoint;
  readonly envFile?: string;
  readonly runDir: string;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  dashOptions(command)
    .addArgument(runArgument('<run>'))
    .option('--no-open', 'only print the address')
    .addOption(policyCheckpointOption())
    .addOption(envFileOption())
    .addOption(runDirOption())
    .addHelpText(
      'after',
      `
It opens the page at the run's Robot tab, and serves it until Ctrl-C; without a
display it prints the address. A run that has no replay yet, or a --checkpoint
that is named, is recorded first.

Examples:
  $ keel play last
  $ keel play arachne-20260115 --checkpoint best`,
    )
    .action(async (reference: string, flags: PlayFlags, command: Command) => {
      const context = contextOf(command);
      checkDashFlags(flags);
      const run = resolveRun(reference, [flags.runDir]);
      const hasCheckpoint = listCheckpoints(run.dir).length > 0;
      if (flags.checkpoint !== undefined || (listReplays(run.dir).length === 0 && hasCheckpoint)) {
        const { why } = await recordCheckpoint(run, flags);
        context.note(`recorded an episode of ${why}`);
      } else if (listReplays(run.dir).length === 0 && run.status !== 'running')
        throw new UsageError(`${run.id} has neither a replay nor a checkpoint: train it first`);
      const open = flags.open ?? hasScreen();
      const [{ servePage }, { idOf }] = await Promise.all([
        import('./dash.ts'),
        import('../../server/runs/places.ts'),
      ]);
      await servePage(context, [run.dir], { ...flags, open }, { id: idOf(run.dir), tab: 'robot' });
    });
}
