/**
 * How well a model plays and predicts: rates over prompts that training did not see. It takes a function that completes
 * prompts and knows nothing of models.
 */

import { show } from '../../envs/errors.ts';
import { MAX_SEED, Rng } from '../../random/rng.ts';
import { createTask, taskOptions } from '../definition.ts';
import { sourcesOf } from '../draw-safely.ts';
import { fail } from '../errors.ts';
import { gradeSafely } from '../grade-safely.ts';
import {
  type Complete,
  type EvaluationRow,
  newGrade,
  type TaskContext,
  type TaskEvaluation,
  type TaskPrompt,
  type TextTask,
  type TextTaskDefinition,
} from '../text-task.ts';
import { chessDefinition } from './chess.ts';
import { parseFen } from './fen.ts';
import { mateInOnePositions } from './mates.ts';
import { legalMoveNamed } from './moves.ts';
import type { ChessOptions } from './options.ts';
import { METRICS } from './rewards.ts';
import { formatOf } from './task.ts';
import { policyPrompt, readPolicy } from './text.ts';

/** How much is asked of a model, and from which seed. */
export interface ChessEvaluationSettings {
  /** Prompts of both tasks together, mixed as `environmentShare` says. */
  readonly prompts?: number;
  /** Positions with a mate in one; 0 leaves them out, as does a task without `P:` prompts. */
  readonly mates?: number;
  readonly seed?: number;
  /** Prompts that are completed at once. */
  readonly batchSize?: number;
}

const ROWS = ['reward', 'reward_policy', 'reward_environment', 'parsed', ...METRICS] as const;
const docs: Readonly<Record<(typeof ROWS)[number], string>> = {
  reward: 'mean reward',
  reward_policy: 'mean reward of P: prompts',
  reward_environment: 'mean reward of A: prompts',
  parsed: 'completions of which every part can be read',
  structure: 'completions with all sections or fields',
  legal: 'best moves that are legal',
  candidates_legal: 'candidates that are different, legal moves',
  overlap: 'labelled moves among the candidates',
  evaluations: 'labelled moves with an evaluation within tolerance',
  best: 'best moves that are the label’s first',
  top5: 'best moves that are among the label’s five',
  fen_exact: 'new positions that are exact',
  fen_similarity: 'equal squares and fields of new positions',
  env_reward: 'rewards of the environment that are right',
  flags: 'flags that are right',
};

/** Generated games of an evaluation are of other seeds than any that training can name. */
const HELD_OUT = 2 ** 24 + 1;

const definition = chessDefinition as unknown as TextTaskDefinition;
const optionsOf = (options: object) => taskOptions(definition, options) as unknown as ChessOptions;

/** The task with generated positions from games that training cannot see; those of a file are the file's. */
export async function heldOutChess(options: object, context?: TaskContext): Promise<TextTask> {
  const given = optionsOf(options);
  const heldOut = given.positions === '' ? { ...given, gameSeed: HELD_OUT + given.gameSeed } : given;
  return createTask({ ...definition, options: unlimitedSeed(definition) }, heldOut, context);
}

/** Evaluates on prompts of the task with these options; generated positions are from games that training cannot see. */
export async function evaluateChess(
  options: object,
  complete: Complete,
  settings: ChessEvaluationSettings = {},
  context?: TaskContext,
): Promise<TaskEvaluation> {
  const { prompts: count = 256, mates = 100, seed = 0, batchSize = 64 } = settings;
  checkCount('prompts', count, 1, 1_000_000);
  checkCount('mates', mates, 0, 100_000);
  checkCount('batchSize', batchSize, 1, 100_000);
  checkCount('seed', seed, 0, MAX_SEED);
  const given = optionsOf(options);
  const task = await heldOutChess(options, context);
  try {
    const rng = new Rng(seed);
    const prompts: TaskPrompt[] = [];
    while (prompts.length < count) prompts.push(await task.prompt(rng));
    const completions = await inBatches(
      prompts.map(({ text }) => text),
      complete,
      batchSize,
    );
    const rows = [...(await gradedRows(task, prompts, completions)), ...varietyRows(prompts, completions)];
    // What is legal is worth little where it is always the same: the two stand together.
    rows.sort((a, b) => placeOf(a) - placeOf(b));
    if (mates > 0 && given.environmentShare < 1)
      rows.push(...(await mateRows(given, complete, seed, mates, batchSize)));
    return { rows, sources: sourcesOf(task) };
  } finally {
    await task.close?.();
  }
}

/** The chess options with room for the seeds of held-out games. */
function unlimitedSeed(definition: TextTaskDefinition): NonNullable<TextTaskDefinition['options']> {
  const { gameSeed, ...others } = definition.options!;
  return { ...others, gameSeed: { ...gameSeed, max: HELD_OUT + gameSeed.max! } };
}

