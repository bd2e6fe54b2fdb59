/** What a task writes, with its faults said as the task's: not every task is our own. */
import { messageOf, show } from '../envs/errors.ts';
import type { Rng } from '../random/rng.ts';
import { fail, TaskError } from './errors.ts';
import type { TaskPrompt, TextTask } from './text-task.ts';

/** The next prompt; a task that throws, or gives something else, is named as the one at fault. */
export async function drawPrompt(task: TextTask, rng: Rng): Promise<TaskPrompt> {
  let prompt: TaskPrompt;
  try {
    prompt = await task.prompt(rng);
  } catch (error) {
    throw asTaskError(`prompt of ${task.name}`, error);
  }
  if (typeof prompt?.text !== 'string')
    fail('task-threw', `prompt of ${task.name} gave ${show(prompt)}: return { text, data }, text a string`);
  return prompt;
}

/** A demonstration of a task that has some, in the same way. */
export function drawDemonstration(task: TextTask, prompt: TaskPrompt, rng: Rng): string {
  let text: string;
  try {
    text = task.demonstration!(prompt, rng);
  } catch (error) {
    throw asTaskError(`demonstration of ${task.name}`, error);
  }
  if (typeof text !== 'string')
    fail('task-threw', `demonstration of ${task.name} gave ${show(text)}: return a string`);
  return text;
}

/** By name: errors of a user's file come from another copy of their module. */
function asTaskError(what: string, error: unknown): unknown {
  if ((error as { name?: unknown } | null)?.name === 'TaskError') return error;
  return new TaskError('task-threw', `${what} threw: ${messageOf(error)}; correct the task and resume`, {
    cause: error,
  });
}
