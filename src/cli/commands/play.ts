import type { Command } from 'commander';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { listReplays } from '../../runs/replays.ts';
import { idOf } from '../../server/runs/places.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type PolicyFlags, policyArgument, policyOptions } from '../options.ts';
import { checkDashFlags, type DashFlags, dashOptions, hasScreen } from '../page.ts';
import { recordCheckpoint, runMeant } from '../policies.ts';
import { servePage } from './dash.ts';

export function define(command: Command): void {
  dashOptions(command).addArgument(policyArgument());
  policyOptions(command);
}

export const help = `It opens the page at the run's Robot tab, and serves it until Ctrl-C; without a
display it prints the address. A run that has no replay yet, or a --checkpoint
that is named, is recorded first.`;

export const examples: Examples = [['play last'], ['play arachne-20260115 --checkpoint best']];

export async function run(
  context: Context,
  reference: string,
  flags: PolicyFlags & DashFlags,
): Promise<void> {
  checkDashFlags(flags);
  const { run, envFile } = await runMeant(reference, flags);
  const hasReplay = listReplays(run.dir).length > 0;
  if (flags.checkpoint !== undefined || (!hasReplay && listCheckpoints(run.dir).length > 0)) {
    const { why } = await recordCheckpoint(run, { ...flags, envFile });
    context.note(`recorded an episode of ${why}`);
  } else if (!hasReplay && run.status !== 'running')
    throw new UsageError(`${run.id} has neither a replay nor a checkpoint: train it first`);
  const open = flags.open ?? hasScreen();
  await servePage(context, [run.dir], { ...flags, open }, { id: idOf(run.dir), tab: 'robot' });
}
