/** Whole runs of cloning a language model. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { clone, resume } from '../../../src/algos/runs.ts';
import { echoFile, sameEnd } from '../grpo/support.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-clone-text-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const task = join(root, 'echo.ts');
writeFileSync(task, echoFile(fileURLToPath(new URL('../../../src/tasks/index.ts', import.meta.url))));

test('cloning goes on to the same bits', async () => {
  const config = {
    ...{ layers: 1, width: 16, heads: 2, threads: 1 },
    steps: 96,
    batchSize: 8,
    batchesPerIteration: 3,
    checkpointEvery: 1,
    tensorboard: false,
    csv: false,
  };
  const whole = await clone({ task, config, root });
  // A letter and the end, after the end and a letter.
  expect(whole.lastRow).toMatchObject({ 'completion/length': 2, 'completion/prompt_length': 2 });
  const controller = new AbortController();
  const stopped = await clone({
    task,
    config,
    root,
    signal: controller.signal,
    onRow: () => controller.abort(),
  });
  expect(stopped.step).toBe(24);
  await resume(stopped.dir);
  sameEnd(whole.dir, stopped.dir, 96);
});
