/** Cloning of a policy that is stopped or killed at any moment goes on to the same bits as one that is not. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ClonePolicySettings } from '../../../src/algos/clone/policy/settings.ts';
import type { TrainHooks, TrainResult } from '../../../src/algos/hooks.ts';
import { clone, resume } from '../../../src/algos/runs.ts';
import {
  checkpointDir,
  listCheckpoints,
  openRun,
  readEvents,
  readRows,
  readTrajectory,
  resolveRun,
  runPaths,
} from '../../../src/runs/index.ts';
import { temporaryRoot } from '../../runs/support/temporary.ts';

const root = temporaryRoot('clone-kill');
const EPOCHS = 8;
const envOptions = { replicas: 'h100,a40', requests: 64 };
/** Moments of observations, a falling rate, several demonstrators: all that a checkpoint must hold, or the seed give again. */
const config: ClonePolicySettings = {
  ...{ steps: 256, epochs: EPOCHS, batchSize: 32, envs: 2, hidden: [8], network: 'mlp', seed: 5 },
  ...{ normaliseObservations: true, demonstrators: ['least-finish', 'round-robin'], checkpointEvery: 3 },
  ...{ learningRateSchedule: 'cosine', csv: false, tensorboard: false },
};
const begin = (hooks: TrainHooks & { root?: string } = {}): Promise<TrainResult> =>
  clone({ env: 'cluster', envOptions, preset: {}, config, root, ...hooks });

let whole: TrainResult;
beforeAll(async () => {
  whole = await begin();
});

function same(dir: string): void {
  expect(readTrajectory(dir).rows).toEqual(readTrajectory(whole.dir).rows);
  for (const file of ['policy.safetensors', 'optimizer.safetensors', 'state.json']) {
    const [a, b] = [whole.dir, dir].map(run => readFileSync(join(checkpointDir(run, whole.step), file)));
    expect(a.equals(b), file).toBe(true);
  }
  expect(readFileSync(runPaths(dir).onnx).equals(readFileSync(runPaths(whole.dir).onnx))).toBe(true);
  expect(openRun(dir).manifest.status).toBe('finished');
}

/** Dies, as far as the disk can tell: nothing is saved after the moment. */
function dying(root: string, at: (row: Readonly<Record<string, number>> | undefined) => boolean) {
  const die = (row?: Readonly<Record<string, number>>): void => {
    if (at(row)) throw new Error('killed');
  };
  return { root, onStart: () => die(), onRow: die };
}

describe('killed before its first checkpoint', () => {
  test.each([
    ['before its first epoch', 0],
    ['after its second', 2],
  ])('%s, it begins again from its seed', async (_, rows) => {
    const own = join(root, `early-${rows}`);
    const killed = begin(dying(own, row => (row?.['train/iteration'] ?? 0) === rows));
    await expect(killed).rejects.toThrow('killed');
    const { dir } = resolveRun('last', [own]);
    expect(listCheckpoints(dir)).toEqual([]);
    expect(readRows(dir).items).toHaveLength(rows);
    const again = await resume(dir);
    expect(again).toMatchObject({ status: 'finished', step: whole.step, demonstrators: whole.demonstrators });
    same(dir);
  });
});

test('killed after a checkpoint, it drops the rows that no checkpoint has', async () => {
  const own = join(root, 'late');
  await expect(begin(dying(own, row => row?.['train/iteration'] === 5))).rejects.toThrow('killed');
  const { dir } = resolveRun('last', [own]);
  expect([readRows(dir).items.length, listCheckpoints(dir).map(({ index }) => index!.iteration)]).toEqual([
    5,
    [3],
  ]);
  await resume(dir);
  same(dir);
  expect(readEvents(dir).items.find(({ type }) => type === 'resumed')).toMatchObject({ iteration: 3 });
});

test.each([1, 4, EPOCHS - 1])('stopped after %i epochs, it goes on', async epochs => {
  const controller = new AbortController();
  const stopped = await begin({
    signal: controller.signal,
    onRow: row => row['train/iteration'] === epochs && controller.abort(),
  });
  expect(stopped).toMatchObject({ status: 'stopped', step: epochs * 256 });
  await resume(stopped.dir);
  same(stopped.dir);
});

test('stopped again and again', async () => {
  const controller = new AbortController();
  const { dir } = await begin({ signal: controller.signal, onRow: () => controller.abort() });
  for (let epoch = 2; epoch <= EPOCHS; epoch++) {
    const next = new AbortController();
    await resume(dir, { signal: next.signal, onRow: () => next.abort() });
    expect(readRows(dir).items).toHaveLength(epoch);
  }
  same(dir);
});

test('a checkpoint that was lost is not missed', async () => {
  const controller = new AbortController();
  const { dir, step } = await begin({
    signal: controller.signal,
    onRow: row => row['train/iteration'] === 5 && controller.abort(),
  });
  rmSync(checkpointDir(dir, step), { recursive: true });
  await resume(dir);
  same(dir);
});
