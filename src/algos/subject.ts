/** What a run learns in: an environment or a text task, found once by whatever names it. */
import { resolve } from 'node:path';
import { isEnvFile } from '../base/code-reference.ts';
import { ConfigError, codeOf } from '../base/errors.ts';
import type { EnvDefinition } from '../envs/definition.ts';
import { resolveEnv } from '../envs/load.ts';
import type { OptionValues } from '../envs/options.ts';
import { registerEnv } from '../envs/registry.ts';
import type { Manifest } from '../runs/schema.ts';
import { meansTask, resolveTask } from '../tasks/registry.ts';
import type { TextTaskDefinition } from '../tasks/text-task.ts';

/** An environment or a text task, with the options that it is made with. */
export type Subject = {
  /** As its user named it, a file by its absolute path: what a manifest keeps, and a run is resumed by. */
  readonly reference: string;
  readonly id: string;
  readonly options: OptionValues;
} & (
  | { readonly kind: 'env'; readonly definition: EnvDefinition }
  | { readonly kind: 'task'; readonly definition: TextTaskDefinition }
);

/** What people may pass for one. */
export type SubjectReference = string | EnvDefinition | TextTaskDefinition;

/**
 * Finds an environment or a task: by its id, alias or name, by its file, or as a definition. `file` is where a definition
 * that was made in code can be found again, by another program.
 */
export async function resolveSubject(
  what: SubjectReference,
  options: object = {},
  file?: string,
): Promise<Subject> {
  const given = options as OptionValues;
  if (typeof what === 'string') {
    const reference = file === undefined ? what : await inFile(file, what);
    if (await meansTask(reference)) return taskSubject(await resolveTask(reference), reference, given);
    return envSubject(await resolveEnv(reference), reference, given);
  }
  if (typeof what !== 'object' || what === null || typeof what.make !== 'function')
    throw new ConfigError(
      `training needs an environment or a task, not ${JSON.stringify(what)}: train({ env: 'cartpole' }), a file such as './my-env.ts', or what defineEnv gives`,
    );
  if ('summary' in what) return taskSubject(what, file === undefined ? what.name : resolve(file), given);
  const env = registerEnv(what);
  await env.definition.prepare?.();
  return envSubject(env, file === undefined ? env.id : `${resolve(file)}#${env.id}`, given);
}

/** What is meant, by this file: its own task, or the environment of that id, which another file may have had before. */
async function inFile(file: string, what: string): Promise<string> {
  const path = resolve(file);
  if (await meansTask(path)) return path;
  const id = isEnvFile(what) ? /#([^#/\\]*)$/.exec(what)?.[1] : what;
  return id === undefined ? path : `${path}#${id}`;
}

/** What a run was trained in, from its manifest; `others` go before the options that it was trained with. */
export async function subjectOf(
  { config, environment }: Pick<Manifest, 'config' | 'environment'>,
  file?: string,
  others: object = {},
): Promise<Subject> {
  const { env, task } = config as { readonly env?: unknown; readonly task?: unknown };
  const reference = [env, task, environment.id].find(name => typeof name === 'string') as string;
  try {
    return await resolveSubject(reference, { ...environment.options, ...others }, file);
  } catch (error) {
    if (file !== undefined || codeOf(error) !== 'env-unknown') throw error;
    throw new ConfigError(
      `${environment.id} is not known here, a program has registered it: name the file that defines it (--defined-in ./my-env.ts)`,
      { cause: error },
    );
  }
}

function envSubject(
  { id, definition }: { readonly id: string; readonly definition: EnvDefinition },
  reference: string,
  options: OptionValues,
): Subject {
  return { kind: 'env', reference, id, definition, options };
}

function taskSubject(definition: TextTaskDefinition, reference: string, options: OptionValues): Subject {
  return { kind: 'task', reference, id: definition.name, definition, options };
}
