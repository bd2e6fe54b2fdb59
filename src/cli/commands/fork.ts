import type { Command } from 'commander';
import type { TrainSettings } from '../../algos/index.ts';
import { resolveRun } from '../../runs/index.ts';
import { contextOf, shownDir } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { checkpointOption, countOption, runArgument, runDirOption, setOption } from '../options.ts';
import { located, parseSets } from '../settings.ts';
import { grouped } from '../terminal.ts';

interface ForkFlags extends TrainDashFlags {
  readonly checkpoint: 'last' | 'best' | number;
  readonly set?: readonly string[];
  readonly steps?: number;
  readonly id?: string;
  readonly rescaleCritic?: boolean;
  readonly runDir: string;
  readonly json?: boolean;
}

export function addFork(program: Command): void {
  trainDashOptions(program.command('fork'))
    .description('start a new run from a checkpoint of another, with other settings')
    .addArgument(runArgument('<run>'))
    .addOption(checkpointOption('--checkpoint <which>', 'last, best or a step').default('last'))
    .addOption(setOption())
    .addOption(countOption('--steps <n>', 'steps of the whole run, those up to the checkpoint included'))
    .option('--id <name>', 'what the new run is called (default: made of environment, time and seed)')
    .option('--rescale-critic', 'after a change of rewardScale: scale the value function with it')
    .addOption(runDirOption())
    .option('--json', 'rows and events as JSON lines on stdout, nothing else there')
    .addHelpText(
      'after',
      `
The other run stays as it is; the new one names it as its parent, and its steps
go on from the checkpoint's.

Examples:
  $ keel fork last --checkpoint best --set learningRate=1e-4
  $ keel fork k3f9 --checkpoint 40960 --set targetKl=0.02 --set clipRange=0.1`,
    )
    .action(async (reference: string, flags: ForkFlags, command: Command) => {
      const context = contextOf(command);
      const parent = resolveRun(reference, [flags.runDir]);
      const changes = parseSets(flags.set ?? []);
      if ('env' in changes || 'envOptions' in changes)
        throw new UsageError('the environment of a run cannot change: start a new one with keel train');
      const sources = new Map(Object.keys(changes).map(key => [key, '--set ']));
      if (flags.steps !== undefined) changes.steps = flags.steps;
      const [{ fork }, { runTraining }] = await Promise.all([
        import('../../algos/train.ts'),
        import('../run-training.ts'),
      ]);
      try {
        await runTraining(
          context,
          {
            json: flags.json === true,
            dash: flags,
            title: ({ dir, step, totalSteps }) =>
              `${context.paint(parent.manifest.environment.id, 'bold')} from ${parent.id}, step ${grouped(step)} of ${grouped(totalSteps)}: ${shownDir(dir)}`,
          },
          hooks =>
            fork(parent.dir, {
              from: flags.checkpoint,
              config: changes as TrainSettings,
              root: flags.runDir,
              ...(flags.id === undefined ? {} : { id: flags.id }),
              onRewardScale: flags.rescaleCritic ? 'rescale' : 'refuse',
              ...hooks,
            }),
        );
      } catch (error) {
        throw located(error, sources);
      }
    });
}
