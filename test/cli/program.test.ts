/** Every command is said once in the program's table, and loaded only when it is asked for. */
import { type Command, Help } from 'commander';
import { describe, expect, test } from 'vitest';
import { entries, makeProgram } from '../../src/cli/program.ts';

describe.each(entries)('$name', ({ name, takes, does }) => {
  test('takes what the help of all commands says', async () => {
    const program = await makeProgram([name]);
    const command = program.commands.find(other => other.name() === name)!;
    expect(new Help().subcommandTerm(command)).toBe(`${name} ${takes}`.trim());
    expect(command.description()).toBe(does);
  });

  test('is found behind the options of the program and behind help', async () => {
    for (const args of [
      ['--no-color', name],
      ['help', name],
      [name, '--help'],
    ]) {
      const program = await makeProgram(args);
      const full = program.commands.filter(isLoaded).map(command => command.name());
      expect(full).toEqual([name]);
    }
  });
});

/** One that is only named has no more than an argument and an option; a loaded one has help of its own or an action. */
function isLoaded(command: Command): boolean {
  let text = '';
  command.configureOutput({ writeOut: part => (text += part) }).outputHelp();
  return text.includes('Examples:');
}

test('the help of all commands loads none', async () => {
  for (const args of [[], ['--help'], ['--version'], ['no-such-command']]) {
    expect((await makeProgram(args)).commands.filter(isLoaded)).toEqual([]);
  }
});
