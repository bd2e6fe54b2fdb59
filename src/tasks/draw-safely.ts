/** What a task writes, with its faults said as the task's: not every task is our own. */
import { messageOf, show } from '../envs/errors.ts';
import type { Json } from '../envs/plain-data.ts';
import type { Rng } from '../random/rng.ts';
import { fail, TaskError } from './errors.ts';
import { inTime, tooSlow } from './in-time.ts';
import type { TaskPrompt, TextTask } from './text-task.ts';

/** The next prompt; a task that throws, takes too long or gives something else is named as the one at fault. */
export async function drawPrompt(task: TextTask, rng: Rng, longestMs?: number): Promise<TaskPrompt> {
  const prompt = await drawn(`prompt of ${task.name}`, () => task.prompt(rng), longestMs);
  if (typeof prompt?.text !== 'string')
    fail('task-threw', `prompt of ${task.name} gave ${show(prompt)}: return { text, data }, text a string`);
  return prompt;
}

/** A demonstration of a task that has some, in the same way. */
export async function drawDemonstration(
  task: TextTask,
  prompt: TaskPrompt,
  rng: Rng,
  longestMs?: number,
): Promise<string> {
  const what = `demonstration of ${task.name}`;
  const text = await drawn(what, () => task.demonstration!(prompt, rng), longestMs);
  if (typeof text !== 'string') fail('task-threw', `${what} gave ${show(text)}: return a string`);
  return text;
}

/** Where a task's prompts and grades come from, as a manifest keeps it. */
export function sourcesOf(task: TextTask): Readonly<Record<string, Json>> {
  const sources: unknown = task.sources?.() ?? {};
  if (typeof sources !== 'object' || sources === null || Array.isArray(sources) || 'then' in sources)
    fail(
      'task-threw',
      `sources of ${task.name} gave ${sources instanceof Promise ? 'a promise' : show(sources)}: return an object of names and values, at once`,
    );
  return sources as Readonly<Record<string, Json>>;
}

async function drawn<T>(what: string, draw: () => T | Promise<T>, longestMs?: number): Promise<T> {
  try {
    const answer = await inTime(draw(), longestMs);
    return answer === undefined ? fail('task-threw', tooSlow(what, longestMs)) : answer.value;
  } catch (error) {
    // By name: errors of a user's file come from another copy of their module.
    if ((error as { name?: unknown } | null)?.name === 'TaskError') throw error;
    throw new TaskError('task-threw', `${what} threw: ${messageOf(error)}; correct the task and resume`, {
      cause: error,
    });
  }
}
