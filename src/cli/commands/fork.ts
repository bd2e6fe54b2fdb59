import type { Command } from 'commander';
import { grouped } from '../../base/numbers.ts';
import { resolveRun } from '../../runs/store.ts';
import { contextOf, shownDir } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import {
  checkpointOption,
  countOption,
  envFileOption,
  runArgument,
  runDirOption,
  setOption,
} from '../options.ts';
import { changesOf, located } from '../settings.ts';

interface ForkFlags extends TrainDashFlags {
  readonly checkpoint: 'last' | 'best' | number;
  readonly set?: readonly string[];
  readonly steps?: number;
  readonly id?: string;
  readonly rescaleCritic?: boolean;
  readonly envFile?: string;
  readonly runDir: string;
  readonly json?: boolean;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  trainDashOptions(command)
    .addArgument(runArgument('<run>'))
    .addOption(checkpointOption('--checkpoint <which>', 'last, best or a step').default('last'))
    .addOption(setOption())
    .addOption(countOption('--steps <n>', 'steps of the whole run, those up to the checkpoint included'))
    .option('--id <name>', 'what the new run is called (default: made of environment, time and seed)')
    .option('--rescale-critic', 'after a change of rewardScale: scale the value function with it')
    .addOption(envFileOption())
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
      const { settings, sources } = changesOf(flags);
      const [{ fork }, { runTraining }] = await Promise.all([
        import('../../algos/runs.ts'),
        import('../run-training.ts'),
      ]);
      await runTraining(
        context,
        {
          json: flags.json === true,
          dash: flags,
          started: true,
          title: ({ subject, dir, step, totalSteps }) =>
            `${context.paint(subject, 'bold')} from ${parent.id}, step ${grouped(step)} of ${grouped(totalSteps)}: ${shownDir(dir)}`,
        },
        hooks =>
          fork(parent.dir, {
            from: flags.checkpoint,
            config: settings,
            root: flags.runDir,
            id: flags.id,
            onRewardScale: flags.rescaleCritic ? 'rescale' : 'refuse',
            envFile: flags.envFile,
            ...hooks,
          }),
      ).catch(error => {
        throw located(error, sources);
      });
    });
}
