/** Commands on text tasks: training, cloning, going on, evaluating. The commands themselves find out which kind is meant. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { TextAlgorithm, TextConfig } from '../algos/train-text.ts';
import type { LanguageModel } from '../lm/index.ts';
import { checkpointDir, listCheckpoints, listRuns, type Run, resolveRun } from '../runs/index.ts';
import type { TextTask } from '../tasks/index.ts';
import { type Context, referenceTo, shownDir } from './context.ts';
import type { TrainDashFlags } from './dash-thread.ts';
import { UsageError } from './errors.ts';
import { located, type SettingFlags, type Wanted } from './settings.ts';
import { grouped, number, toJson } from './terminal.ts';
import { chooseCheckpoint, type WhichCheckpoint } from './trained.ts';

export interface TextFlags extends SettingFlags, TrainDashFlags {
  readonly from?: string;
  readonly engine?: string;
  readonly runDir: string;
  readonly json?: boolean;
}

/** The options that only text tasks have. */
export function textOptions(command: Command): Command {
  return command
    .option('--from <start>', 'begin from a run, a model directory (text tasks) or a .safetensors file')
    .option('--engine <command>', 'chess: a UCI engine that labels positions, such as stockfish');
}

/** A flag that only text tasks have is an error where an environment is meant. */
export function refuseTextFlags({ engine }: Pick<TextFlags, 'engine'>, env: string): void {
  if (engine !== undefined)
    throw new UsageError(`--engine is for chess, ${env} is an environment: remove it`);
}

/** Options of the task: those of files and `--set`, and `--engine`. */
export function taskOptionsOf(
  wanted: Wanted,
  { engine }: Pick<TextFlags, 'engine'>,
): Record<string, unknown> {
  return { ...wanted.envOptions, ...(engine === undefined ? {} : { engine }) };
}

/** A model to start from: a directory, or a run's best checkpoint, which is one. */
export function modelDirectory(
  reference: string,
  root: string,
): { from: string; parent?: { id: string; step: number } } {
  const found = findModel(reference, root);
  if (typeof found === 'string') return { from: found };
  const step = checkpointOf(found, reference);
  return { from: checkpointDir(found.dir, step), parent: { id: found.id, step } };
}

/** What `--from` names: the path of a model directory, or a run. */
function findModel(reference: string, root: string): string | Run {
  if (existsSync(join(reference, 'config.json'))) return reference;
  try {
    return resolveRun(reference, [root]);
  } catch (error) {
    throw new UsageError(
      `--from ${reference} is neither a model directory (it has no config.json) nor a run: ${(error as Error).message}`,
    );
  }
}

/** The step of a run's best checkpoint, else of its last, if that has a language model. */
function checkpointOf(run: Run, reference: string): number {
  const checkpoints = listCheckpoints(run.dir);
  const chosen = checkpoints.find(({ isBest }) => isBest) ?? checkpoints.find(({ isLast }) => isLast);
  if (!chosen) throw new UsageError(`--from ${reference}: ${run.id} has no checkpoint yet: train it first`);
  if (!existsSync(join(checkpointDir(run.dir, chosen.step), 'config.json')))
    throw new UsageError(
      `--from ${reference}: ${run.id} is a run of ${run.manifest.algorithm}, it has no language model`,
    );
  return chosen.step;
}

/** A task's config; what is wrong is said with where it was set. */
export async function textConfig(
  wanted: Wanted,
  algorithm: TextAlgorithm,
  withPreset: boolean,
): Promise<{ name: string; preset: Record<string, unknown>; config: TextConfig }> {
  const [{ resolveTextConfig, textPreset }, { resolveTask }] = await Promise.all([
    import('../algos/train-text.ts'),
    import('../tasks/index.ts'),
  ]);
  const { name } = await resolveTask(wanted.env!);
  const preset = withPreset ? textPreset(name, algorithm) : {};
  try {
    return { name, preset, config: resolveTextConfig(algorithm, preset, wanted.settings) };
  } catch (error) {
    throw located(error, wanted.sources);
  }
}

