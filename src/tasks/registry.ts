/** Text tasks by name, and from a user's file. */
import { codeFileOf, isEnvFile, isPythonFile } from '../base/code-reference.ts';
import { didYouMean, plainName } from '../base/nearest.ts';
import { show } from '../envs/errors.ts';
import { importDefault } from '../envs/load.ts';
import type { OptionSchemas } from '../envs/options.ts';
import { registeringFrom } from '../envs/registry.ts';
import { arithmeticDefinition } from './arithmetic.ts';
import { chessDefinition } from './chess/chess.ts';
import { createTask, definitionProblem } from './definition.ts';
import { fail } from './errors.ts';
import { formatDefinition } from './format.ts';
import type { TaskContext, TextTask, TextTaskDefinition } from './text-task.ts';

/** What lists show of a task. */
export interface TaskInfo {
  readonly name: string;
  readonly summary: string;
  readonly options: OptionSchemas;
}

const builtIn = new Map(
  (
    [
      // It has measurements of its own: legal moves, mates in one, repetition.
      {
        ...chessDefinition,
        evaluate: async (...given: Parameters<NonNullable<TextTaskDefinition['evaluate']>>) =>
          (await import('./chess/evaluate.ts')).evaluateChess(...given),
        heldOut: async (...given: Parameters<NonNullable<TextTaskDefinition['heldOut']>>) =>
          (await import('./chess/evaluate.ts')).heldOutChess(...given),
      },
      arithmeticDefinition,
      formatDefinition,
    ] as unknown as TextTaskDefinition[]
  ).map(definition => [definition.name, definition]),
);

/** Keel's own tasks. */
export function listTasks(): TaskInfo[] {
  return [...builtIn.values()].map(({ name, summary, options }) => ({
    name,
    summary,
    options: options ?? {},
  }));
}

/** The names of Keel's own tasks: what may have been meant where no environment has a name. */
export const taskNames = (): string[] => [...builtIn.keys()];

/** Whether there is a task of that name; case, `-` and `_` do not matter. */
export const isTaskName = (name: string): boolean => named(name) !== undefined;

/** Whether a command line means a task by this: its name, or a file whose default export is one (and no environment). */
export async function meansTask(reference: string): Promise<boolean> {
  if (!isEnvFile(reference)) return isTaskName(reference);
  if (isPythonFile(pathOf(reference))) return false;
  return definitionProblem(await exportedBy(pathOf(reference))) === undefined;
}

/** The task of that name. */
export function findTask(name: string): TextTaskDefinition {
  const found = typeof name === 'string' ? named(name) : undefined;
  if (found) return found;
  const names = [...builtIn.keys()];
  const guess = (typeof name === 'string' && didYouMean(name, names, 3)) || `there are ${names.join(', ')}`;
  return fail('task-unknown', `task ${show(name)} is unknown: ${guess} (a file is written ./my-task.ts)`);
}

/** The task that a command line means: a name, or a file whose default export is a definition. */
export async function resolveTask(reference: string): Promise<TextTaskDefinition> {
  return isEnvFile(reference) ? loadTaskFile(reference) : findTask(reference);
}

/** Makes a task by its name or file: `makeTask('arithmetic', { digits: 2 })`. */
export async function makeTask(
  reference: string,
  options: object = {},
  context?: TaskContext,
): Promise<TextTask> {
  return createTask(await resolveTask(reference), options, context);
}

/** The definition that a user's file exports as its default: `export default defineTask({ … })`. */
export async function loadTaskFile(reference: string): Promise<TextTaskDefinition> {
  const file = pathOf(reference);
  const exported = await exportedBy(file);
  const problem =
    exported === undefined
      ? 'add export default defineTask({ name, summary, make })'
      : definitionProblem(exported);
  if (problem) fail('file-invalid', `${file}: the default export is no task: ${problem}`);
  const definition = exported as TextTaskDefinition;
  if (isTaskName(definition.name))
    fail(
      'task-duplicate',
      `${file}: the name ${definition.name} is taken by a task of Keel's: choose another`,
    );
  return definition;
}

const imported = new Map<string, Promise<unknown>>();

/** A file's default export, imported once. What it registers meanwhile, if it holds environments, is known as its own. */
function exportedBy(file: string): Promise<unknown> {
  let exported = imported.get(file);
  if (exported === undefined) {
    let found: unknown;
    exported = registeringFrom(file, async () => {
      found = await importDefault(file);
    }).then(() => found);
    imported.set(file, exported);
  }
  return exported;
}

const pathOf = (reference: string): string => codeFileOf(reference).file;

function named(name: string): TextTaskDefinition | undefined {
  return [...builtIn.values()].find(definition => plainName(definition.name) === plainName(name));
}
