/** The tests of the Python side, by its own unittest, on the system's Python. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { python } from './envs/python/support/files.ts';

it('python/keel passes python3 -m unittest', () => {
  const { status, stderr } = spawnSync(
    python || 'python3',
    ['-W', 'error', '-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'],
    { cwd: fileURLToPath(new URL('../python', import.meta.url)), encoding: 'utf8' },
  );
  expect(status, stderr).toBe(0);
  expect(Number(/^Ran (\d+) tests?/m.exec(stderr)?.[1])).toBeGreaterThan(20);
});
