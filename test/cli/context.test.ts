/** How commands speak where somebody sees it. */
import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { act, type Context } from '../../src/cli/context.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** What is written to stdout and stderr of a terminal of 80 columns. */
async function written(say: (context: Context) => void): Promise<string> {
  let text = '';
  vi.stubEnv('TERM', 'xterm');
  vi.stubEnv('NO_COLOR', '');
  const before = (['stdout', 'stderr'] as const).map(name => {
    vi.spyOn(process[name], 'write').mockImplementation(chunk => {
      text += chunk;
      return true;
    });
    return [name, process[name].isTTY, process[name].columns] as const;
  });
  try {
    for (const [name] of before) Object.assign(process[name], { isTTY: true, columns: 80 });
    const command = new Command('try');
    act(command, say);
    await command.parseAsync([], { from: 'user' });
  } finally {
    for (const [name, isTTY, columns] of before) Object.assign(process[name], { isTTY, columns });
  }
  return text;
}

test('a note takes the place of the line that is drawn again and again', async () => {
  expect(await written(({ note }) => note('a \u001b[2Jnote'))).toBe('\r\u001b[Ka note\n');
});

test('a painted text that is broken into lines keeps its colour', async () => {
  const long = 'word '.repeat(30).trim();
  const text = await written(({ print, paint }) => print(`${paint(long, 'red')} \u001b[2Jend`));
  expect(text.split('\n').length).toBeGreaterThan(2);
  expect(text.replaceAll(/\n */g, ' ').trim()).toBe(`\u001b[31m${long}\u001b[39m end`);
});
