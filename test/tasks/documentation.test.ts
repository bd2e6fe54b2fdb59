/** What docs/text-tasks.md and docs/chess.md say is so. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chessDefinition, makeTask } from '../../src/tasks/index.ts';

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

it('the task in the documentation is the example', () => {
  const [, code] = /```ts\n([\s\S]*?)```/.exec(read('docs/text-tasks.md'))!;
  const example = read('examples/own-task.ts').replace(/^\/\*\*[\s\S]*?\*\/\n/, '');
  expect(code).toBe(example);
  expect(example.trim().split('\n').length).toBeLessThanOrEqual(40);
});

it('the weights of chess are those of its tables', () => {
  const rows = [...read('docs/chess.md').matchAll(/^\| (`[^|]*) \| ([-\d., ]+) \|/gm)];
  expect(rows).toHaveLength(14);
  const options = chessDefinition.options as unknown as Record<string, { readonly default: unknown }>;
  for (const [, names, values] of rows) {
    const defaults = names.split(', ').map(name => options[name.replaceAll('`', '')].default);
    expect(defaults, names).toEqual(values.split(',').map(Number));
  }
});

it('the number of tokens is right', async () => {
  const task = await makeTask('chess');
  expect(new Set([...task.characters, ...task.pieces]).size).toBe(122);
  expect(task.maxPromptTokens + task.maxNewTokens).toBe(234);
  const policy = await makeTask('chess', { environmentShare: 0 });
  expect([policy.maxPromptTokens, policy.maxNewTokens]).toEqual([90, 48]);
});
