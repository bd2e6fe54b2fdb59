/** The models that text is learnt with. */
import { TrainError } from '../../base/errors.ts';
import { type LanguageModel, languageModel } from '../../lm/model.ts';
import { ownTokenizer } from '../../lm/tokenizer.ts';
import { Rng } from '../../random/rng.ts';
import type { TextTask } from '../../tasks/text-task.ts';

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
