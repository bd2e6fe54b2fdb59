/** Completions with their grades. */
import type { Completion } from '../../lm/generate.ts';
import { gradeSafely } from '../../tasks/grade-safely.ts';
import { newGrade, type TaskPrompt, type TextTask } from '../../tasks/text-task.ts';

export interface GradedCompletion extends Completion {
  /** NaN where grading failed. */
  readonly reward: number;
  readonly parts: readonly number[];
  readonly metrics: readonly number[];
  readonly parsed: boolean;
  /** What was wrong with the grading. */
  readonly problem: string | undefined;
}

/** A completion with its grade; one that cannot be graded has a NaN reward and says why. */
export async function gradeOf(
  task: TextTask,
  prompt: TaskPrompt,
  completion: Completion,
): Promise<GradedCompletion> {
  const grade = newGrade(task);
  const problem = await gradeSafely(task, prompt, completion.text, grade);
  return {
    ...completion,
    reward: problem === undefined ? grade.reward : Number.NaN,
    parts: Array.from(grade.parts),
    metrics: Array.from(grade.metrics),
    parsed: grade.parsed,
    problem,
  };
}

/** Whether it was cut off. */
export const wasTruncated = ({ end }: Completion): boolean => end === 'length' || end === 'kl';
