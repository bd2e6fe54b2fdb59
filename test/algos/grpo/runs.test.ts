/** Whole runs: to the same bits after a stop and after a kill, models that others can load, and what goes wrong. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { clone, resume, train } from '../../../src/algos/runs.ts';
import { evaluateText } from '../../../src/algos/text/evaluate.ts';
import { loadModel } from '../../../src/lm/index.ts';
import type { GroupRecord } from '../../../src/runs/completions.ts';
import { checkpointDir, openRun, readEvents, readTrajectory } from '../../../src/runs/index.ts';
import { createTask, resolveTask } from '../../../src/tasks/index.ts';
import { echoFile, sameEnd, tiny } from './support.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-grpo-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const task = join(root, 'echo.ts');
writeFileSync(task, echoFile(fileURLToPath(new URL('../../../src/tasks/index.ts', import.meta.url))));

const settings = {
  ...tiny,
  steps: 32 * 5,
  checkpointEvery: 2,
  learningRate: 3e-3,
  reference: 'averaged',
  klRefCoefRule: 'adaptive',
  minibatchSize: 16,
  tensorboard: false,
  csv: false,
} as const;

test('a run that was stopped, and one that was killed, go on to the same bits; completions too', async () => {
  const whole = await train({ task, config: settings, root });
  expect(whole.status).toBe('finished');
  expect(openRun(whole.dir).manifest).toMatchObject({ algorithm: 'grpo', environment: { id: 'echo' } });

  const controller = new AbortController();
  let rows = 0;
  const stopped = await train({
    task,
    config: settings,
    root,
    signal: controller.signal,
    onRow: () => {
      if (++rows === 3) controller.abort();
    },
  });
  expect(stopped).toMatchObject({ status: 'stopped', step: 96 });
  // What a kill leaves: the row and the completions of an iteration that no checkpoint has.
  const killed = join(root, 'killed');
  cpSync(stopped.dir, killed, { recursive: true });
  rmSync(checkpointDir(killed, 96), { recursive: true });
  for (const dir of [stopped.dir, killed]) {
    // A copy is not the run that was made here.
    expect((await resume(dir, { trust: dir === killed })).status).toBe('finished');
    sameEnd(whole.dir, dir, 160);
    const [a, b] = [whole.dir, dir].map(d => readFileSync(join(d, 'completions.jsonl'), 'utf8'));
    expect(a).toBe(b);
  }
  const groups = readFileSync(join(whole.dir, 'completions.jsonl'), 'utf8').trim().split('\n');
  expect(groups).toHaveLength(10);
  const group = JSON.parse(groups[9]) as GroupRecord;
  expect(group).toMatchObject({ iteration: 5, step: 160, klRefEstimator: 'exact' });
  expect(group.completions).toHaveLength(8);
  for (const { tokens, logProbs, klRef, parts, reward } of group.completions) {
    expect(logProbs).toHaveLength(tokens.length);
    expect(klRef).toHaveLength(tokens.length);
    expect(reward).toBe(parts.right);
  }
});

test('a run whose task can grade nothing fails with what grade threw, however few its iterations', async () => {
  const path = join(root, 'throws.ts');
  writeFileSync(
    path,
    readFileSync(task, 'utf8').replace('clearGrade(out);', "throw new Error('no judge at port 8080');"),
  );
  const problem =
    'no completion of the first iteration could be graded: grade of echo threw: no judge at port 8080; correct the task';
  const config = { ...settings, steps: 32 * 2 };
  await expect(train({ task: path, config, root, id: 'throws' })).rejects.toThrow(problem);
  const { manifest } = openRun(join(root, 'throws'));
  expect(manifest).toMatchObject({ status: 'failed', reason: problem });
});

test('a run made before the denominator was a setting goes on to the bits of one that was never stopped', async () => {
  const config = {
    ...settings,
    aggregation: 'sequence',
    truncated: 'mask',
    klRefEstimator: 'exact-or-k3',
    maxNewTokens: 2,
    learningRate: 0.01,
  } as const;
  const endOf = async (denominator: 'all' | 'counted', stopAfter: number) => {
    const controller = new AbortController();
    let rows = 0;
    const onRow = () => {
      if (++rows === stopAfter) controller.abort();
    };
    return train({ task, config: { ...config, denominator }, root, signal: controller.signal, onRow });
  };
  const whole = await endOf('counted', 6);
  const stopped = await endOf('counted', 2);
  // As that version wrote it.
  const path = join(stopped.dir, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const { denominator: _, ...before } = manifest.config;
  writeFileSync(path, JSON.stringify({ ...manifest, config: { ...before, klRefEstimator: 'auto' } }));
  expect((await resume(stopped.dir)).status).toBe('finished');
  sameEnd(whole.dir, stopped.dir, 160);
  const other = await endOf('all', 6);
  expect(readTrajectory(other.dir).rows).not.toEqual(readTrajectory(whole.dir).rows);
});

test('a checkpoint is a model that loads; training starts from it, and refuses what does not fit', async () => {
  const cloned = await clone({
    task,
    config: {
      layers: 1,
      width: 16,
      heads: 2,
      threads: 1,
      steps: 2560,
      batchSize: 64,
      learningRate: 1e-2,
      tensorboard: false,
      csv: false,
    },
    root,
  });
  const rows = readTrajectory(cloned.dir).rows.map(row => JSON.parse(row) as Record<string, number>);
  expect(rows[0]['loss/clone']).toBeLessThan(Math.log(7));
  expect(rows.at(-1)!['loss/clone']).toBeLessThan(0.2);
  const from = checkpointDir(cloned.dir, cloned.step);
  const model = await loadModel(from);
  expect(model.options).toMatchObject({ layers: 1, width: 16, context: 16 });
  const echo = await createTask(await resolveTask(task), {});
  const result = await evaluateText(model, echo, { prompts: 40, promptSeed: 9, batchSize: 16 });
  expect(result.metrics.exact).toBe(1);
  expect(result).toMatchObject({ completions: 40, ungraded: 0, parseRate: 1, truncated: 0, meanTokens: 2 });
  expect(result.distinct).toBe(4 / 40);

  const trained = await train({
    task,
    from,
    config: { ...tiny, steps: 32, layers: undefined, width: undefined, heads: undefined } as object,
    preset: {},
    root,
  }).catch((error: unknown) => error as Error);
  expect((trained as Error).message).toMatch(/^layers has no effect with a model to start from/);
  const { layers: _, width: __, heads: ___, ...rest } = settings;
  const good = await train({
    task,
    from: cloned.dir,
    config: { ...rest, steps: 32 },
    root,
  });
  const { manifest } = openRun(good.dir);
  expect(manifest.parent).toMatchObject({ id: cloned.id, step: cloned.step });
  expect(good.lastRow!['env/exact']).toBeGreaterThan(0.5);
  // It needs nothing of what it came from.
  expect(readdirSync(checkpointDir(good.dir, 0))).toContain('model.safetensors');
  await expect(train({ task: 'arithmetic', from, config: rest, root })).rejects.toThrow(
    /has no token for "0/,
  );
  await expect(train({ task, from: root, config: rest, root })).rejects.toThrow(
    /is neither a model directory/,
  );
});

test('resuming refuses other sizes, other algorithms and damaged models, and takes more steps', async () => {
  const run = await train({ task, config: { ...settings, steps: 32 }, root });
  await expect(resume(run.dir, { config: { width: 32 } })).rejects.toThrow(
    /width is 16 in this run and cannot become 32/,
  );
  await expect(resume(run.dir, { config: { steps: 8 } })).rejects.toThrow(
    /has done 32 steps, steps 8 is less/,
  );
  await expect(resume(run.dir, { config: { grupSize: 8 } })).rejects.toThrow(/did you mean groupSize/);
  const more = await resume(run.dir, { config: { steps: 64 } });
  expect(more.step).toBe(64);
  expect(readEvents(run.dir).items.map(({ type }) => type)).toContain('resumed');
});

test('the manifest says where labels truly came from, also after an engine gave up', async () => {
  const engine = join(root, 'engine.sh');
  writeFileSync(
    engine,
    '#!/bin/sh\nwhile read -r line; do case "$line" in uci) echo "id name Frail"; echo uciok ;; isready) echo readyok ;; go*) exit 1 ;; quit) exit 0 ;; esac; done\n',
    { mode: 0o755 },
  );
  const { dir } = await train({
    task: 'chess',
    taskOptions: { engine, environmentShare: 0, searchDepth: 1 },
    preset: {},
    config: {
      layers: 1,
      width: 8,
      heads: 1,
      promptsPerIteration: 2,
      groupSize: 2,
      steps: 4,
      tensorboard: false,
    },
    root,
  });
  const gaveUp = { labelSource: 'Frail, depth 8, then own search, depth 1', labelsSkipped: 3 };
  expect(openRun(dir).manifest.config.sources).toMatchObject(gaveUp);
  expect(openRun(dir).manifest.config.sourcesBefore).toBeUndefined();
  // A resumed run tries the engine again; what labelled the steps before must not be forgotten.
  writeFileSync(
    engine,
    '#!/bin/sh\nwhile read -r line; do case "$line" in uci) echo "id name Frail"; echo uciok ;; isready) echo readyok ;; go*) echo "bestmove 0000" ;; quit) exit 0 ;; esac; done\n',
  );
  await resume(dir, { config: { steps: 8 }, trust: true });
  expect(openRun(dir).manifest.config.sourcesBefore).toMatchObject([gaveUp]);
  await resume(dir, { config: { steps: 12 } });
  expect(openRun(dir).manifest.config.sourcesBefore).toMatchObject([gaveUp, gaveUp]);
});
