/**
 * Text tasks: what a language model is trained on. A task writes prompts, grades completions of them part by part, and
 * may show how a good completion reads, which is what a first model is cloned from.
 */
import type { OptionSchemas, OptionValues } from '../envs/options.ts';
import type { Json } from '../envs/plain-data.ts';
import type { Rng } from '../random/rng.ts';

/** A prompt, and all that is needed to grade what follows it: data is plain JSON, so that it can be logged and saved. */
export interface TaskPrompt {
  readonly text: string;
  readonly data: Json;
}

/** What a completion is worth. Made once by `newGrade` and written to by every `grade`. */
export interface Grade {
  /** The sum of `parts`. */
  reward: number;
  /** Whether the completion has the form that was asked for, right or wrong. */
  parsed: boolean;
  /** In the order of the task's `rewardParts`. A part that does not apply to the prompt is 0. */
  readonly parts: Float64Array;
  /** In the order of the task's `metricNames`. NaN where one does not apply to the prompt: it is left out of the mean. */
  readonly metrics: Float64Array;
}

/** A text task with its options settled. */
export interface TextTask {
  readonly name: string;
  /** All the characters that prompts and demonstrations are made of: with `pieces`, a small model's own tokenizer. */
  readonly characters: string;
  /** Strings of several characters that are one token of that tokenizer, which takes the longest that fits. */
  readonly pieces: readonly string[];
  /** What the reward is the sum of, one name each: `structure`, `best`. */
  readonly rewardParts: readonly string[];
  /** What is measured beside the reward: `legal`, `exact`. Usually 0 or 1, so that means are rates. */
  readonly metricNames: readonly string[];
  /** Ends a completion, which is graded without it. A demonstration has none: the end token follows it in training. */
  readonly stop: readonly string[];
  /** Tokens of the longest prompt, in the task's own tokenizer. */
  readonly maxPromptTokens: number;
  /** Tokens that a completion may have, its end included. */
  readonly maxNewTokens: number;
  /** The next prompt; depends on the options and the generator alone. Draws are one after another: await each. */
  prompt(rng: Rng): TaskPrompt | Promise<TaskPrompt>;
  /**
   * Grades a completion of whatever content, at once or as a promise. Must not throw; call it through `gradeSafely` if it
   * is not your own.
   */
  grade(prompt: TaskPrompt, completion: string, out: Grade): void | Promise<void>;
  /** A completion that would be graded well, for cloning. */
  demonstration?(prompt: TaskPrompt, rng: Rng): string | Promise<string>;
  /** What a manifest should keep of where prompts and grades come from: `{ labelSource: 'own search, depth 2' }`. */
  sources?(): Readonly<Record<string, Json>>;
  /** Ends what the task started: processes, files. */
  close?(): Promise<void> | void;
}

/** What a task may use of the program that makes it. */
export interface TaskContext {
  /** Something the user should read in the run's log: a position skipped, an engine started again. */
  readonly notice: (message: string) => void;
}

/** How to make a task, and what is known of it before it is made. */
export interface TextTaskDefinition<O extends OptionValues = OptionValues> {
  /** Letters, digits and `-`: `arithmetic`. */
  readonly name: string;
  /** A sentence for lists. */
  readonly summary: string;
  readonly options?: OptionSchemas<O>;
  make(options: O, context: TaskContext): TextTask | Promise<TextTask>;
  /** Measurements of its own, in place of graded completions, of what completes prompts. */
  evaluate?(options: object, complete: Complete, settings: EvaluationSettings): Promise<TaskEvaluation>;
  /**
   * The same task with prompts that training cannot draw, for evaluations while it trains. Without it they come from what
   * `make` gives, drawn with a seed that training does not have.
   */
  heldOut?(options: object, context?: TaskContext): Promise<TextTask>;
}

/** Completes prompts, in their order. */
export type Complete = (prompts: string[]) => Promise<readonly string[]>;

/** How much is measured, and which prompts. */
export interface EvaluationSettings {
  readonly prompts?: number;
  readonly seed?: number;
}

/** What a task has measured. */
export interface TaskEvaluation {
  readonly rows: readonly EvaluationRow[];
  /** Where its labels come from. */
  readonly sources: Readonly<Record<string, unknown>>;
}

/** One measurement. */
export interface EvaluationRow {
  readonly name: string;
  readonly doc: string;
  /** A share in 0..1, except for mean rewards. */
  readonly value: number;
  /** Completions it is the mean of. */
  readonly count: number;
}

/** An empty grade for completions of this task. */
export function newGrade(task: Pick<TextTask, 'rewardParts' | 'metricNames'>): Grade {
  return {
    reward: 0,
    parsed: false,
    parts: new Float64Array(task.rewardParts.length),
    metrics: new Float64Array(task.metricNames.length),
  };
}

/** Makes a grade empty again: parts 0, metrics NaN, not parsed. Every `grade` begins with it. */
export function clearGrade(grade: Grade): void {
  grade.reward = 0;
  grade.parsed = false;
  grade.parts.fill(0);
  grade.metrics.fill(Number.NaN);
}

/** Sets the reward to the sum of the parts. Every `grade` ends with it. */
export function sumParts(grade: Grade): void {
  let sum = 0;
  for (let i = 0; i < grade.parts.length; i++) sum += grade.parts[i];
  grade.reward = sum;
}
