import type { Command } from 'commander';
import type { TrainSettings } from '../../algos/train-schema.ts';
import type { TextConfig } from '../../algos/train-text.ts';
import { openRun, type Run, RunError, resolveRun } from '../../runs/index.ts';
import { type Context, contextOf, referenceTo, shownDir } from '../context.ts';
import { type TrainDashFlags, trainDashOptions } from '../dash-thread.ts';
import { UsageError } from '../errors.ts';
import { checkpointOption, countOption, runArgument, runDirOption, setOption } from '../options.ts';
import { located, parseSets, type Settings, type Wanted } from '../settings.ts';
import { grouped } from '../terminal.ts';

interface ResumeFlags extends TrainDashFlags {
  readonly steps?: number | undefined;
  readonly set?: readonly string[];
  readonly from?: 'last' | 'best' | number;
  readonly discardLater?: boolean;
  readonly rescaleCritic?: boolean;
  readonly json?: boolean;
}

export function addResume(program: Command): void {
  trainDashOptions(program.command('resume'))
    .description('go on with a run that was stopped or killed, to the same bits, or with a finished one')
    .addArgument(runArgument('[run]').default('last'))
    .addOption(countOption('--steps <n>', 'steps of the whole run, those done included'))
    .addOption(setOption())
    .addOption(checkpointOption('--from <checkpoint>', 'last, best or a step').default('last'))
    .option('--discard-later', 'delete what follows --from; without any checkpoint, begin again')
    .option('--rescale-critic', 'after a change of rewardScale: scale the value function with it')
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
  const sets = parseSets(flags.set ?? []);
  if ('env' in sets || 'envOptions' in sets || Object.keys(given?.envOptions ?? {}).length > 0)
    throw new UsageError('the environment of a run cannot change: start a new one with keel train');
  const sources = new Map([
    ...(given?.sources ?? []),
    ...Object.keys(sets).map((key): [string, string] => [key, '--set ']),
  ]);
  const changes: Settings = { ...given?.settings, ...sets };
  if (flags.steps !== undefined) changes.steps = flags.steps;
  const total = Number(changes.steps ?? run.manifest.config.steps);
  if (run.status === 'finished' && (flags.from ?? 'last') === 'last' && run.manifest.step >= total) {
    throw new UsageError(
      `${run.id} has done its ${grouped(run.manifest.step)} steps: keel resume ${referenceTo(run)} --steps ${2 * run.manifest.step} goes on`,
    );
  }
  const { isTextRun } = await import('../../algos/train-text.ts');
  if (isTextRun(run.manifest)) {
    if (flags.rescaleCritic)
      throw new UsageError(
        `--rescale-critic: ${run.id} is a language model's run and has no critic: leave it out`,
      );
    await resumeTextRun(context, run, flags, changes, sources);
    return;
  }
  const [{ resume }, { overshoot, runTraining }] = await Promise.all([
    import('../../algos/train.ts'),
    import('../run-training.ts'),
  ]);
  try {
    await runTraining(
      context,
      {
        json: flags.json === true,
        dash: flags,
        remark: overshoot,
        title: progress => titleOf(context, run, progress),
      },
      hooks =>
        resume(dir, {
          config: changes as TrainSettings,
          from: flags.from ?? 'last',
          discardLater: flags.discardLater ?? false,
          onRewardScale: flags.rescaleCritic ? 'rescale' : 'refuse',
          ...hooks,
        }),
    );
  } catch (error) {
    throw inFlags(error, sources);
  }
}

async function resumeTextRun(
  context: Context,
  run: Run,
  flags: ResumeFlags,
  changes: Settings,
  sources: ReadonlyMap<string, string>,
): Promise<void> {
  const [{ resumeText }, { runTraining }] = await Promise.all([
    import('../../algos/train-text.ts'),
    import('../run-training.ts'),
  ]);
  try {
    await runTraining<TextConfig>(
      context,
      { json: flags.json === true, dash: flags, title: progress => titleOf(context, run, progress) },
      hooks =>
        resumeText(run.dir, {
          config: changes as object,
          from: flags.from ?? 'last',
          discardLater: flags.discardLater ?? false,
          ...hooks,
        }),
    );
  } catch (error) {
    throw inFlags(error, sources);
  }
}

function titleOf(
  context: Context,
  run: Run,
  { step, totalSteps }: { step: number; totalSteps: number },
): string {
  const from =
    step > 0
      ? `from step ${grouped(step)} of ${grouped(totalSteps)}`
      : `again from the beginning, because there is no checkpoint, ${grouped(totalSteps)} steps`;
  return `${context.paint(run.manifest.environment.id, 'bold')} ${from}: ${shownDir(run.dir)}`;
}

/** An error with the flags that the library calls options. */
function inFlags(error: unknown, sources: ReadonlyMap<string, string>): unknown {
  if (error instanceof RunError && error.code === 'would-discard')
    return new RunError(error.message.replace('(discardLater)', '(--discard-later)'), {
      code: error.code,
      cause: error,
    });
  return located(error, sources);
}