/** `keel train <task>` and `keel clone <task>`. */
export async function beginText(
  context: Context,
  wanted: Wanted,
  flags: TextFlags,
  algorithm: TextAlgorithm,
): Promise<void> {
  const { name, preset } = await textConfig(wanted, algorithm, flags.preset !== false);
  const start = flags.from === undefined ? {} : modelDirectory(flags.from, flags.runDir);
  const [{ trainText, cloneText }, { runTraining }] = await Promise.all([
    import('../algos/train-text.ts'),
    import('./run-training.ts'),
  ]);
  const options = taskOptionsOf(wanted, flags);
  const remark =
    flags.from !== undefined
      ? await otherOptions(flags.from, wanted.env!, options, flags.runDir)
      : algorithm === 'grpo'
        ? `note: it begins with random weights: keel clone ${wanted.env} makes a model to start --from`
        : undefined;
  const begin = algorithm === 'grpo' ? trainText : cloneText;
  const what = algorithm === 'grpo' ? 'completions' : 'demonstrations';
  const result = await runTraining<TextConfig>(
    context,
    {
      json: flags.json === true,
      dash: flags,
      remark: () => remark,
      title: ({ dir, totalSteps, config }) =>
        `${context.paint(name, 'bold')}, ${grouped(totalSteps)} ${what}, seed ${config.seed}: ${shownDir(dir)}`,
    },
    hooks =>
      begin({
        task: wanted.env!,
        taskOptions: options,
        config: wanted.settings as object,
        preset,
        root: flags.runDir,
        ...start,
        ...hooks,
      }),
  ).catch(error => {
    throw located(error, wanted.sources);
  });
  if (algorithm === 'clone' && flags.json !== true && result.status === 'finished')
    context.print(
      `  ${context.paint('train'.padEnd(9), 'dim')}keel train ${wanted.env} --from ${referenceTo(result)}`,
    );
}

/** Options that the run to start from had and this one leaves at their defaults: seldom meant, and easily overlooked. */
async function otherOptions(
  reference: string,
  task: string,
  given: object,
  root: string,
): Promise<string | undefined> {
  const { resolveTask, taskOptions } = await import('../tasks/index.ts');
  const found = findModel(reference, root);
  const definition = await resolveTask(task);
  if (typeof found === 'string' || found.manifest.environment.id !== definition.name) return undefined;
  const before = found.manifest.environment.options as Readonly<Record<string, unknown>>;
  const other = Object.entries(taskOptions(definition, given)).filter(
    ([key, value]) => !Object.hasOwn(given, key) && Object.hasOwn(before, key) && before[key] !== value,
  );
  if (other.length === 0) return undefined;
  const [differing, same] = [
    other.map(([key, value]) => `${key} ${JSON.stringify(before[key])}, here it is ${JSON.stringify(value)}`),
    other.map(([key]) => `--set taskOptions.${key}=${String(before[key])}`),
  ];
  return `note: the run that it starts from had ${differing.join('; ')}: ${same.join(' ')} for the same`;
}

export interface TextEvalFlags {
  readonly episodes: number;
  readonly sampled?: boolean;
  readonly seed: number;
  readonly json?: boolean;
}

/** `keel eval` on a run of a language model, at a checkpoint. */
export async function evalTextRun(
  context: Context,
  run: Run,
  which: WhichCheckpoint,
  flags: TextEvalFlags,
  otherOptions: object = {},
): Promise<void> {
  const { openTextRun } = await import('../algos/train-text.ts');
  const opened = await openTextRun(run.dir, which, otherOptions);
  const title = `${run.id}: ${opened.name}, checkpoint ${grouped(opened.step)}`;
  await showEvaluation(context, opened, flags, title, { run: run.id, checkpoint: opened.step });
}

/** `keel eval <task>`: the newest run of that task, or what `--from` names, with other options of the task on request. */
export async function evalTask(
  context: Context,
  wanted: Wanted,
  flags: TextEvalFlags &
    Pick<TextFlags, 'from' | 'engine' | 'runDir'> & { readonly checkpoint?: WhichCheckpoint },
): Promise<void> {
  const [inert] = Object.keys(wanted.settings);
  if (inert !== undefined)
    throw new UsageError(`--set ${inert} has no effect on eval: only options of the task, taskOptions.…, do`);
  const [{ loadModel }, { makeTask, resolveTask }] = await Promise.all([
    import('../lm/index.ts'),
    import('../tasks/index.ts'),
  ]);
  const { name } = await resolveTask(wanted.env!);
  const found =
    flags.from === undefined
      ? await newestRun(name, wanted.env!, flags.runDir)
      : findModel(flags.from, flags.runDir);
  const given = taskOptionsOf(wanted, flags);
  if (typeof found !== 'string' && found.manifest.environment.id === name)
    return evalTextRun(context, found, chooseCheckpoint(found, flags.checkpoint).step, flags, given);
  if (flags.checkpoint !== undefined)
    throw new UsageError(`--checkpoint is for runs of ${name}, ${flags.from} is none: remove it`);
  const from = typeof found === 'string' ? found : modelDirectory(flags.from!, flags.runDir).from;
  const model = await loadModel(from);
  const task = await makeTask(wanted.env!, given, { notice: context.note });
  await showEvaluation(
    context,
    { model, task, taskOptions: given, config: {} },
    flags,
    `${task.name}: ${shownDir(from)}`,
    {
      model: from,
    },
  );
}

