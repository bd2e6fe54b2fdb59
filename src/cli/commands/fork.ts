import type { Command } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import { fork } from '../../autopilot/runs.ts';
import { grouped } from '../../base/numbers.ts';
import { resolveRun } from '../../runs/store.ts';
import { type Context, shownDir } from '../context.ts';
import type { Examples } from '../examples.ts';
import { runArgument, whichCheckpoint, wholeNumber } from '../options.ts';
import { type ContinueFlags, continueOptions, runTraining } from '../run-training.ts';
import { changesOf } from '../settings.ts';
import { trustOf } from '../trust.ts';

interface ForkFlags extends ContinueFlags {
  readonly checkpoint: WhichCheckpoint;
  readonly id?: string;
  readonly runDir: string;
}

export function define(command: Command): void {
  command
    .addArgument(runArgument('<run>'))
    .option('--checkpoint <which>', 'last, best or a step', whichCheckpoint, 'last')
    .option('--steps <n>', 'steps of the whole run, those up to the checkpoint included', wholeNumber)
    .option('--id <name>', 'what the new run is called (default: made of environment, time and seed)');
  continueOptions(command);
}

export const help = `The other run stays as it is; the new one names it as its parent, and its steps
go on from the checkpoint's.`;

export const examples: Examples = [
  ['fork last --checkpoint best --set learningRate=1e-4'],
  ['fork k3f9 --checkpoint 40960 --set targetKl=0.02 --set clipRange=0.1'],
];

export async function run(context: Context, reference: string, flags: ForkFlags): Promise<void> {
  const { checkpoint: from, id, envFile, runDir: root } = flags;
  const parent = resolveRun(reference, [root]);
  const { settings: config, sources } = changesOf(flags);
  const onRewardScale = flags.rescaleCritic ? 'rescale' : 'refuse';
  await runTraining(
    context,
    {
      flags,
      sources,
      started: true,
      title: ({ subject, dir, step, totalSteps }) =>
        `${context.paint(subject, 'bold')} from ${parent.id}, step ${grouped(step)} of ${grouped(totalSteps)}: ${shownDir(dir)}`,
    },
    hooks =>
      fork(parent.dir, { from, config, root, id, onRewardScale, envFile, trust: trustOf(flags), ...hooks }),
  );
}