function checkCount(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most)
    fail('option-invalid', `evaluation: ${name} is ${show(value)}, not a whole number in ${least}..${most}`);
}

async function inBatches(prompts: string[], complete: Complete, batchSize: number): Promise<string[]> {
  const completions: string[] = [];
  for (let i = 0; i < prompts.length; i += batchSize) {
    const batch = prompts.slice(i, i + batchSize);
    const texts = await complete(batch);
    if (texts.length !== batch.length)
      fail(
        'task-threw',
        `complete gave ${texts.length} texts for ${batch.length} prompts: give one for each`,
      );
    completions.push(...texts);
  }
  return completions;
}

async function gradedRows(
  task: TextTask,
  prompts: readonly TaskPrompt[],
  completions: readonly string[],
): Promise<EvaluationRow[]> {
  const grade = newGrade(task);
  const sums = new Map<string, { sum: number; count: number }>();
  const add = (name: string, value: number): void => {
    const total = sums.get(name) ?? { sum: 0, count: 0 };
    if (Number.isNaN(value)) return;
    total.sum += value;
    total.count++;
    sums.set(name, total);
  };
  for (const [i, prompt] of prompts.entries()) {
    const problem = await gradeSafely(task, prompt, completions[i], grade);
    if (problem !== undefined) fail('task-threw', problem);
    add('reward', grade.reward);
    add(`reward_${taskOf(prompt)}`, grade.reward);
    add('parsed', grade.parsed ? 1 : 0);
    for (const [k, name] of METRICS.entries()) add(name, grade.metrics[k]);
  }
  return ROWS.flatMap(name => {
    const total = sums.get(name);
    return total ? [{ name, doc: docs[name], value: total.sum / total.count, count: total.count }] : [];
  });
}

const taskOf = ({ data }: TaskPrompt): unknown => (data as { task?: unknown }).task;
const fenOf = ({ data }: TaskPrompt): string => (data as { fen: string }).fen;

/** `legal_unique` comes right after `legal`; the others stay in their order. */
const placeOf = ({ name }: EvaluationRow): number => {
  if (name === 'legal_unique') return ROWS.indexOf('legal') + 0.5;
  const place = (ROWS as readonly string[]).indexOf(name);
  return place < 0 ? ROWS.length : place;
};

/** Whether the model says the same over and over: within a completion, and in all of them. */
function varietyRows(prompts: readonly TaskPrompt[], completions: readonly string[]): EvaluationRow[] {
  let repeated = 0;
  let lists = 0;
  const best: string[] = [];
  const legal: string[] = [];
  for (const [i, prompt] of prompts.entries()) {
    if (taskOf(prompt) !== 'policy') continue;
    const read = readPolicy(completions[i]);
    if (read.best !== undefined) {
      best.push(read.best);
      if (legalMoveNamed(parseFen(fenOf(prompt)), read.best) !== 0) legal.push(read.best);
    }
    if (read.moves.length === 0) continue;
    lists++;
    repeated += 1 - new Set(read.moves).size / read.moves.length;
  }
  const rows: EvaluationRow[] = [];
  if (lists > 0)
    rows.push({
      name: 'repetition',
      doc: 'candidates that repeat another of their list',
      value: repeated / lists,
      count: lists,
    });
  if (best.length > 0)
    rows.push({
      name: 'unique_moves',
      doc: 'different moves among all best moves',
      value: new Set(best).size / best.length,
      count: best.length,
    });
  if (legal.length > 0)
    rows.push({
      name: 'legal_unique',
      doc: 'different moves among the best moves that are legal',
      value: new Set(legal).size / legal.length,
      count: legal.length,
    });
  return rows;
}

async function mateRows(
  given: ChessOptions,
  complete: Complete,
  seed: number,
  count: number,
  batchSize: number,
): Promise<EvaluationRow[]> {
  const positions = mateInOnePositions(2 * HELD_OUT + (seed % HELD_OUT), count);
  const format = formatOf(given);
  const prompts = positions.map(({ fen }) => policyPrompt(fen, format));
  const completions = await inBatches(prompts, complete, batchSize);
  let solved = 0;
  let legal = 0;
  for (const [i, { fen, mates }] of positions.entries()) {
    const { best } = readPolicy(completions[i]);
    if (best === undefined) continue;
    if (mates.includes(best)) solved++;
    if (legalMoveNamed(parseFen(fen), best) !== 0) legal++;
  }
  const rates = [
    { name: 'mate_in_one', doc: 'mates in one that are found', hits: solved },
    { name: 'mate_legal', doc: 'legal moves where there is a mate in one', hits: legal },
  ];
  return rates.map(({ name, doc, hits }) => ({
    name,
    doc,
    value: hits / positions.length,
    count: positions.length,
  }));
}
