import { messageOf, show } from '../envs/errors.ts';
import { type OptionSchemas, type OptionValues, resolveOptions, schemaProblem } from '../envs/options.ts';
import { fail, TaskError } from './errors.ts';
import type { TaskContext, TextTask, TextTaskDefinition } from './text-task.ts';

const NAME = /^[a-z][a-z0-9-]*$/;
const MAX_TOKENS = 1_000_000;

/** Checks a definition and gives its types; the default export of a user's file. */
export function defineTask<O extends OptionValues = Record<never, never>>(
  definition: TextTaskDefinition<O>,
): TextTaskDefinition<O> {
  const problem = definitionProblem(definition);
  if (problem) fail('definition-invalid', problem);
  return definition;
}

/** What is wrong with a would-be definition, if anything. */
export function definitionProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null)
    return `${show(value)} is not a task definition: pass defineTask({ name, summary, make })`;
  const { name, summary, options, make } = value as Partial<TextTaskDefinition>;
  if (typeof name !== 'string' || !NAME.test(name))
    return `the name ${show(name)} is not of small letters, digits and -, such as my-task`;
  const where = `task ${name}`;
  if (typeof summary !== 'string' || summary.trim() === '') return `${where} needs a summary: a sentence`;
  if (typeof make !== 'function')
    return `${where}: make is ${show(make)}, not a function that returns a task`;
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null)
    return `${where}: options ${show(options)} is not an object`;
  const problem = schemaProblem(options);
  return problem === undefined ? undefined : `${where}: ${problem}`;
}

/** A task's options over its defaults; unknown names and values outside their limits are errors. */
export const taskOptions = (definition: TextTaskDefinition, given: object): OptionValues =>
  resolveOptions(definition.name, (definition.options ?? {}) as OptionSchemas, given);

/** Makes a task from its definition: options checked, and what was made checked. */
export async function createTask(
  definition: TextTaskDefinition,
  given: object = {},
  context: TaskContext = { notice: () => {} },
): Promise<TextTask> {
  const problem = definitionProblem(definition);
  if (problem) fail('definition-invalid', problem);
  const options = taskOptions(definition, given);
  let task: TextTask;
  try {
    task = await definition.make(options, context);
  } catch (error) {
    if ((error as { name?: unknown } | null)?.name === 'TaskError') throw error;
    throw new TaskError('task-threw', `${definition.name} could not be made: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const wrong = taskProblem(task);
  if (wrong) fail('definition-invalid', `${definition.name}: ${wrong}`);
  return task;
}

function taskProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null)
    return `make returned ${show(value)}: return { name, characters, prompt, grade, … }`;
  const task = value as Partial<TextTask>;
  for (const method of ['prompt', 'grade'] as const) {
    if (typeof task[method] !== 'function') return `make returned an object without ${method}()`;
  }
  if (task.demonstration !== undefined && typeof task.demonstration !== 'function')
    return `demonstration is ${show(task.demonstration)}, not a function: leave it out if there is none`;
  if (typeof task.name !== 'string' || task.name === '') return `the task's name is ${show(task.name)}`;
  if (typeof task.characters !== 'string' || task.characters === '')
    return `characters is ${show(task.characters)}: list all that its texts use, such as '0123456789+='`;
  for (const list of ['pieces', 'stop', 'rewardParts', 'metricNames'] as const) {
    const found: unknown = task[list];
    if (!Array.isArray(found) || found.some(item => typeof item !== 'string' || item === ''))
      return `${list} is ${show(found)}, not a list of strings: use [] for none`;
    if (new Set(found).size !== found.length) return `${list} ${show(found)} names something twice`;
  }
  if (task.rewardParts!.length === 0)
    return "rewardParts is empty: name what the reward is the sum of, such as ['exact']";
  for (const count of ['maxPromptTokens', 'maxNewTokens'] as const) {
    const tokens = task[count];
    if (!Number.isInteger(tokens) || tokens! < 1 || tokens! > MAX_TOKENS)
      return `${count} is ${show(tokens)}, not a whole number in 1..${MAX_TOKENS}`;
  }
  return undefined;
}
