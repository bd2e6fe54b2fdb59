/** Prompts of a task as tokens, of which only those are taken that fit into a model's context. */

import { TrainError } from '../../base/errors.ts';
import { giveTurn } from '../../base/turns.ts';
import type { LanguageModel } from '../../lm/model.ts';
import type { Rng } from '../../random/rng.ts';
import { drawPrompt } from '../../tasks/draw-safely.ts';
import type { TaskPrompt, TextTask } from '../../tasks/text-task.ts';

/** A prompt and its tokens. */
export interface TokenisedPrompt {
  readonly prompt: TaskPrompt;
  readonly tokens: readonly number[];
}

/** In a row that may be too long before it is called a mistake. */
const MAX_TOO_LONG = 100;

/** The prompt's tokens, with the end token before them: the model needs something to begin with, and knows it as a border. */
export function promptTokens(model: Pick<LanguageModel, 'tokenizer'>, prompt: TaskPrompt): number[] {
  const { tokenizer } = model;
  return [tokenizer.end, ...tokenizer.encode(prompt.text)];
}

/** Draws so many that fit; those that do not are counted, and too many of them in a row are an error. */
export async function drawFitting<T>(
  count: number,
  draw: () => Promise<{ readonly item: T; readonly tokens: number }>,
  room: number,
  tooLong: (inARow: number, tokens: number) => string,
): Promise<{ items: T[]; skipped: number }> {
  const items: T[] = [];
  let [skipped, inARow] = [0, 0];
  while (items.length < count) {
    // A task may search for long, as chess does for its labels.
    await giveTurn();
    const { item, tokens } = await draw();
    if (tokens <= room) {
      items.push(item);
      inARow = 0;
      continue;
    }
    skipped++;
    if (++inARow >= MAX_TOO_LONG) throw new TrainError(tooLong(MAX_TOO_LONG, tokens));
  }
  return { items, skipped };
}

/** Draws prompts that leave room for a completion. */
export async function drawPrompts(
  model: Pick<LanguageModel, 'tokenizer' | 'options'>,
  task: TextTask,
  count: number,
  maxNewTokens: number,
  rng: Rng,
): Promise<{ prompts: readonly TokenisedPrompt[]; promptsSkipped: number }> {
  const { context } = model.options;
  const room = context - maxNewTokens;
  const { items, skipped } = await drawFitting(
    count,
    async () => {
      const prompt = await drawPrompt(task, rng);
      const tokens = promptTokens(model, prompt);
      return { item: { prompt, tokens }, tokens: tokens.length };
    },
    room,
    (inARow, tokens) =>
      `${inARow} prompts of ${task.name} in a row are too long, the last with ${tokens} tokens: the context of ${context} leaves ${room} beside ${maxNewTokens} new ones; use a model with a larger context, or fewer maxNewTokens`,
  );
  return { prompts: items, promptsSkipped: skipped };
}
