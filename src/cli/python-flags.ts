/** The flags of an environment in Python, as options of the environment. */

import { type Command, Option } from 'commander';
import { codeFileOf, isEnvFile, isGymReference, isPythonFile } from '../base/code-reference.ts';
import { jsonOf } from '../base/json.ts';
import type { OptionValues } from '../envs/options.ts';
import { pythonNamed } from '../envs/python/definition.ts';
import { UsageError } from './errors.ts';

/** What they say. */
export interface PythonFlags {
  readonly python?: string;
  readonly envArgs?: string;
}

/** The same for every command that makes an environment by its name. */
export function pythonOptions(command: Command): Command {
  return command
    .addOption(new Option('--python <program>', 'the Python of gym:… and .py environments'))
    .addOption(new Option('--env-args <json>', `what the environment is made with: '{"size": 8}'`));
}

/** Whether it is made by a Python process. */
const isPython = (reference: string): boolean =>
  isGymReference(reference) || (isEnvFile(reference) && isPythonFile(codeFileOf(reference).file));

/** Options that the flags stand for: a Python environment's `python` and `args`, of others the options themselves. */
export function environmentFlags(
  reference: string | undefined,
  { python, envArgs }: PythonFlags,
): OptionValues {
  if (python === undefined && envArgs === undefined) return {};
  const inPython = reference !== undefined && isPython(reference);
  if (python !== undefined && !inPython)
    throw new UsageError(
      `--python is for environments in Python, such as gym:Hopper-v5 or ./my_env.py:MyEnv: leave it out`,
    );
  const args = envArgs === undefined ? undefined : argumentsIn(envArgs);
  if (!inPython) return { ...args } as OptionValues;
  return {
    ...(python !== undefined && { python: pythonNamed(python) }),
    ...(args !== undefined && { args: JSON.stringify(args) }),
  };
}

function argumentsIn(text: string): object {
  let value: unknown;
  try {
    value = jsonOf(text);
  } catch (error) {
    throw new UsageError(`--env-args ${text}: ${(error as Error).message}: write '{"size": 8}'`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`--env-args ${text} is no JSON object: write '{"size": 8}'`);
  return value;
}
