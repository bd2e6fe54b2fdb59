/** A trainer of a language model on the task of a run, whichever it is trained by. */

import { TrainError } from '../../base/errors.ts';
import { loadModel } from '../../lm/huggingface.ts';
import type { LanguageModel } from '../../lm/model.ts';
import type { Checkpoint } from '../../runs/checkpoint.ts';
import type { EnvironmentSpec, Manifest } from '../../runs/schema.ts';
import type { RunWriter } from '../../runs/writer.ts';
import { refuseModelSizes } from '../../settings/resolve.ts';
import type { RunConfig, SettingTable } from '../../settings/spec.ts';
import { createTask, taskOptions } from '../../tasks/definition.ts';
import { sourcesOf } from '../../tasks/draw-safely.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { IterationResult, Learner, Opening, Settings } from '../algorithm.ts';
import { type LearnerEvaluation, roundSeed } from '../evaluation.ts';
import type { Continuing, UpdateCounters } from '../update/guarded.ts';
import { checkpointModel, savedText, type TextSnapshot } from './checkpoint.ts';
import { openJudge, type TextJudge } from './evaluate.ts';
import { type ModelConfig, newModel, refuseUnfit } from './model.ts';
import type { ModelStart } from './start.ts';

/** What trains a model on a task. */
export interface TextTrainer<S extends TextSnapshot = TextSnapshot> {
  readonly config: object;
  readonly counters: Readonly<UpdateCounters>;
  iterate(): Promise<IterationResult>;
  /** Shares its arrays with the trainer: use it before the next iteration. */
  snapshot(): S;
  restore(snapshot: S): void;
  adjust(changes: Settings): void;
  dispose(): Promise<void>;
}

/** What differs between the algorithms. */
export interface TextParts<C extends RunConfig, S extends TextSnapshot, T extends TextTrainer<S>> {
  readonly settings: SettingTable<C>;
  readonly create: (parts: { model: LanguageModel; task: TextTask; config: C }) => T;
  readonly snapshotFrom: (model: LanguageModel, checkpoint: Checkpoint) => S;
  readonly countersGoingOn: (counters: S['counters'], how: Continuing, config: C) => S['counters'];
  readonly besideLog?: (trainer: T, runDir: string, iteration: number) => () => void;
}

/** What a config says of evaluations. */
interface TextEvaluation {
  readonly seed: number;
  readonly device: 'cpu' | 'webgpu' | 'cuda';
  readonly threads: number;
  readonly evaluateEpisodes: number;
  readonly maxNewTokens?: number | null;
}

/** A faulty engine may have a notice for every position: the first say enough. */
const MOST_NOTICES = 20;

/** Makes the task and the model: of the checkpoint to go on from, the one to start from, or a new one. */
export async function openTextLearner<
  C extends RunConfig & ModelConfig & TextEvaluation,
  S extends TextSnapshot,
  T extends TextTrainer<S>,
