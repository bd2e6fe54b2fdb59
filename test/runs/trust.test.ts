/** What is remembered of trusted runs is bounded. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { trustCode } from '../../src/runs/trust.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-trust-'));
const before = process.env.KEEL_CONFIG_DIR;
process.env.KEEL_CONFIG_DIR = join(root, 'settings');
afterAll(() => {
  if (before === undefined) delete process.env.KEEL_CONFIG_DIR;
  else process.env.KEEL_CONFIG_DIR = before;
  rmSync(root, { recursive: true, force: true });
});

const trusted = join(root, 'settings', 'trusted-runs');
const entries = (): { name: string; run: string }[] =>
  readdirSync(trusted).map(name => ({ name, ...JSON.parse(readFileSync(join(trusted, name), 'utf8')) }));
const names = (): string[] =>
  entries()
    .map(({ run }) => run.slice(root.length + 1))
    .sort();

test('beyond the most, runs that are gone are forgotten first, then the oldest', () => {
  const add = (name: string, seconds: number): void => {
    const dir = join(root, name);
    mkdirSync(dir);
    trustCode(dir, [{ field: 'config.env', value: '/env.ts', path: '/env.ts', sha256: 'a' }], 10);
    for (const { name: file, run } of entries())
      if (run.endsWith(`/${name}`)) utimesSync(join(trusted, file), seconds, seconds);
  };
  for (let i = 0; i < 10; i++) add(`run-${i}`, 1000 + i);
  expect(names()).toHaveLength(10);
  rmSync(join(root, 'run-7'), { recursive: true });
  add('run-a', 2000);
  // A tenth at a time: nine are left.
  expect(names()).toEqual([1, 2, 3, 4, 5, 6, 8, 9, 'a'].map(i => `run-${i}`));
});
