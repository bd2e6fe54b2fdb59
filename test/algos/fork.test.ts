/** Forks of the algorithms that others than PPO are: the parent is named, steps go on, settings change, bits agree. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TrainHooks, TrainResult } from '../../src/algos/hooks.ts';
import { clone, fork, openPolicy, resume, train } from '../../src/algos/runs.ts';
import { checkpointDir, loadCheckpoint, openRun, readRows } from '../../src/runs/index.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { echoFile } from './grpo/support.ts';

const root = temporaryRoot('fork');
const task = join(root, 'echo.ts');
writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));

const log = { tensorboard: false, csv: false, checkpointEvery: 1, keepEvery: 1, seed: 2 };
const model = { layers: 1, width: 16, heads: 2, threads: 1 };
const cluster = { env: 'cluster', envOptions: { replicas: 'h100,a40', requests: 128 } } as const;

interface Case {
  readonly begin: (hooks: TrainHooks) => Promise<TrainResult>;
  /** What a checkpoint learns with. */
  readonly files: readonly string[];
  /** Steps of an iteration, of which the run has four. */
  readonly steps: number;
  /** The setting that says how long a run is, and its value for five iterations. */
  readonly longer: Readonly<Record<string, number>>;
}

const cases: Record<string, Case> = {
  grpo: {
    begin: hooks =>
      train({
        task,
        preset: {},
        config: {
          ...log,
          ...model,
          ...{ promptsPerIteration: 4, groupSize: 4, microbatchSize: 16, minibatchSize: 8, steps: 16 * 4 },
          ...{ learningRate: 3e-3, reference: 'averaged', klRefCoefRule: 'adaptive' },
        },
        root,
        ...hooks,
      }),
    files: ['model.safetensors', 'optimizer.safetensors', 'reference.safetensors'],
    steps: 16,
    longer: { steps: 16 * 5 },
  },
  'clone-text': {
    begin: hooks =>
      clone({
        task,
        preset: {},
        config: { ...log, ...model, steps: 24 * 4, batchSize: 8, batchesPerIteration: 3, learningRate: 1e-2 },
        root,
        ...hooks,
      }),
    files: ['model.safetensors', 'optimizer.safetensors'],
    steps: 24,
    longer: { steps: 24 * 5 },
  },
  clone: {
    begin: hooks =>
      clone({
        ...cluster,
        preset: {},
        config: {
          ...log,
          ...{ steps: 256, epochs: 4, batchSize: 32, envs: 2, hidden: [8], demonstrators: ['least-finish'] },
          ...{ network: 'mlp', normaliseObservations: true, learningRateSchedule: 'constant' },
        },
        root,
        ...hooks,
      }),
    files: ['policy.safetensors', 'optimizer.safetensors'],
    steps: 256,
    longer: { epochs: 5 },
  },
};

const bytes = (dir: string, step: number, file: string): Buffer =>
  readFileSync(join(checkpointDir(dir, step), file));
const rowsOf = (dir: string) => readRows(dir).items;
/** A row without what counts iterations and time. */
const learnt = (row: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(row).filter(([key]) => key !== 'train/iteration' && !key.startsWith('time/')),
  );

describe.each(Object.entries(cases))('a run of %s', (name, { begin, files, steps, longer }) => {
  /** Stopped after two of its four iterations; and the same, resumed. */
  let parent: TrainResult;
  let resumed: TrainResult;
  beforeAll(async () => {
    const stoppedAfterTwo = async (): Promise<TrainResult> => {
      const controller = new AbortController();
      const onRow: TrainHooks['onRow'] = row => row['train/iteration'] === 2 && controller.abort();
      return begin({ signal: controller.signal, onRow });
    };
    [parent, resumed] = [await stoppedAfterTwo(), await stoppedAfterTwo()];
    resumed = await resume(resumed.dir);
    expect([parent.step, resumed.step]).toEqual([2 * steps, 4 * steps]);
  });

  test('forked without a change, it goes on to the bits of its parent resumed', async () => {
    const before = readFileSync(join(parent.dir, 'manifest.json'), 'utf8');
    const child = await fork(parent.dir, { id: `${name}-child` });
    expect(child).toMatchObject({ id: `${name}-child`, status: 'finished', step: 4 * steps });
    expect(openRun(child.dir).manifest).toMatchObject({
      algorithm: name,
      parent: { id: parent.id, step: 2 * steps },
      environment: openRun(parent.dir).manifest.environment,
    });
    // Steps go on from the checkpoint's, iterations begin at 1.
    expect(rowsOf(child.dir).map(row => [row['train/iteration'], row['train/step']])).toEqual([
      [1, 3 * steps],
      [2, 4 * steps],
    ]);
    expect(rowsOf(child.dir).map(learnt)).toEqual(rowsOf(resumed.dir).slice(2).map(learnt));
    for (const at of [3, 4])
      for (const file of files)
        expect(bytes(child.dir, at * steps, file).equals(bytes(resumed.dir, at * steps, file)), file).toBe(
          true,
        );
    expect(readFileSync(join(parent.dir, 'manifest.json'), 'utf8')).toBe(before);
  });

  test('its beginning is a checkpoint of its own, which holds what its parent had learnt', async () => {
    const child = await fork(parent.dir, { from: steps });
    expect(openRun(child.dir).manifest.parent).toEqual({ id: parent.id, step: steps });
    expect(loadCheckpoint(child.dir, steps)!.index).toMatchObject({ step: steps, iteration: 0 });
    for (const file of files)
      expect(bytes(child.dir, steps, file).equals(bytes(parent.dir, steps, file)), file).toBe(true);
    const [ours, theirs] = await Promise.all(
      [child, parent].map(async ({ dir }) => {
        const policy = await openPolicy(dir, { checkpoint: steps });
        const worth = await policy.evaluate({ episodes: 4 });
        await policy.close();
        return worth;
      }),
    );
    expect(ours).toEqual(theirs);
  });

  test('killed before its first iteration, it resumes from its beginning, to the same bits', async () => {
    const id = `${name}-killed`;
    await expect(
      fork(parent.dir, {
        id,
        onStart() {
          throw new Error('killed');
        },
      }),
    ).rejects.toThrow('killed');
    const child = await resume(id, { root });
    expect(child).toMatchObject({ status: 'finished', step: 4 * steps });
    expect(openRun(child.dir).manifest.parent).toEqual({ id: parent.id, step: 2 * steps });
    for (const file of files)
      expect(bytes(child.dir, 4 * steps, file).equals(bytes(resumed.dir, 4 * steps, file)), file).toBe(true);
  });

  test('with other settings it is another run; sizes and the seed stay', async () => {
    const child = await fork(parent.dir, { config: { learningRate: 1e-4, ...longer } });
    expect(child.step).toBe(5 * steps);
    expect(openRun(child.dir).manifest.config).toMatchObject({ learningRate: 1e-4, ...longer });
    expect(openRun(parent.dir).manifest.config.learningRate).not.toBe(1e-4);
    expect(rowsOf(child.dir)[0]['train/lr']).toBeLessThanOrEqual(1e-4);
    for (const file of files.slice(0, 1))
      expect(bytes(child.dir, 3 * steps, file).equals(bytes(resumed.dir, 3 * steps, file))).toBe(false);
    await expect(fork(parent.dir, { config: { seed: 5 } })).rejects.toThrow(/^seed is 2 in this run/);
    await expect(fork(resumed.dir)).rejects.toThrow(/were done at checkpoint \d+: give more, such as/);
  });
});
