import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

function lint(source: string): { status: number | null; output: string } {
  const folder = mkdtempSync(join(tmpdir(), 'keel-lint-'));
  try {
    writeFileSync(join(folder, 'example.ts'), source);
    const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
    const args = [biome, 'lint', `--config-path=${root}`, '--vcs-enabled=false', folder];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    return { status, output: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Math.random is refused, and the message names the generator to use', () => {
  const { status, output } = lint('export const a = Math.random();\n');
  expect(status).not.toBe(0);
  expect(output).toContain('take an Rng from src/random');
});

test('passing it on without calling it is refused as well', () => {
  expect(lint('export const a = [1].map(Math.random);\n').status).not.toBe(0);
});

test('the rest of Math is fine', () => {
  expect(lint('export const a = Math.sqrt(2);\n').status).toBe(0);
});
