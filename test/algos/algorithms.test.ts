/** Every algorithm's folder is known to the life of a run, and its table of settings to whoever reads tables. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { Algorithm } from '../../src/algos/algorithm.ts';
import { algorithmFor, algorithmOf } from '../../src/algos/algorithms.ts';
import { settingTables, tableFor } from '../../src/algos/settings.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folders = readdirSync(join(root, 'src/algos'), { recursive: true, encoding: 'utf8' })
  .filter(name => /[/\\]algorithm\.ts$/.test(name))
  .map(name => dirname(name).replaceAll('\\', '/'));

test('there are some, and no table without one', () => {
  expect(folders.length).toBeGreaterThanOrEqual(4);
  expect(settingTables.length).toBe(folders.length);
});

test.each(folders)('%s: registered, its table listed, its files called as in the others', async folder => {
  const module: Record<string, unknown> = await import(
    /* @vite-ignore */ pathToFileURL(join(root, 'src/algos', folder, 'algorithm.ts')).href
  );
  const own = Object.values(module).filter(
    (value): value is Algorithm => typeof value === 'object' && value !== null && 'learnsIn' in value,
  );
  expect(own).toHaveLength(1);
  const [algorithm] = own;
  expect(algorithmOf({ id: 'x', algorithm: algorithm.name })).toBe(algorithm);
  expect(settingTables).toContain(algorithm.settings);
  for (const name of ['iteration', 'learner', 'graphs', 'control', 'row', 'settings', 'checkpoint'])
    expect(existsSync(join(root, 'src/algos', folder, `${name}.ts`)), name).toBe(true);
  // Doctor and server may read it: the import check names each.
  expect(readFileSync(join(root, '.dependency-cruiser.mjs'), 'utf8')).toContain(
    `'src/algos/${folder}/settings.ts'`,
  );
});

test('what a verb means has the table that the command line takes for it', () => {
  for (const verb of ['train', 'clone'] as const)
    for (const kind of ['env', 'task'] as const)
      expect(algorithmFor(verb, { kind }).settings).toBe(tableFor(verb, kind));
});
