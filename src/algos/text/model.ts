/** The models that text is learnt with: new ones, and those to start from. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError, RunError, TrainError } from '../../base/errors.ts';
import { type LanguageModel, languageModel } from '../../lm/model.ts';
import { ownTokenizer } from '../../lm/tokenizer.ts';
import { Rng } from '../../random/rng.ts';
import { checkpointDir } from '../../runs/layout.ts';
import { resolveRun } from '../../runs/store.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { Start, WhichCheckpoint } from '../algorithm.ts';
import { chooseCheckpoint } from '../choose-checkpoint.ts';

/** A model to start from. */
export interface ModelStart extends Start {
  /** Its directory, absolute. */
  readonly directory: string;
}

/** What `from` names: a model's directory, or a run, whose checkpoints are such. */
export function modelStart(
  from: string,
  { checkpoint, root }: { readonly checkpoint?: WhichCheckpoint | undefined; readonly root: string },
): ModelStart {
  if (existsSync(join(from, 'config.json'))) {
    if (checkpoint !== undefined)
      throw new ConfigError(`${from} is a model, which has no checkpoints: leave out which one`);
    return { directory: resolve(from), parent: undefined, source: { path: resolve(from), step: null } };
  }
  const run = runNamed(from, root);
  const { found } = chooseCheckpoint(run, checkpoint);
  if (!found) throw new ConfigError(`${from}: ${run.id} has no checkpoint yet: train it first`);
  const directory = checkpointDir(run.dir, found.step);
  if (!existsSync(join(directory, 'config.json')))
    throw new ConfigError(
      `${from}: ${run.id} is a run of ${run.manifest.algorithm}, it has no language model`,
    );
  const { step } = found;
  return { directory, parent: { id: run.id, step }, source: { path: run.dir, step } };
}

function runNamed(from: string, root: string) {
  try {
    return resolveRun(from, [root]);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    const text = `${from} is neither a model directory (it has no config.json) nor a run: ${error.message}`;
    throw new ConfigError([{ key: 'from', text }]);
  }
}

/** The settings that decide how large a new model is. */
export interface ModelConfig {
  readonly seed: number;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly context: number | null;
  readonly maxNewTokens?: number | null;
}

/** A small model for a task, from its seed. */
export function newModel(task: TextTask, config: ModelConfig): LanguageModel {
  const tokenizer = ownTokenizer(`${task.characters}${task.stop.join('')}`, task.pieces);
  // The end token stands before every prompt.
  const needed = 1 + task.maxPromptTokens + Math.max(task.maxNewTokens, config.maxNewTokens ?? 0);
  const context = config.context ?? Math.ceil(needed / 16) * 16;
  const { layers, width, heads } = config;
  const [, , , , rng] = new Rng(config.seed).split(5);
  return languageModel({ vocabulary: tokenizer.size, context, layers, width, heads }, tokenizer, { rng });
}

/** A tokenizer that cannot write what the task asks for is refused before anything is trained. */
export function refuseUnfit(task: TextTask, { tokenizer, options }: LanguageModel): void {
  tokenizer.encode(task.characters);
  if (task.maxNewTokens + 1 > options.context) {
    throw new TrainError(
      `${task.name} needs ${task.maxNewTokens} new tokens, the model's context holds ${options.context}: use a model with a larger context`,
    );
  }
}
