/** What a run learns in: an environment or a text task, found once by whatever names it. */
import { resolve } from 'node:path';
import { codeFileOf, isEnvFile } from '../base/code-reference.ts';
import { ConfigError, codeOf } from '../base/errors.ts';
import { type EnvDefinition, exportedIn, type Imported } from '../envs/definition.ts';
import { resolveEnv } from '../envs/load.ts';
import type { OptionValues } from '../envs/options.ts';
import { registerEnv } from '../envs/registry.ts';
import { type NamedByUser, subjectReference } from '../runs/named-code.ts';
import type { Naming } from '../runs/trust.ts';
import { meansTask, resolveTask, taskNames } from '../tasks/registry.ts';
import type { TextTaskDefinition } from '../tasks/text-task.ts';
import { requireTrust, type Trust } from './trust.ts';

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
export type SubjectReference = string | Imported<EnvDefinition> | Imported<TextTaskDefinition>;

/**
 * Finds an environment or a task: by its id, alias or name, by its file, or as a definition. `file` is where a definition
 * that was made in code can be found again, by another program.
 */
export async function resolveSubject(
  named: SubjectReference,
  options: object = {},
  file?: string,
): Promise<Subject> {
  const given = options as OptionValues;
  const what = exportedIn(named) as string | EnvDefinition | TextTaskDefinition;
  if (typeof what === 'string') {
    const reference = file === undefined ? what : await inFile(file, what);
    if (await meansTask(reference)) return taskSubject(await resolveTask(reference), reference, given);
    return envSubject(await resolveEnv(reference, taskNames()), reference, given);
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
  const { file: path, id: named } = codeFileOf(file);
  if (await meansTask(path)) return path;
  const id = named ?? (isEnvFile(what) ? codeFileOf(what).id : what);
  return id === undefined ? path : `${path}#${id}`;
}

/** What its user names instead of what a manifest does, and whether code that it names may run. */
export interface OpeningRun extends NamedByUser {
  readonly trust?: Trust | undefined;
}

/** What a run was trained in, from its manifest; options that are given go before those that it was trained with. */
export async function subjectOf(
  run: Naming,
  { envFile, options = {}, trust }: OpeningRun = {},
): Promise<Subject> {
  const { environment } = run.manifest;
  // Before anything that the manifest names is loaded or started.
  await requireTrust(run, { envFile, options }, trust);
  try {
    const { value: reference } = subjectReference(run.manifest);
    return await resolveSubject(reference, { ...environment.options, ...options }, envFile);
  } catch (error) {
    if (envFile !== undefined || codeOf(error) !== 'env-unknown') throw error;
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
