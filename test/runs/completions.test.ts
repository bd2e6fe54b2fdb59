import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { CompletionLog, type GroupRecord } from '../../src/runs/completions.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-completions-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('completions.jsonl is bounded, and drops what a kill cut off', () => {
  const log = new CompletionLog(dir, 0);
  const record = (iteration: number): GroupRecord => ({
    iteration,
    step: iteration,
    prompt: 'p',
    completions: [],
  });
  for (let i = 1; i <= 1100; i++) log.add([record(i)]);
  const path = join(dir, 'completions.jsonl');
  const lines = () => readFileSync(path, 'utf8').trim().split('\n');
  expect(lines().length).toBeLessThan(1000);
  expect(JSON.parse(lines().at(-1)!).iteration).toBe(1100);
  writeFileSync(path, `${lines().join('\n')}\n{"iteration": 11`);
  const again = new CompletionLog(dir, 1098);
  expect(JSON.parse(lines().at(-1)!).iteration).toBe(1098);
  again.add([record(1099)]);
  expect(JSON.parse(lines().at(-1)!).iteration).toBe(1099);
});
