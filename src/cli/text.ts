/** Commands on text tasks: training, cloning, going on, evaluating. The commands themselves find out which kind is meant. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { TextAlgorithm, TextConfig } from '../algos/train-text.ts';
import type { LanguageModel } from '../lm/index.ts';
import { checkpointDir, listCheckpoints, type Run, resolveRun } from '../runs/index.ts';
import type { TextTask } from '../tasks/index.ts';
import { type Context, referenceTo, shownDir } from './context.ts';
import type { TrainDashFlags } from './dash-thread.ts';
import { UsageError } from './errors.ts';
import { located, type SettingFlags, type Wanted } from './settings.ts';
import { grouped, number, toJson } from './terminal.ts';
import type { WhichCheckpoint } from './trained.ts';

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
  if (existsSync(join(reference, 'config.json'))) return { from: reference };
  let run: Run;
  try {
    run = resolveRun(reference, [root]);
  } catch (error) {
    throw new UsageError(
      `--from ${reference} is neither a model directory (it has no config.json) nor a run: ${(error as Error).message}`,
    );
  }
  const checkpoints = listCheckpoints(run.dir);
  const chosen = checkpoints.find(({ isBest }) => isBest) ?? checkpoints.find(({ isLast }) => isLast);
  if (!chosen) throw new UsageError(`--from ${reference}: ${run.id} has no checkpoint yet: train it first`);
  const from = checkpointDir(run.dir, chosen.step);
  if (!existsSync(join(from, 'config.json')))
    throw new UsageError(
      `--from ${reference}: ${run.id} is a run of ${run.manifest.algorithm}, it has no language model`,
    );
  return { from, parent: { id: run.id, step: chosen.step } };
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
  const begin = algorithm === 'grpo' ? trainText : cloneText;
  const what = algorithm === 'grpo' ? 'completions' : 'demonstrations';
  const result = await runTraining<TextConfig>(
    context,
    {
      json: flags.json === true,
      dash: flags,
      remark: () =>
        algorithm === 'grpo' && flags.from === undefined
          ? `note: it begins with random weights: keel clone ${wanted.env} makes a model to start --from`
          : undefined,
      title: ({ dir, totalSteps, config }) =>
        `${context.paint(name, 'bold')}, ${grouped(totalSteps)} ${what}, seed ${config.seed}: ${shownDir(dir)}`,
    },
    hooks =>
      begin({
        task: wanted.env!,
        taskOptions: taskOptionsOf(wanted, flags),
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
): Promise<void> {
  const { openTextRun } = await import('../algos/train-text.ts');
  const opened = await openTextRun(run.dir, which);
  const title = `${run.id}: ${opened.name}, checkpoint ${grouped(opened.step)}`;
  await showEvaluation(context, opened, flags, title, { run: run.id, checkpoint: opened.step });
}

/** `keel eval <task> --from <model>`. */
export async function evalTask(
  context: Context,
  wanted: Wanted,
  flags: TextEvalFlags & Pick<TextFlags, 'from' | 'engine' | 'runDir'>,
): Promise<void> {
  if (flags.from === undefined)
    throw new UsageError(
      `eval ${wanted.env} needs a model: --from <directory or run>; keel clone ${wanted.env} makes one`,
    );
  const [{ loadModel }, { makeTask }] = await Promise.all([
    import('../lm/index.ts'),
    import('../tasks/index.ts'),
  ]);
  const { from } = modelDirectory(flags.from, flags.runDir);
  const model = await loadModel(from);
  const task = await makeTask(wanted.env!, taskOptionsOf(wanted, flags), { notice: context.note });
  await showEvaluation(
    context,
    { model, task, taskOptions: taskOptionsOf(wanted, flags), config: {} },
    flags,
    `${task.name}: ${shownDir(from)}`,
    {
      model: from,
    },
  );
}

async function showEvaluation(
  { print, raw, paint }: Context,
  opened: {
    model: LanguageModel;
    task: TextTask;
    taskOptions: object;
    config: { temperature?: number; topK?: number; topP?: number; threads?: number };
  },
  flags: TextEvalFlags,
  title: string,
  about: Record<string, unknown>,
): Promise<void> {
  const { evaluateText } = await import('../algos/evaluate-text.ts');
  const { model, task, config } = opened;
  const { temperature = 1, topK = 0, topP = 1, threads = 2 } = config;
  const sampling = { threads, seed: flags.seed, ...(flags.sampled ? { temperature, topK, topP } : {}) };
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
