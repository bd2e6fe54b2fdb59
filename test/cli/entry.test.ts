/** What `keel` starts: the build or the sources, whichever is there and tells the truth. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { root, scratch } from './support/keel.ts';

const dir = join(scratch(), 'keel');
const at = (path: string, second: number): void => utimesSync(join(dir, path), second, second);

/** A package in which the build and the sources say who they are, and sources are as old as `second`. */
function write(what: 'dist' | 'src', second: number): void {
  const ending = what === 'dist' ? 'js' : 'ts';
  mkdirSync(join(dir, what, 'cli'), { recursive: true });
  writeFileSync(
    join(dir, what, `cli/main.${ending}`),
    `const said${what === 'src' ? ': string' : ''} = '${what}';\nconsole.log(said, process.argv.slice(2).join(' '));\n`,
  );
  for (const path of [`cli/main.${ending}`, 'cli', '']) at(join(what, path), second);
}

function keel(...args: string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, [join(dir, 'bin/keel.js'), ...args], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return stdout.trim();
}

beforeEach(() => {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, 'bin'), { recursive: true });
  cpSync(join(root, 'bin/keel.js'), join(dir, 'bin/keel.js'));
  writeFileSync(join(dir, 'package.json'), '{ "name": "keel", "version": "1.2.3", "type": "module" }');
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
});

test('--version needs neither', () => {
  expect(keel('--version')).toBe('1.2.3');
  expect(keel('-V')).toBe('1.2.3');
});

test('an installed package runs its build', () => {
  write('dist', 100);
  expect(keel('train', '--version')).toBe('dist train --version');
});

test('a checkout runs its sources, or a build of them', () => {
  write('src', 100);
  expect(keel('eval', 'last')).toBe('src eval last');
  write('dist', 200);
  expect(keel('eval', 'last')).toBe('dist eval last');
});

test('a build that is older than any source, or than what was removed, is passed by', () => {
  write('dist', 200);
  write('src', 100);
  writeFileSync(join(dir, 'src/cli/other.ts'), '');
  at('src/cli', 100);
  expect(keel()).toBe('src'); // it was written just now
  at('src/cli/other.ts', 100);
  expect(keel()).toBe('dist');
  at('src/cli', 300); // as when a file in it was deleted
  expect(keel()).toBe('src');
});
