import { messageOf, show } from '../envs/errors.ts';
import { inTime, LONGEST_MS, tooSlow } from './in-time.ts';
import { clearGrade, type Grade, type TaskPrompt, type TextTask } from './text-task.ts';

/** Parts are added in any order: their sum may differ from the reward by rounding alone. */
const ROUNDING = 1e-9;

/**
 * Grades through a task that may be faulty; a promise is awaited, for a minute at most. What is wrong is returned as one
 * line (the caller counts and logs it, and leaves the completion out), and the grade is empty then; undefined when all is
 * well. One that comes too late still writes to `out`: take a new one for each completion.
 */
export async function gradeSafely(
  task: TextTask,
  prompt: TaskPrompt,
  completion: string,
  out: Grade,
  longestMs: number = LONGEST_MS,
): Promise<string | undefined> {
  const problem = await problemOf(task, prompt, completion, out, longestMs);
  if (problem !== undefined) clearGrade(out);
  return problem;
}

async function problemOf(
  task: TextTask,
  prompt: TaskPrompt,
  completion: string,
  out: Grade,
  longestMs: number,
): Promise<string | undefined> {
  // Whoever gives nothing is told so; 0 would be a reward like any other.
  out.reward = Number.NaN;
  try {
    if (!(await inTime(task.grade(prompt, completion, out), longestMs)))
      return tooSlow(`grade of ${task.name}`, longestMs);
  } catch (error) {
    return `grade of ${task.name} threw: ${messageOf(error)}`;
  }
  if (Number.isNaN(out.reward))
    return `grade of ${task.name} gave the reward NaN, or none: begin with clearGrade(out), end with sumParts(out)`;
  if (!Number.isFinite(out.reward))
    return `grade of ${task.name} gave the reward ${show(out.reward)}: it must be a finite number`;
  let sum = 0;
  for (let i = 0; i < out.parts.length; i++) {
    const part = out.parts[i];
    if (!Number.isFinite(part))
      return `grade of ${task.name} gave ${show(part)} for the part ${task.rewardParts[i]}: it must be a finite number`;
    sum += part;
  }
  if (Math.abs(sum - out.reward) > ROUNDING * Math.max(1, Math.abs(sum)))
    return `grade of ${task.name} gave the reward ${out.reward}, but its parts sum to ${sum}: end with sumParts(out)`;
  return undefined;
}
