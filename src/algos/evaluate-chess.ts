/** How well a language model plays chess and predicts it: its completions, judged by the task's own measurements. */
import type { LanguageModel } from '../lm/index.ts';
import {
  type ChessEvaluation,
  type ChessEvaluationSettings,
  evaluateChess,
  type TextTask,
} from '../tasks/index.ts';
import { type CompleteOptions, completer } from './evaluate-text.ts';

export async function evaluateChessModel(
  { model, task }: { readonly model: LanguageModel; readonly task: Pick<TextTask, 'stop' | 'maxNewTokens'> },
  taskOptions: object,
  sampling: CompleteOptions,
  settings: ChessEvaluationSettings,
): Promise<ChessEvaluation> {
  const { complete, close } = completer(model, task, sampling);
  try {
    const texts = async (prompts: string[]): Promise<string[]> =>
      (await complete(prompts.map(text => ({ text, data: null })))).map(({ text }) => text);
    return await evaluateChess(taskOptions, texts, settings);
  } finally {
    await close();
  }
}
