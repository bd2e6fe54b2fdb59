/** Examples in a command's help, as they can be typed here. */
import type { Command } from 'commander';
import { columnsOf } from '../base/terminal.ts';
import { programName } from '../base/typed.ts';

/** What follows the program's name, for a shell as it is, and what it is good for. */
export type Examples = readonly (readonly [command: string, remark?: string])[];

const columns = 80;

/** What is said where an argument is missing: commander's own sentence, with what to type instead. */
export function sayWhatToType(command: Command, examples: Examples): void {
  const example = examples[0]?.[0];
  const instead = example === undefined ? '' : `, as in ${programName()} ${example}`;
  Object.assign(command, {
    missingArgument: (name: string) =>
      command.error(`error: missing required argument '${name}'${instead}`, {
        code: 'commander.missingArgument',
      }),
  });
}

/** The paragraph of the help. A remark that has no room beside its command is below it. */
export function examplesText(examples: Examples): string {
  const program = programName();
  const lines = examples.map(([command, remark]) => [`  $ ${program} ${command}`, remark] as const);
  const widest = Math.max(...lines.map(([line, remark]) => (remark === undefined ? 0 : columnsOf(line))));
  const text = lines.map(([line, remark]) => {
    if (remark === undefined) return line;
    const beside = `${line.padEnd(widest)}   ${remark}`;
    return columnsOf(beside) <= columns ? beside : `${line}\n      ${remark}`;
  });
  return `Examples:\n${text.join('\n')}`;
}
