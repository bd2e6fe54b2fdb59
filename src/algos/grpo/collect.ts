/** A batch: prompts of a task, a group of completions of each, and their grades. */
import type { Decoder } from '../../lm/decoder.ts';
import { generate } from '../../lm/generate.ts';
import type { LanguageModel } from '../../lm/model.ts';
import type { Rng } from '../../random/rng.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import { type GradedCompletion, gradeOf } from '../text/graded.ts';
import { drawPrompts, type TokenisedPrompt } from '../text/prompts.ts';
import type { GrpoConfig } from './settings.ts';

export interface TextBatch {
  readonly prompts: readonly TokenisedPrompt[];
  /** Those of prompt p are at p · groupSize and after. */
  readonly completions: readonly GradedCompletion[];
  /** Prompts that were too long for the model's context and left out. */
  readonly promptsSkipped: number;
}

/** Samples and grades a whole batch. */
export async function collectBatch(options: {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly decoder: Decoder;
  readonly config: Pick<
    GrpoConfig,
    'promptsPerIteration' | 'groupSize' | 'temperature' | 'topK' | 'topP' | 'klCap'
  >;
  readonly maxNewTokens: number;
  readonly rngs: { readonly prompt: Rng; readonly sample: Rng };
  readonly reference?: { readonly decoder: Decoder; readonly weights: Float32Array } | undefined;
}): Promise<TextBatch> {
  const { model, task, decoder, config, maxNewTokens, rngs, reference } = options;
  const { groupSize, temperature, topK, topP, klCap } = config;
  const drawn = await drawPrompts(model, task, config.promptsPerIteration, maxNewTokens, rngs.prompt);
  const completions = await generate(model, decoder, model.weights, {
    prompts: drawn.prompts.map(({ tokens }) => tokens),
    copies: groupSize,
    maxNewTokens,
    temperature,
    topK,
    topP,
    stop: task.stop,
    rng: rngs.sample,
    ...(klCap === null || !reference ? {} : { klCap: { cap: klCap, ...reference } }),
  });
  return {
    ...drawn,
    // Side by side, where grading takes time.
    completions: await Promise.all(
      completions.map(completion => gradeOf(task, drawn.prompts[completion.prompt].prompt, completion)),
    ),
  };
}
