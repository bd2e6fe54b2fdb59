/** How good a language model is at a task: completions of fresh prompts, graded. */

import { TrainError } from '../../base/errors.ts';
import { Decoder } from '../../lm/decoder.ts';
import { type Completion, generate } from '../../lm/generate.ts';
import type { LanguageModel } from '../../lm/model.ts';
import type { SamplingOptions } from '../../lm/truncation.ts';
import { Rng } from '../../random/rng.ts';
import type { TaskEvaluation, TaskPrompt, TextTask } from '../../tasks/text-task.ts';
import { moments, type Summary, summaryOf } from '../update/moments.ts';
import { type GradedCompletion, gradeOf, wasTruncated } from './graded.ts';
import { drawPrompts, promptTokens, type TokenisedPrompt } from './prompts.ts';

export interface CompleteOptions extends Partial<SamplingOptions> {
  readonly maxNewTokens?: number;
  readonly seed?: number;
  /** Prompts that are completed at once. */
  readonly batchSize?: number;
  readonly device?: 'cpu' | 'webgpu' | 'cuda';
  readonly threads?: number;
}

/** Completes prompts of a task; the most likely tokens, unless a temperature is given. */
export function completer(
  model: LanguageModel,
  task: Pick<TextTask, 'stop' | 'maxNewTokens'>,
  options: CompleteOptions = {},
): { complete(prompts: readonly TaskPrompt[]): Promise<Completion[]>; close(): Promise<void> } {
  const { temperature = 0, topK = 0, topP = 1, batchSize = 64, seed = 0 } = options;
  const { device = 'cpu', threads = 1, maxNewTokens = task.maxNewTokens } = options;
  const decoder = new Decoder(model, { device, threads });
  const rng = new Rng(seed);
  return {
    async complete(prompts) {
      const completions: Completion[] = [];
      for (let start = 0; start < prompts.length; start += batchSize) {
        const part = prompts.slice(start, start + batchSize);
        // The last batch is filled up: another size would be another program.
        const rows = Array.from(
          { length: Math.min(batchSize, prompts.length) },
          (_, i) => part[i % part.length],
        );
        const made = await generate(model, decoder, model.weights, {
          prompts: rows.map(prompt => promptTokens(model, prompt)),
          copies: 1,
          maxNewTokens,
          temperature,
          topK,
          topP,
          stop: task.stop,
          rng,
        });
        completions.push(...made.slice(0, part.length).map((c, i) => ({ ...c, prompt: start + i })));
      }
      return completions;
    },
    close: () => decoder.dispose(),
  };
}

/** What graded completions came to. */
export interface CompletionEvaluation {
  readonly kind: 'completions';
  readonly completions: number;
  readonly ungraded: number;
  readonly reward: Summary;
  readonly parseRate: number;
  readonly truncated: number;
  readonly meanTokens: number;
  /** Different completions, as a share: 1 where none is repeated. */
  readonly distinct: number;
  readonly parts: Readonly<Record<string, number>>;
  readonly metrics: Readonly<Record<string, number>>;
  /** Some, to look at. */
  readonly examples: readonly {
    readonly prompt: string;
    readonly completion: string;
    readonly reward: number | null;
  }[];
}

/** What a task measures by its own means. */
export interface MeasuredEvaluation extends TaskEvaluation {
  readonly kind: 'measurements';
}

const EXAMPLES = 5;

/** How prompts are drawn and completed. */
export interface EvaluateTextOptions extends CompleteOptions {
  readonly prompts: number;
  readonly promptSeed: number;
}

/** Completions of the same prompts each time, graded: of the weights that the model has then. */
export interface TextJudge {
  judge(): Promise<{
    readonly prompts: readonly TokenisedPrompt[];
    readonly graded: readonly GradedCompletion[];
  }>;
  close(): Promise<void>;
}

/** Draws prompts that training has not seen, because their seed is another, and makes ready to complete them. */
export async function openJudge(
  model: LanguageModel,
  task: TextTask,
  options: EvaluateTextOptions,
): Promise<TextJudge> {
  if (!Number.isInteger(options.prompts) || options.prompts < 1)
    throw new TrainError(`prompts is ${options.prompts}: a whole number from 1 is needed`);
  const maxNewTokens = options.maxNewTokens ?? task.maxNewTokens;
  const { prompts } = await drawPrompts(
    model,
    task,
    options.prompts,
    maxNewTokens,
    new Rng(options.promptSeed),
  );
  const { complete, close } = completer(model, task, options);
  return {
    async judge() {
      const completions = await complete(prompts.map(({ prompt }) => prompt));
      const graded = await Promise.all(
        completions.map((completion, i) => gradeOf(task, prompts[i].prompt, completion)),
      );
      return { prompts, graded };
    },
    close,
  };
}

/** Grades completions of prompts that training has not seen. */
export async function evaluateText(
  model: LanguageModel,
  task: TextTask,
  options: EvaluateTextOptions,
): Promise<CompletionEvaluation> {
  const { judge, close } = await openJudge(model, task, options);
  try {
    const { prompts, graded } = await judge();
    const good = graded.filter(({ problem }) => problem === undefined);
    if (good.length === 0) throw new TrainError(`no completion could be graded: ${graded[0].problem}`);
    const mean = (values: readonly number[]): number => moments(values).mean;
    return {
      kind: 'completions',
      completions: graded.length,
      ungraded: graded.length - good.length,
      reward: summaryOf(good.map(({ reward }) => reward)),
      parseRate: mean(good.map(({ parsed }) => (parsed ? 1 : 0))),
      truncated: mean(graded.map(completion => (wasTruncated(completion) ? 1 : 0))),
      meanTokens: mean(graded.map(({ tokens }) => tokens.length)),
      distinct: new Set(graded.map(({ text }) => text)).size / graded.length,
      parts: Object.fromEntries(
        task.rewardParts.map((name, i) => [name, mean(good.map(({ parts }) => parts[i]))]),
      ),
      metrics: Object.fromEntries(
        task.metricNames.flatMap((name, i) => {
          const known = good.map(({ metrics }) => metrics[i]).filter(value => !Number.isNaN(value));
          return known.length === 0 ? [] : [[name, mean(known)]];
        }),
      ),
      examples: graded.slice(0, EXAMPLES).map(({ text, reward }, i) => ({
        prompt: prompts[i].prompt.text,
        completion: text,
        reward: Number.isNaN(reward) ? null : reward,
      })),
    };
  } finally {
    await close();
  }
}
