/** A language model that completes the prompts of a task, to hold. */

import { ConfigError, show, TrainError } from '../../base/errors.ts';
import { loadModel, modelFiles, saveModel } from '../../lm/huggingface.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { Rng } from '../../random/rng.ts';
import type { RunConfig } from '../../settings/spec.ts';
import { createTask } from '../../tasks/definition.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { PolicyOpening } from '../algorithm.ts';
import {
  type ActOptions,
  asking,
  type EvaluatePolicyOptions,
  type Evaluation,
  evaluationSeed,
  type Policy,
  usualEpisodes,
} from '../policy.ts';
import type { Subject } from '../subject.ts';
import { checkpointModel } from './checkpoint.ts';
import { type CompleteOptions, completer, evaluateText } from './evaluate.ts';
import type { ModelStart } from './start.ts';

/** The settings that completions are drawn by. */
interface SamplingConfig {
  readonly seed?: number;
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly threads?: number;
  readonly maxNewTokens?: number | null;
}

/** The model of a checkpoint on the task of its run. */
export function textPolicy({
  run,
  subject,
  config,
  checkpoint,
}: PolicyOpening<RunConfig & SamplingConfig>): Promise<Policy> {
  const { step, iteration } = checkpoint.index;
  return modelPolicy(checkpointModel(checkpoint), subject, config, { run, step, iteration });
}

/** A model that no run of the task has made. */
export async function startPolicy({ directory }: ModelStart, subject: Subject): Promise<Policy> {
  const run = { id: directory, dir: directory };
  return modelPolicy(await loadModel(directory), subject, {}, { run, step: 0, iteration: 0 });
}

/** Any model on a task. */
async function modelPolicy(
  model: LanguageModel,
  subject: Subject,
  config: SamplingConfig,
  of: Pick<Policy, 'run' | 'step' | 'iteration'>,
): Promise<Policy> {
  if (subject.kind !== 'task')
    throw new ConfigError(`${subject.id} is an environment: a language model has tasks`);
  const { definition, options } = subject;
  const task = await createTask(definition, options);
  const { temperature = 1, topK = 0, topP = 1, threads = 2 } = config;
  const rng = new Rng(config.seed ?? 0);
  const sampling = (sampled: boolean | undefined): CompleteOptions => ({
    threads,
    maxNewTokens: config.maxNewTokens ?? task.maxNewTokens,
    ...(sampled ? { temperature, topK, topP } : {}),
  });

  const { checkOpen, checkAct, checkEvaluate, close } = asking(of.run, 'prompt');

  async function evaluate(given: EvaluatePolicyOptions = {}): Promise<Evaluation> {
    const { episodes: prompts = usualEpisodes, seed = evaluationSeed, sampled } = given;
    checkEvaluate(prompts);
    const how = { ...sampling(sampled), seed };
    if (definition.evaluate === undefined)
      return evaluateText(model, task, { ...how, prompts, promptSeed: seed });
    const measured = await completing(model, task, how, complete =>
      definition.evaluate!(options, complete, { prompts, seed }),
    );
    return { kind: 'measurements', ...measured };
  }

  const act = async (given: unknown, { sampled }: ActOptions = {}): Promise<string | string[]> => {
    checkAct(given);
    const prompts: unknown[] = Array.isArray(given) ? given : [given];
    if (!prompts.every(prompt => typeof prompt === 'string'))
      throw new TrainError(
        `${of.run.id} is a language model: it completes prompts, which are text, not ${show(given)}`,
      );
    // From one call to the next: each draws anew.
    const how = { ...sampling(sampled), seed: rng.integer(2 ** 32) };
    const texts = await completing(model, task, how, complete => complete(prompts));
    return Array.isArray(given) ? texts : texts[0];
  };

  const notForText = (what: string): never => {
    throw new TrainError(`${of.run.id} is a language model, ${what}: it completes prompts of ${subject.id}`);
  };
  return {
    ...of,
    subject,
    exportName: 'model',
    act: act as unknown as Policy['act'],
    score: () => notForText('which has no observations to score'),
    evaluate,
    async export(path, { format } = {}) {
      checkOpen('export');
      if (format !== undefined) notForText(`which is not written as ${format}`);
      await saveModel(path, model);
      return { kind: 'model', files: Object.keys(modelFiles(model)) };
    },
    record: async () => notForText('which cannot be drawn'),
    async close() {
      if (close()) await task.close?.();
    },
  };
}

/** Lends what completes texts, and closes it. */
async function completing<T>(
  model: LanguageModel,
  task: TextTask,
  options: CompleteOptions,
  work: (complete: (prompts: string[]) => Promise<string[]>) => Promise<T>,
): Promise<T> {
  const { complete, close } = completer(model, task, options);
  try {
    return await work(async prompts =>
      (await complete(prompts.map(text => ({ text, data: null })))).map(({ text }) => text),
    );
  } finally {
    await close();
  }
}
