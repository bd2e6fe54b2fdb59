/** A new run from the command line: `keel train` and `keel clone`, whatever it learns in. */
import type { Command } from 'commander';
import type { Algorithm } from '../algos/algorithm.ts';
import type { TrainProgress, TrainResult } from '../algos/hooks.ts';
import { clone } from '../algos/runs.ts';
import { resolveSubject, type Subject } from '../algos/subject.ts';
import { train } from '../autopilot/runs.ts';
import { RunError } from '../base/errors.ts';
import { toJson } from '../base/json.ts';
import { number } from '../base/numbers.ts';
import { table } from '../base/terminal.ts';
import type { OptionValues } from '../envs/options.ts';
import { openRun, type Run, resolveRun } from '../runs/store.ts';
import { type Context, shownDir } from './context.ts';
import { UsageError } from './errors.ts';
import type { RunFlags } from './options.ts';
import type { TrainingFlags } from './page.ts';
import { shardsOn } from './queue.ts';
import { runTraining } from './run-training.ts';
import type { SettingFlags, Wanted } from './settings.ts';

/** What `train`, `clone` and `preflight` have in common besides settings. */
export interface BeginFlags extends SettingFlags, TrainingFlags, RunFlags {
  readonly from?: string;
  readonly engine?: string;
  readonly queue?: string;
}

/** The options of whatever begins a run, besides settings. */
export function beginOptions(command: Command): Command {
  return command
    .option('--from <start>', 'begin from a run, a model directory (text tasks) or a .safetensors file')
    .option('--engine <command>', 'chess: a UCI engine that labels positions, such as stockfish');
}

/** Options of the environment or the task: those of files and `--set`, and flags that stand for one that it has. */
export async function optionsOf(
  { envOptions }: Wanted,
  { engine }: { readonly engine?: string },
  find: () => Promise<Subject>,
): Promise<OptionValues> {
  if (engine === undefined) return envOptions;
  const { id, definition } = await find();
  if (!Object.hasOwn(definition.options ?? {}, 'engine'))
    throw new UsageError(
      `--engine is an option of text tasks such as chess, ${id} has no such option: remove it`,
    );
  return { ...envOptions, engine };
}

/** A command's environment or task is known: what it is to be done with. */
export type WantedIn = Wanted & { readonly env: string };

/** What a new run is made of, as `train`, `clone` and `prepareRun` take it. */
export async function newRun(wanted: WantedIn, flags: SettingFlags & { readonly engine?: string }) {
  return {
    env: wanted.env,
    envOptions: await optionsOf(wanted, flags, () => resolveSubject(wanted.env)),
    config: wanted.settings,
    ...(flags.preset === false ? { preset: {} } : {}),
  };
}

/** Begins a run and shows it until it ends. */
export async function beginRun(
  context: Context,
  verb: Algorithm['verb'],
  wanted: WantedIn,
  flags: BeginFlags,
): Promise<void> {
  const { from, runDir: root } = flags;
  const shards = shardsOn(flags.queue);
  const run = await newRun(wanted, flags);
  // Now: `last` will be the new run.
  const before = from === undefined ? undefined : runNamed(from, root);
  await runTraining(
    context,
    {
      flags,
      sources: new Map([['from', '--from '], ...wanted.sources]),
      started: from !== undefined,
      next:
        verb === 'clone'
          ? { label: 'train', command: name => ['train', run.env, '--from', name] }
          : undefined,
      tell: result => printDemonstrators(context, result),
      remark: progress => shards.remark ?? (before && otherOptions(progress, before, run.envOptions)),
      title: ({ subject, dir, config }, all) =>
        `${context.paint(subject, 'bold')}, ${all}, seed ${config.seed}: ${shownDir(dir)}`,
    },
    hooks =>
      (verb === 'train' ? train : clone)({
        ...run,
        root,
        from,
        shardPlace: shards.shardPlace,
        ...hooks,
      }),
  );
}

/** What each demonstrator's play is worth, where there were some. */
function printDemonstrators({ raw, print }: Context, { status, demonstrators = [] }: TrainResult): void {
  if (status !== 'finished' || demonstrators.length === 0) return;
  const scores = demonstrators.map(({ name, rewardMean }) => [name, number(rewardMean)]);
  print();
  for (const line of table([['demonstrator', 'mean reward'], ...scores], [1])) raw(`  ${line}`);
}

/** The run that `--from` names, if it is one: it may be a model's directory, or a file. */
function runNamed(from: string, root: string): Run | undefined {
  try {
    return resolveRun(from, [root]);
  } catch (error) {
    if (error instanceof RunError) return undefined;
    throw error;
  }
}

/** Options that the run to start from had and this one leaves at their defaults: seldom meant, and easily overlooked. */
function otherOptions({ dir }: TrainProgress, { manifest }: Run, given: OptionValues): string | undefined {
  const { environment, config } = openRun(dir).manifest;
  const before = manifest.environment;
  if (before.id !== environment.id) return undefined;
  const other = Object.entries(environment.options).filter(
    ([key, value]) =>
      !Object.hasOwn(given, key) && Object.hasOwn(before.options, key) && before.options[key] !== value,
  );
  if (other.length === 0) return undefined;
  const differing = other.map(
    ([key, value]) => `${key} ${toJson(before.options[key])}, here it is ${toJson(value)}`,
  );
  const options = Object.hasOwn(config, 'task') ? 'taskOptions' : 'envOptions';
  const same = other.map(([key]) => `--set ${options}.${key}=${before.options[key]}`);
  return `the run that it starts from had ${differing.join('; ')}: ${same.join(' ')} for the same`;
}
