/** The list of mutants cannot rot: each still applies, in one place, and names tests that are there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import { expect, it } from 'vitest';
import { mutants } from '../bench/mutants/list.ts';
import { groupOf, mutated } from '../bench/mutants/mutant.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const text = new Map<string, string>();
const textOf = (file: string): string => {
  const known = text.get(file) ?? readFileSync(join(root, file), 'utf8');
  text.set(file, known);
  return known;
};

it('stands exactly once in its file, changes it, and leaves TypeScript', async () => {
  const problems: string[] = [];
  for (const mutant of mutants) {
    try {
      const wrong = mutated(mutant, textOf(mutant.file));
      if (wrong === textOf(mutant.file)) problems.push(`${mutant.file}: '${mutant.from}' changes nothing`);
      // One that no longer parses is killed by every test, and says nothing of them.
      await transformWithOxc(wrong, mutant.file, { sourcemap: false });
    } catch (error) {
      problems.push(`${mutant.file}: ${(error as Error).message}`);
    }
  }
  expect(problems).toEqual([]);
});

it('names tests that are there', () => {
  const names = new Set(mutants.flatMap(({ tests }) => tests));
  expect([...names].filter(name => !existsSync(join(root, name)))).toEqual([]);
});

it('is one of at least 200, over all folders, none twice', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(200);
  expect(new Set(mutants.map(({ file, from, to }) => JSON.stringify([file, from, to]))).size).toBe(
    mutants.length,
  );
  const folders = new Set(mutants.map(groupOf));
  for (const folder of ['base', 'random', 'engine', 'nn', 'kl', 'tasks', 'lm', 'rollout', 'settings'])
    expect(folders).toContain(`src/${folder}`);
  for (const folder of ['metrics', 'runs', 'server', 'cli', 'view'])
    expect(folders).toContain(`src/${folder}`);
  for (const folder of [
    'src/algos/ppo',
    'src/algos/grpo',
    'src/envs/classic',
    'src/doctor/readers',
    'web/lib',
  ])
    expect(folders).toContain(folder);
});
