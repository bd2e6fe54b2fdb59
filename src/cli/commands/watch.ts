import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { contextOf } from '../context.ts';
import { type DashFlags, dashOptions } from '../dash-options.ts';
import { UsageError } from '../errors.ts';
import { servePage } from './dash.ts';

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  dashOptions(command)
    .argument('<logs...>', 'log directories or files: TensorBoard, CSV, JSON lines, W&B, MLflow …')
    .addHelpText(
      'after',
      `
Examples:
  $ keel watch logs/ppo_1        a run of Stable-Baselines3, TRL, RLlib, verl …
  $ keel watch outputs --on-verdict ./page-me.sh`,
    )
    .action(async (logs: string[], flags: DashFlags, command: Command) => {
      const missing = logs.find(path => !existsSync(path));
      if (missing !== undefined)
        throw new UsageError(`${missing} does not exist: check the path, which begins at ${process.cwd()}`);
      await servePage(contextOf(command), logs, flags, { single: true });
    });
}
