import type { Command } from 'commander';
import type { Settings } from '../../algos/algorithm.ts';
import { grouped } from '../../base/numbers.ts';
import { openRun, type Run, resolveRun } from '../../runs/store.ts';
import { type Context, contextOf, referenceTo, shownDir } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import {
  checkpointOption,
  countOption,
  envFileOption,
  runArgument,
  runDirOption,
  setOption,
} from '../options.ts';
import { changesOf, located, type Wanted } from '../settings.ts';

interface ResumeFlags extends TrainDashFlags {
  readonly steps?: number | undefined;
  readonly set?: readonly string[];
  readonly from?: 'last' | 'best' | number;
  readonly discardLater?: boolean;
  readonly rescaleCritic?: boolean;
  readonly envFile?: string;
  readonly json?: boolean;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  trainDashOptions(command)
    .addArgument(runArgument('[run]').default('last'))
    .addOption(countOption('--steps <n>', 'steps of the whole run, those done included'))
    .addOption(setOption())
    .addOption(checkpointOption('--from <checkpoint>', 'last, best or a step').default('last'))
    .option('--discard-later', 'delete what follows --from; without any checkpoint, begin again')
    .option('--rescale-critic', 'after a change of rewardScale: scale the value function with it')
    .addOption(envFileOption())
    .addOption(runDirOption())
    .option('--json', 'rows and events as JSON lines on stdout, nothing else there')
    .addHelpText(
      'after',
      `
Examples:
  $ keel resume                                  the newest run
  $ keel resume cartpole-20260115 --steps 200k   a finished run, with more steps
  $ keel resume k3f9 --from best --discard-later --set learningRate=1e-4
  $ keel resume k3f9 --set rewardScale=0.1 --rescale-critic`,
    )
    .action(async (reference: string, flags: ResumeFlags & { runDir: string }, command: Command) => {
      const { dir } = resolveRun(reference, [flags.runDir]);
      await resumeRun(contextOf(command), dir, flags);
    });
}

/** `given` are settings from elsewhere than `--set`, such as those of a `train` that was told to go on. */
export async function resumeRun(
  context: Context,
  dir: string,
  flags: ResumeFlags,
  given?: Pick<Wanted, 'settings' | 'envOptions' | 'sources'>,
): Promise<void> {
  const run = openRun(dir);
  const { settings, sources } = changesOf(flags, given);
  const [{ resume }, { runTraining }] = await Promise.all([
    import('../../algos/runs.ts'),
    import('../run-training.ts'),
  ]);
  const goOn = async (): Promise<void> => {
    if (run.status === 'finished' && (flags.from ?? 'last') === 'last')
      await refuseNothingToDo(run, settings);
    await runTraining(
      context,
      {
        json: flags.json === true,
        dash: flags,
        started: true,
        title: (progress, all) => titleOf(context, run, progress, all),
      },
      hooks =>
        resume(dir, {
          config: settings,
          from: flags.from,
          discardLater: flags.discardLater,
          onRewardScale: flags.rescaleCritic ? 'rescale' : 'refuse',
          envFile: flags.envFile,
          ...hooks,
        }),
    );
  };
  await goOn().catch(error => {
    throw located(error, sources);
  });
}

/** A finished run goes on if it is to be longer than it was; what is wrong with the settings is said first. */
async function refuseNothingToDo(run: Run, changes: Settings): Promise<void> {
  const [{ algorithmOf }, { resolveSettings, savedSettings }, { allOf, isLonger, twiceAsLong }] =
    await Promise.all([
      import('../../algos/algorithms.ts'),
      import('../../settings/resolve.ts'),
      import('../run-training.ts'),
    ]);
  const { manifest } = run;
  const { settings } = algorithmOf(manifest);
  resolveSettings(settings, { preset: savedSettings(settings, manifest), given: changes });
  if (!isLonger(manifest, changes))
    throw new UsageError(
      `${run.id} has done its ${allOf(manifest)}: keel resume ${referenceTo(run)} ${twiceAsLong(manifest)} goes on`,
    );
}

function titleOf(
  context: Context,
  run: Run,
  { step, totalSteps }: { step: number; totalSteps: number },
  all: string,
): string {
  const from =
    step > 0
      ? `from step ${grouped(step)} of ${grouped(totalSteps)}`
      : `again from the beginning, because there is no checkpoint, ${all}`;
  return `${context.paint(run.manifest.environment.id, 'bold')} ${from}: ${shownDir(run.dir)}`;
}
