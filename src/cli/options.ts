/** Options that several commands share. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { positiveNumber, whichCheckpoint, wholeNumber } from './values.ts';

/** Lets commander say which option the value belongs to. */
function parsed<T>(parse: (text: string) => T): (text: string) => T {
  return text => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message);
    }
  };
}

export const countOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(parsed(wholeNumber));

export const numberOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(parsed(positiveNumber));

export const checkpointOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(parsed(whichCheckpoint));

export const setOption = (): Option =>
  new Option('-s, --set <key=value>', 'a setting, its value as YAML; may be repeated').argParser(
    (pair: string, before: string[] | undefined) => [...(before ?? []), pair],
  );

/** Those that make up a config. */
export function settingOptions(command: Command): Command {
  return command
    .option(
      '-c, --config <file>',
      'settings from a YAML or JSON file, which may also name env and envOptions',
    )
    .addOption(setOption())
    .option('--no-preset', "without the environment's preset")
    .addOption(countOption('--steps <n>', 'environment steps of the run: 100000, 1e5 or 100k'))
    .addOption(countOption('--seed <n>', 'where all randomness comes from'))
    .addOption(countOption('--envs <n>', 'environments side by side'))
    .option('--device <name>', 'cpu, webgpu or cuda');
}

/** A run as an argument, in one wording. */
export const runArgument = (name: string): Argument =>
  new Argument(name, 'its id, the beginning or the last four characters of it, its directory, or last');

/** Whose policy to take, the same for all commands that take one. */
export const policyCheckpointOption = (): Option =>
  checkpointOption('--checkpoint <which>', 'best, last or a step (default: best, else last)');

/** Where an environment is defined that a program registered, which a manifest knows by its id alone. */
export const envFileOption = (): Option =>
  new Option('--env-file <file>', 'the file that defines the environment, if a program registered it');

export const runDirOption = (): Option => new Option('--run-dir <root>', 'directory of runs').default('runs');