/** The run of a task that was started last and has a checkpoint. */
async function newestRun(name: string, asked: string, root: string): Promise<Run> {
  const { isTextRun } = await import('../algos/train-text.ts');
  const run = listRuns([root]).runs.find(
    ({ manifest, dir }) =>
      isTextRun(manifest) && manifest.environment.id === name && listCheckpoints(dir).length > 0,
  );
  if (run === undefined)
    throw new UsageError(
      `eval ${asked} needs a model, and ${root} has no run of ${name}: keel clone ${asked} makes one, --from takes a directory or a run`,
    );
  return run;
}

async function showEvaluation(
  { print, raw, paint }: Context,
  opened: {
    model: LanguageModel;
    task: TextTask;
    taskOptions: object;
    config: {
      temperature?: number;
      topK?: number;
      topP?: number;
      threads?: number;
      maxNewTokens?: number | null;
    };
  },
  flags: TextEvalFlags,
  title: string,
  about: Record<string, unknown>,
): Promise<void> {
  const { evaluateText } = await import('../algos/evaluate-text.ts');
  const { model, task, config } = opened;
  const { temperature = 1, topK = 0, topP = 1, threads = 2 } = config;
  const sampling = {
    threads,
    seed: flags.seed,
    maxNewTokens: config.maxNewTokens ?? task.maxNewTokens,
    ...(flags.sampled ? { temperature, topK, topP } : {}),
  };
  try {
    if (task.name === 'chess') {
      // It has measurements of its own: legal moves, mates in one, repetition.
      const { evaluateChessModel } = await import('../algos/evaluate-chess.ts');
      const { rows, sources } = await evaluateChessModel(opened, opened.taskOptions, sampling, {
        prompts: flags.episodes,
        seed: flags.seed,
      });
      if (flags.json)
        return raw(
          toJson(
            { ...about, task: task.name, sampled: flags.sampled === true, seed: flags.seed, rows, sources },
            2,
          ),
        );
      print(title);
      for (const { name, value, count, doc } of rows)
        print(
          `  ${name.padEnd(18)} ${number(value).padStart(7)}  ${paint(`of ${grouped(count)}: ${doc}`, 'dim')}`,
          29,
        );
      return;
    }
    const result = await evaluateText(model, task, {
      prompts: flags.episodes,
      promptSeed: flags.seed,
      ...sampling,
    });
    if (flags.json)
      return raw(
        toJson(
          { ...about, task: task.name, sampled: flags.sampled === true, seed: flags.seed, ...result },
          2,
        ),
      );
    print(title);
    const { mean, std } = result.reward;
    print(
      `  reward ${paint(`${number(mean)} ± ${number(std)}`, 'bold')} over ${result.completions} completions`,
    );
    print(
      `  parsed ${percent(result.parseRate)}, cut off ${percent(result.truncated)}, different ${percent(result.distinct)}, ${number(result.meanTokens)} tokens each`,
    );
    for (const [name, value] of Object.entries(result.metrics))
      print(`  ${name.padEnd(18)} ${number(value)}`);
    print(`  ${paint('reward by part', 'dim')}`);
    for (const [name, value] of Object.entries(result.parts)) print(`  ${name.padEnd(18)} ${number(value)}`);
    print(`  ${paint('examples', 'dim')}`);
    for (const { prompt, completion, reward } of result.examples)
      print(
        `  ${number(reward ?? Number.NaN).padStart(6)}  ${JSON.stringify(prompt)} → ${JSON.stringify(completion)}`,
        10,
      );
    if (result.ungraded > 0) print(`  ${paint(`${result.ungraded} could not be graded`, 'yellow')}`);
  } finally {
    await task.close?.();
  }
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
