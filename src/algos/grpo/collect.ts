/** A batch: prompts of a task, a group of completions of each, and their grades. */
import { type Completion, type Decoder, generate, type LanguageModel } from '../../lm/index.ts';
import type { Rng } from '../../random/index.ts';
import { drawPrompt, gradeSafely, newGrade, type TaskPrompt, type TextTask } from '../../tasks/index.ts';
import { TrainError } from '../train-error.ts';
import type { GrpoConfig } from './config.ts';

export interface GradedCompletion extends Completion {
  /** NaN where grading failed. */
  readonly reward: number;
  readonly parts: readonly number[];
  readonly metrics: readonly number[];
  readonly parsed: boolean;
  /** What was wrong with the grading. */
  readonly problem: string | undefined;
}

export interface TextBatch {
  readonly prompts: readonly { readonly prompt: TaskPrompt; readonly tokens: readonly number[] }[];
  /** Those of prompt p are at p · groupSize and after. */
  readonly completions: readonly GradedCompletion[];
  /** Prompts that were too long for the model's context and left out. */
  readonly promptsSkipped: number;
}

/** Prompts in a row that may be too long before it is called a mistake. */
const MAX_TOO_LONG = 100;

/** The prompt's tokens, with the end token before them: the model needs something to begin with, and knows it as a border. */
export function promptTokens(model: Pick<LanguageModel, 'tokenizer'>, prompt: TaskPrompt): number[] {
  const { tokenizer } = model;
  return [tokenizer.end, ...tokenizer.encode(prompt.text)];
}

/** Draws prompts that fit; those that do not are counted. */
export async function drawPrompts(
  model: Pick<LanguageModel, 'tokenizer' | 'options'>,
  task: TextTask,
  count: number,
  maxNewTokens: number,
  rng: Rng,
): Promise<Pick<TextBatch, 'prompts' | 'promptsSkipped'>> {
  const room = model.options.context - maxNewTokens;
  const prompts: { prompt: TaskPrompt; tokens: number[] }[] = [];
  let [skipped, inARow] = [0, 0];
  while (prompts.length < count) {
    const prompt = await drawPrompt(task, rng);
    const tokens = promptTokens(model, prompt);
    if (tokens.length <= room) {
      prompts.push({ prompt, tokens });
      inARow = 0;
      continue;
    }
    skipped++;
    if (++inARow >= MAX_TOO_LONG) {
      throw new TrainError(
        `${MAX_TOO_LONG} prompts of ${task.name} in a row are too long, the last with ${tokens.length} tokens: the context of ${model.options.context} leaves ${room} beside ${maxNewTokens} new ones; use a model with a larger context, or fewer maxNewTokens`,
      );
    }
  }
  return { prompts, promptsSkipped: skipped };
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
  readonly promptRng: Rng;
  readonly sampleRng: Rng;
  readonly reference?: { readonly decoder: Decoder; readonly weights: Float32Array } | undefined;
}): Promise<TextBatch> {
  const { model, task, decoder, config, maxNewTokens, reference } = options;
  const { groupSize, temperature, topK, topP, klCap } = config;
  const drawn = await drawPrompts(model, task, config.promptsPerIteration, maxNewTokens, options.promptRng);
  const completions = await generate(model, decoder, model.weights, {
    prompts: drawn.prompts.map(({ tokens }) => tokens),
    copies: groupSize,
    maxNewTokens,
    temperature,
    topK,
    topP,
    stop: task.stop,
    rng: options.sampleRng,
    ...(klCap === null || !reference ? {} : { klCap: { cap: klCap, ...reference } }),
  });
  return {
    ...drawn,
    completions: completions.map(completion =>
      gradeOf(task, drawn.prompts[completion.prompt].prompt, completion),
    ),
  };
}

/** A completion with its grade; one that cannot be graded has a NaN reward and says why. */
export function gradeOf(task: TextTask, prompt: TaskPrompt, completion: Completion): GradedCompletion {
  const grade = newGrade(task);
  const problem = gradeSafely(task, prompt, completion.text, grade);
  return {
    ...completion,
    reward: problem === undefined ? grade.reward : Number.NaN,
    parts: Array.from(grade.parts),
    metrics: Array.from(grade.metrics),
    parsed: grade.parsed,
    problem,
  };
}

export const wasTruncated = ({ end }: Completion): boolean => end === 'length' || end === 'kl';
