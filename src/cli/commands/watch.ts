import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type DashFlags, dashOptions } from '../page.ts';
import { servePage } from './dash.ts';

export function define(command: Command): void {
  dashOptions(command).argument(
    '<logs...>',
    'log directories or files: TensorBoard, CSV, JSON lines, W&B, MLflow …',
  );
}

export const examples: Examples = [
  ['watch logs/ppo_1', 'a run of Stable-Baselines3, TRL, RLlib, verl …'],
  ['watch outputs --on-verdict ./page-me.sh'],
];

export async function run(context: Context, logs: string[], flags: DashFlags): Promise<void> {
  const missing = logs.find(path => !existsSync(path));
  if (missing !== undefined)
    throw new UsageError(`${missing} does not exist: check the path, which begins at ${process.cwd()}`);
  await servePage(context, logs, flags, { single: true });
}
