import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readWorkers, workersPath, writeWorkers } from '../../src/studies/workers.ts';
import type { WorkersView } from '../../src/studies/workers-view.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-workers-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const view: WorkersView = {
  workers: [{ name: 'w1', host: 'box', version: '0.0.0', doing: ['run-1'], since: 1_700_000_000_000 }],
  queue: { waiting: 3, active: 1, delayed: 0, failed: 2 },
  failures: [{ run: 'run-0', why: 'its process was killed (SIGKILL)', at: 1_700_000_000_500 }],
};

test('what is written is what is read, with when it was', () => {
  expect(readWorkers(dir)).toBeUndefined();
  writeWorkers(dir, view);
  const { at, ...read } = readWorkers(dir)!;
  expect(read).toEqual(view);
  expect(Math.abs(at - Date.now())).toBeLessThan(60_000);
});

test('what would be too much is cut when it is written, so that it can always be read', () => {
  const long = 'x'.repeat(5000);
  writeWorkers(dir, {
    ...view,
    workers: Array.from({ length: 1200 }, () => ({
      ...view.workers[0],
      name: long,
      doing: Array(80).fill(long),
    })),
    failures: Array.from({ length: 300 }, (_, at) => ({ run: 'r', why: long, at })),
  });
  const read = readWorkers(dir)!;
  expect([read.workers.length, read.failures.length]).toEqual([500, 100]);
  expect([read.workers[499].name.length, read.workers[499].doing.length]).toEqual([400, 64]);
  expect(read.failures.at(-1)!.at).toBe(99);
});

test('a file that is not one of these is none', () => {
  for (const text of [
    '',
    '{"workers":',
    '[]',
    JSON.stringify({ ...view, queue: { ...view.queue, waiting: -1 } }),
    JSON.stringify({ ...view, workers: [{ ...view.workers[0], since: 'yesterday' }] }),
    JSON.stringify({ ...view, failures: Array(101).fill(view.failures[0]) }),
    `${'['.repeat(100_000)}`,
  ]) {
    writeFileSync(workersPath(dir), text);
    expect(readWorkers(dir), text.slice(0, 60)).toBeUndefined();
  }
});
