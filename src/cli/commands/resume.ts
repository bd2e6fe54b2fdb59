import type { Command } from 'commander';
import type { Settings, WhichCheckpoint } from '../../algos/algorithm.ts';
import { algorithmOf } from '../../algos/algorithms.ts';
import { reachedIn } from '../../algos/evaluation.ts';
import { sentenceOf } from '../../algos/events.ts';
import { resume } from '../../autopilot/runs.ts';
import { grouped } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { readRows } from '../../runs/log.ts';
import { referenceTo } from '../../runs/reference.ts';
import { openRun, type Run, resolveRun } from '../../runs/store.ts';
import { resolveSettings, savedSettings } from '../../settings/resolve.ts';
import type { RunConfig } from '../../settings/spec.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type RunFlags, runArgument, whichCheckpoint, wholeNumber } from '../options.ts';
import { queueFlag, shardsOn } from '../queue.ts';
import { type ContinueFlags, continueOptions, forgetStop, lengthOf, runTraining } from '../run-training.ts';
import { changesOf, type Wanted } from '../settings.ts';
import { trustOf } from '../trust.ts';

interface ResumeFlags extends ContinueFlags {
  readonly from?: WhichCheckpoint;
  readonly discardLater?: boolean;
  readonly queue?: string;
}

export function define(command: Command): void {
  command
    .addArgument(runArgument('[run]').default('last'))
    .option('--steps <n>', 'steps of the whole run, those done included', wholeNumber)
    .option('--from <checkpoint>', 'last, best or a step', whichCheckpoint, 'last')
    .option('--discard-later', 'delete what follows --from; without any checkpoint, begin again')
    .option(...queueFlag);
  continueOptions(command);
}

export const examples: Examples = [
  ['resume', 'the newest run'],
  ['resume cartpole-20260115 --steps 200k', 'a finished run, with more steps'],
  ['resume k3f9 --from best --discard-later --set learningRate=1e-4'],
  ['resume k3f9 --set rewardScale=0.1 --rescale-critic'],
];

export async function run(context: Context, reference: string, flags: ResumeFlags & RunFlags): Promise<void> {
  await resumeRun(context, resolveRun(reference, [flags.runDir]).dir, flags);
}

/** `given` are settings from elsewhere than `--set`, such as those of a `train` that was told to go on. */
export async function resumeRun(
  context: Context,
  dir: string,
  flags: ResumeFlags,
  given?: Pick<Wanted, 'settings' | 'envOptions' | 'sources'>,
): Promise<void> {
  const run = openRun(dir);
  const { from = 'last', discardLater, envFile } = flags;
  const { settings: config, sources } = changesOf(flags, given);
  const shards = shardsOn(flags.queue);
  const onRewardScale = flags.rescaleCritic ? 'rescale' : 'refuse';
  await runTraining(
    context,
    {
      flags,
      sources,
      started: true,
      remark: () => shards.remark,
      title({ step, totalSteps }, all) {
        // Also at step 0: what a run began from is saved before its first iteration.
        const start =
          listCheckpoints(dir).length > 0
            ? `from step ${grouped(step)} of ${grouped(totalSteps)}`
            : `again from the beginning, because there is no checkpoint, ${all}`;
        return `${context.paint(run.manifest.environment.id, 'bold')} ${start}: ${shownDir(dir)}`;
      },
    },
    hooks => {
      if (run.status === 'finished' && from === 'last') refuseNothingToDo(run, config);
      return resume(dir, {
        config,
        from,
        discardLater,
        onRewardScale,
        envFile,
        trust: trustOf(flags),
        shardPlace: shards.shardPlace,
        ...hooks,
      });
    },
  );
}

/**
 * A finished run goes on if it is to be longer than it was, or was to stop at a return and no longer is; what is wrong
 * with the settings is said first.
 */
function refuseNothingToDo(run: Run, changes: Settings): void {
  const { manifest } = run;
  const { settings } = algorithmOf(manifest);
  const saved = savedSettings(settings, manifest);
  const wanted = resolveSettings(settings, { preset: saved, given: changes });
  const { items: rows } = readRows(run.dir);
  const reached = reachedIn(wanted as RunConfig, rows);
  if (reached !== undefined)
    throw new UsageError(
      `${run.id} has finished, ${sentenceOf({ type: 'reached', ...reached })}: ${typed('resume', referenceTo(run.dir), ...forgetStop)} goes on, as does a higher one`,
    );
  if (reachedIn(saved as RunConfig, rows) !== undefined) return;
  const { key, done, twice } = lengthOf(manifest);
  if (!(Number(changes[key] ?? done) > done))
    throw new UsageError(
      `${run.id} has done its ${grouped(done)} ${key}: ${typed('resume', referenceTo(run.dir), ...twice)} goes on`,
    );
}