>(
  { subject, config, written, start, from }: Opening<C, ModelStart>,
  parts: TextParts<C, S, T>,
): Promise<Learner & { readonly trainer: T; readonly model: LanguageModel }> {
  if (subject.kind !== 'task')
    throw new TrainError(`${subject.id} is no text task: use one, such as arithmetic`);
  if (start) refuseModelSizes(parts.settings, written);
  const notices: string[] = [];
  const { definition, options } = subject;
  const context = {
    notice: (message: string) => {
      if (notices.length < MOST_NOTICES) notices.push(message);
    },
  };
  const task = await createTask(definition, options, context);
  try {
    const model = await modelFor(task, config, start, from);
    refuseUnfit(task, model);
    const trainer = parts.create({ model, task, config });
    const evaluations = evaluationsOf(
      model,
      () => definition.heldOut?.(options, context) ?? createTask(definition, options, context),
      config,
    );
    const { besideLog } = parts;
    return {
      trainer,
      model,
      get config() {
        return trainer.config;
      },
      counters: trainer.counters,
      totalSteps: config.steps,
      environment: {
        id: subject.id,
        version: '0',
        options: { ...taskOptions(definition, options) } as EnvironmentSpec['options'],
        reward: { scale: 1, normalised: false },
      },
      notes: () => ({
        from: start?.directory ?? (from?.manifest.config as { from?: string } | undefined)?.from ?? null,
        sources: sourcesOf(task),
        ...(from && earlierSources(from.manifest, task)),
      }),
      async begin() {},
      async restore(checkpoint, { forkedWith }) {
        const saved = parts.snapshotFrom(model, checkpoint);
        const counters = parts.countersGoingOn(
          saved.counters,
          { written, forked: forkedWith !== undefined },
          config,
        );
        trainer.restore({ ...saved, counters });
      },
      async iterate() {
        const result = await trainer.iterate();
        for (const text of notices.splice(0)) result.events.push({ type: 'notice', text });
        return result;
      },
      evaluate: evaluations.evaluate,
      adjust: changes => trainer.adjust(changes),
      save: async () => savedText(model, trainer.snapshot()),
      saved: async writer => noteSources(writer, task),
      ...(besideLog && { besideLog: (runDir, iteration) => besideLog(trainer, runDir, iteration) }),
      async close() {
        await trainer.dispose();
        await evaluations.close();
        await task.close?.();
      },
    };
  } catch (error) {
    await task.close?.();
    throw error;
  }
}

/**
 * Evaluations of a model while it is trained: on a task of their own, which is made at the first one and kept, because one
 * may remember what it was asked.
 */
function evaluationsOf(
  model: LanguageModel,
  newTask: () => Promise<TextTask>,
  { evaluateEpisodes: prompts, seed, device, threads, maxNewTokens }: TextEvaluation,
): { evaluate(): Promise<LearnerEvaluation>; close(): Promise<void> } {
  let task: TextTask | undefined;
  let judge: TextJudge | undefined;
  return {
    async evaluate() {
      task ??= await newTask();
      judge ??= await openJudge(model, task, {
        prompts,
        promptSeed: roundSeed(seed, 0),
        device,
        threads,
        maxNewTokens: maxNewTokens ?? task.maxNewTokens,
      });
      const { graded } = await judge.judge();
      const failed = graded.filter(({ problem }) => problem !== undefined);
      const good = graded.filter(({ problem }) => problem === undefined);
      return {
        returns: good.map(({ reward }) => reward),
        lengths: good.map(({ tokens }) => tokens.length),
        ...(failed.length > 0 && {
          events: [{ type: 'ungraded', count: failed.length, of: graded.length, reason: failed[0].problem! }],
        }),
      };
    },
    async close() {
      await judge?.close();
      await task?.close?.();
    },
  };
}

async function modelFor(
  task: TextTask,
  config: ModelConfig,
  start: ModelStart | undefined,
  from: Opening['from'],
): Promise<LanguageModel> {
  if (from?.checkpoint) return checkpointModel(from.checkpoint);
  if (start) return loadModel(start.directory);
  // It cannot begin again from its seed: it began from a model.
  if (from && (from.manifest.config as { from?: unknown }).from)
    throw new TrainError(`${from.manifest.id} has no checkpoint: delete it and train again`);
  return newModel(task, config);
}

/** An engine may have failed for good: the manifest says where labels truly came from. */
function noteSources(writer: RunWriter, task: TextTask): void {
  const sources = sourcesOf(task);
  const { config: before } = writer.manifest;
  if (JSON.stringify((before as { sources?: unknown }).sources) !== JSON.stringify(sources))
    writer.reconfigure({ ...before, sources });
}

/** Where prompts and grades came from before, where that was not the same: an engine that had given up. */
function earlierSources({ config }: Manifest, task: TextTask): { sourcesBefore?: readonly unknown[] } {
  const { sources, sourcesBefore = [] } = config as { sources?: unknown; sourcesBefore?: readonly unknown[] };
  const changed = sources !== undefined && JSON.stringify(sources) !== JSON.stringify(sourcesOf(task));
  const before = changed ? [...sourcesBefore, sources] : sourcesBefore;
  return before.length === 0 ? {} : { sourcesBefore: before };
}
