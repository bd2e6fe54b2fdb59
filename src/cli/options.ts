/** Options that several commands share, and the values of flags as people write them. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { WhichCheckpoint } from '../algos/algorithm.ts';
import { pythonOptions } from './python-flags.ts';

/** What the shared options say, under the names that commander gives them. */
export interface RunFlags {
  readonly runDir: string;
  readonly json?: boolean;
}

/** The same of commands that take a run's policy. */
export interface PolicyFlags extends RunFlags {
  readonly checkpoint?: WhichCheckpoint | undefined;
  readonly envFile?: string | undefined;
  readonly trust?: boolean | undefined;
}

/** A whole number of a flag: `100000`, `1e5`, `100_000`, `100k`, `2M`. */
export function wholeNumber(text: string): number {
  const match = /^(\d[\d_]*(?:\.\d+)?(?:e\d+)?)([kM]?)$/i.exec(text.trim());
  const value =
    match === null
      ? Number.NaN
      : Number(match[1].replaceAll('_', '')) * ({ k: 1e3, m: 1e6 }[match[2].toLowerCase()] ?? 1);
  if (!Number.isSafeInteger(value))
    throw new InvalidArgumentError(`${text} is not a whole number from 0: write 100000, 1e5 or 100k`);
  return value;
}

/** A number of a flag that is not negative: `0.8`, `12`, `1e-3`. */
export function positiveNumber(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY))
    throw new InvalidArgumentError(`${text} is not a number from 0: write 0.8 or 12`);
  return value;
}

/** Which checkpoint: `last`, `best` or a step. */
export function whichCheckpoint(text: string): WhichCheckpoint {
  if (text === 'last' || text === 'best') return text;
  if (/^\d+$/.test(text)) return Number(text);
  throw new InvalidArgumentError(`${text} names no checkpoint: write last, best or the number of a step`);
}

/** All values of an option that may be repeated. */
export const repeated = (value: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  value,
];

/** A setting as a flag, the same for every command that takes one. */
export const setOption = (): Option =>
  new Option('-s, --set <key=value>', 'a setting, its value as YAML; may be repeated').argParser(repeated);

/** Those that make up a config. */
export function settingOptions(command: Command): Command {
  return pythonOptions(command)
    .option(
      '-c, --config <file>',
      'settings from a YAML or JSON file, which may also name env and envOptions',
    )
    .addOption(setOption())
    .option('--no-preset', "without the environment's preset")
    .option('--steps <n>', 'how long: steps, of text completions; 100000, 1e5 or 100k', wholeNumber)
    .option('--seed <n>', 'where all randomness comes from', wholeNumber)
    .option('--envs <n>', 'environments side by side', wholeNumber)
    .option('--device <name>', 'cpu, webgpu or cuda');
}

/** A run as an argument, in one wording. */
export const runArgument = (name: string): Argument =>
  new Argument(name, 'its id, the beginning or the last four characters of it, its directory, or last');

/** The same where a run is read and not changed: what it learns in names one, too. */
export const policyArgument = (): Argument =>
  new Argument('<run>', 'a run (its id, directory or last), or an environment or text task: its newest run');

/** Whose policy to take, the same for all commands that take one. */
export function policyOptions(command: Command): Command {
  return command
    .option('--checkpoint <which>', 'best, last or a step (default: best, else last)', whichCheckpoint)
    .addOption(envFileOption())
    .addOption(trustOption())
    .addOption(runDirOption());
}

/** Where an environment is defined that a program registered, which a manifest knows by its id alone. */
export const envFileOption = (): Option =>
  // Not --env-file, which Node takes for its own wherever it stands.
  Object.assign(
    new Option('--defined-in <file>', 'the file that defines the environment, instead of what the run names'),
    { attributeName: () => 'envFile' },
  );

/** Consent to what a run's manifest names, where nobody can be asked. */
export const trustOption = (): Option =>
  new Option('--trust', 'run code that the run names, though it was not made here; remembered');

export const runDirOption = (): Option => new Option('--run-dir <root>', 'directory of runs').default('runs');
