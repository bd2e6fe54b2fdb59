import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

function runExample(name: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', `examples/${name}`, ...args],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout;
}

test('no example is longer than 60 lines', () => {
  for (const name of readdirSync(join(root, 'examples'))) {
    const lines = readFileSync(join(root, 'examples', name), 'utf8').split('\n').length - 1;
    expect(lines, name).toBeLessThanOrEqual(60);
  }
});

test('fit-a-line finds the line', () => {
  expect(runExample('fit-a-line.ts')).toContain('y = 2.000 x + 1.000');
});

test.each(['train-cartpole.ts', 'train-own-environment.ts'])('%s trains and says where the run is', name => {
  const runs = mkdtempSync(join(tmpdir(), 'keel-example-'));
  try {
    const out = runExample(name, '4096', runs);
    expect(out).toMatch(/return [\d.]+/);
    const [run] = readdirSync(runs);
    expect(out).toContain(run);
    expect(readdirSync(join(runs, run))).toContain('metrics.jsonl');
  } finally {
    rmSync(runs, { recursive: true });
  }
});
