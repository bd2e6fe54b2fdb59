/**
 * A policy that one can hold: what a run has learnt, at a checkpoint.
 *
 * ```ts
 * const policy = await openPolicy('last');
 * const action = policy.act(observation); // or policy.act([a, b, c], { sampled: true })
 * const { mean } = await policy.evaluate({ episodes: 100 });
 * await policy.export('policy.onnx');
 * await policy.close();
 * ```
 */
import { show, TrainError } from '../base/errors.ts';
import type { Score } from '../envs/definition.ts';
import type { Replay } from '../runs/replay-format.ts';
import type { EpisodeEvaluation } from './agents/evaluate.ts';
import type { Subject } from './subject.ts';
import type { CompletionEvaluation, MeasuredEvaluation } from './text/evaluate.ts';

/** One observation, its parts one after the other. */
export type Observation = ArrayLike<number>;

/** How to act: the most likely action, or one that is drawn as in training. */
export interface ActOptions {
  readonly sampled?: boolean;
}

/** What a policy is worth: episodes that it played, completions that were graded, or a task's own measurements. */
export type Evaluation = EpisodeEvaluation | CompletionEvaluation | MeasuredEvaluation;

/** How a policy is tried. */
export interface EvaluatePolicyOptions extends ActOptions {
  /** Episodes to play, or prompts to complete; 100 unless told. */
  readonly episodes?: number;
  /** Of the episodes or the prompts; 10,000 unless told: training with another seed, and its evaluations, have seen others. */
  readonly seed?: number;
}

/** Which episodes to record. */
export interface RecordOptions {
  /** Default 1. */
  readonly episodes?: number | undefined;
  readonly onReplay?: ((name: string, replay: Replay) => void) | undefined;
}

/** What was written: a policy as ONNX, with its sizes, or the directory of a language model. */
export type Exported =
  | {
      readonly kind: 'onnx';
      readonly observation: number;
      readonly action: number;
      readonly distribution: number;
    }
  | { readonly kind: 'model'; readonly files: readonly string[] }
  | {
      readonly kind: 'state-dict';
      /** Names of its tensors, and their shapes as PyTorch has them. */
      readonly tensors: Readonly<Record<string, readonly number[]>>;
    };

/** What a policy is written as: ONNX, or the state dict of Stable-Baselines3's `ActorCriticPolicy` as safetensors. */
export const exportFormats = ['onnx', 'sb3-state-dict'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** What a run has learnt, at one of its checkpoints. A policy acts on observations, a language model on prompts. */
export interface Policy {
  readonly run: { readonly id: string; readonly dir: string };
  readonly subject: Subject;
  readonly step: number;
  readonly iteration: number;
  /** What an export is called unless told. */
  readonly exportName: string;
  /** An action within the environment's bounds. */
  act(observation: Observation, options?: ActOptions): Float32Array;
  /** An action for each observation. */
  act(observations: readonly Observation[], options?: ActOptions): Float32Array[];
  /** A language model's completion. */
  act(prompt: string, options?: ActOptions): Promise<string>;
  /** A completion of each prompt. */
  act(prompts: readonly string[], options?: ActOptions): Promise<string[]>;
  /** Writes the parameters of the policy's distribution for one observation. */
  readonly score: Score;
  evaluate(options?: EvaluatePolicyOptions): Promise<Evaluation>;
  /** Writes the deployable policy: a file for any ONNX runtime, or a model's directory for Hugging Face's tools. */
  export(path: string, options?: { readonly format?: ExportFormat | undefined }): Promise<Exported>;
  /** Records episodes into the run, to look at; gives their names. */
  record(options?: RecordOptions): Promise<string[]>;
  close(): Promise<void>;
}

/** What every policy refuses to be asked, in one wording: after it was closed, about nothing, for no episodes. */
export function asking({ id }: Policy['run'], input: 'observation' | 'prompt') {
  let closed = false;
  const checkOpen = (method: string): void => {
    if (closed)
      throw new TrainError(`the policy of ${id} is closed, ${method} needs an open one: open it again`);
  };
  return {
    checkOpen,
    checkAct(given: unknown): void {
      checkOpen('act');
      if (given === undefined || given === null || (Array.isArray(given) && given.length === 0))
        throw new TrainError(
          `act(${show(given)}) has nothing to act on: pass one ${input}, or several in a list`,
        );
    },
    checkEvaluate(episodes: number): void {
      checkOpen('evaluate');
      if (!Number.isSafeInteger(episodes) || episodes < 1)
        throw new TrainError(
          `episodes is ${show(episodes)}, not a whole number from 1: give one, or leave it out for ${usualEpisodes}`,
        );
    },
    /** Whether it was open until now. */
    close(): boolean {
      const wasOpen = !closed;
      closed = true;
      return wasOpen;
    },
  };
}

/** How many an evaluation plays or completes unless told. */
export const usualEpisodes = 100;
/** The seed of those episodes or prompts unless told. */
export const evaluationSeed = 10_000;
