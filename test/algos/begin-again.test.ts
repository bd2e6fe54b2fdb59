/** Killed before its first checkpoint, a run begins again where it began: at its seed, at weights, at its parent. */
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TrainHooks, TrainResult } from '../../src/algos/hooks.ts';
import { clone, fork, resume, train } from '../../src/algos/runs.ts';
import {
  checkpointDir,
  openRun,
  readAdjustments,
  readTrajectory,
  runPaths,
  updateManifest,
  writeAdjustments,
} from '../../src/runs/index.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { echoFile } from './grpo/support.ts';

const root = temporaryRoot('begin-again');
const task = join(root, 'echo.ts');
writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));

const log = { tensorboard: false, csv: false, checkpointEvery: 1, keepEvery: 1, seed: 2 };
const model = { layers: 1, width: 16, heads: 2, threads: 1 };
const policy = {
  ...log,
  ...{ envs: 2, stepsPerRollout: 16, minibatchSize: 16, epochs: 1, hidden: [8], steps: 64 },
  ...{ normaliseObservations: true },
};
const trainPolicy = (more: object, hooks: TrainHooks) =>
  train({ env: 'pendulum', preset: {}, config: policy, root, ...more, ...hooks });
const grpo = {
  ...log,
  ...{ promptsPerIteration: 4, groupSize: 4, microbatchSize: 16, minibatchSize: 8, steps: 32 },
};
const cloned = { ...log, steps: 48, batchSize: 8, batchesPerIteration: 3 };

/** What the others begin from. */
let parent: TrainResult;
let language: TrainResult;
beforeAll(async () => {
  parent = await trainPolicy({}, {});
  language = await clone({ task, preset: {}, config: { ...cloned, ...model }, root });
});
const weightsOf = ({ dir, step }: TrainResult) => join(checkpointDir(dir, step), 'policy.safetensors');

const kinds: Record<string, (hooks: TrainHooks) => Promise<TrainResult>> = {
  'ppo, at its seed': hooks => trainPolicy({}, hooks),
  'ppo, at weights of a run': hooks => trainPolicy({ from: parent.dir }, hooks),
  'ppo, at weights of a file': hooks => trainPolicy({ from: weightsOf(parent) }, hooks),
  'ppo, forked': hooks => fork(parent.dir, { config: { steps: 96, learningRate: 1e-3 }, ...hooks }),
  'ppo, forked with rewards of another scale': hooks =>
    fork(parent.dir, { config: { steps: 96, rewardScale: 0.5 }, onRewardScale: 'rescale', ...hooks }),
  'grpo, at its seed': hooks => train({ task, preset: {}, config: { ...grpo, ...model }, root, ...hooks }),
  'grpo, at a model of a run': hooks =>
    train({ task, preset: {}, config: { ...grpo, threads: 1 }, root, from: language.dir, ...hooks }),
  'grpo, at a model of a directory': hooks =>
    train({
      ...{ task, preset: {}, config: { ...grpo, threads: 1 }, root },
      ...{ from: checkpointDir(language.dir, language.step), ...hooks },
    }),
  'clone-text, at its seed': hooks =>
    clone({ task, preset: {}, config: { ...cloned, ...model }, root, ...hooks }),
  'clone-text, forked': hooks => fork(language.dir, { config: { steps: 72 }, ...hooks }),
};

/** A run whose process was killed before its first checkpoint was whole: nothing of it but a log is left. */
async function killedEarly(begin: (hooks: TrainHooks) => Promise<TrainResult>): Promise<string> {
  let dir = '';
  await expect(
    begin({
      onStart(progress) {
        dir = progress.dir;
        throw new Error('killed');
      },
    }),
  ).rejects.toThrow('killed');
  const { checkpoints, onnx } = runPaths(dir);
  rmSync(checkpoints, { recursive: true, force: true });
  rmSync(onnx, { force: true });
  return dir;
}

/** Every file of every checkpoint but when it was saved, and the deployable policy. */
function bitsOf(dir: string): Record<string, string> {
  const { checkpoints, onnx } = runPaths(dir);
  const files = readdirSync(checkpoints, { recursive: true, encoding: 'utf8' }).filter(
    name => /[/\\]/.test(name) && !name.endsWith('checkpoint.json'),
  );
  return Object.fromEntries([
    ...files.sort().map(name => [name, readFileSync(join(checkpoints, name), 'latin1')]),
    ['policy.onnx', existsSync(onnx) ? readFileSync(onnx, 'latin1') : ''],
  ]);
}

describe.each(Object.entries(kinds))('%s', (_, begin) => {
  test('it begins there again, to the same bits', async () => {
    const whole = await begin({});
    const dir = await killedEarly(begin);
    const { status } = await resume(dir);
    expect(status).toBe('finished');
    expect(readTrajectory(dir)).toEqual(readTrajectory(whole.dir));
    const [got, wanted] = [bitsOf(dir), bitsOf(whole.dir)];
    expect(Object.keys(got)).toEqual(Object.keys(wanted));
    for (const name of Object.keys(wanted))
      if (got[name] !== wanted[name]) throw new Error(`${name} differs`);
    expect(openRun(dir).manifest).toMatchObject({ resumes: 1, parent: openRun(whole.dir).manifest.parent });
  });
});

test('what it began from is gone: it says what, and what to do', async () => {
  const copy = { ...parent, dir: join(root, 'moved-parent') };
  cpSync(parent.dir, copy.dir, { recursive: true });
  const dir = await killedEarly(hooks => fork(copy.dir, { config: { steps: 96 }, ...hooks }));
  const checkpoint = checkpointDir(copy.dir, copy.step);
  renameSync(checkpoint, `${checkpoint}.away`);
  const remedy = /put that back, or delete this run \(keel runs delete \S+\) and start it anew/;
  await expect(resume(dir)).rejects.toThrow(
    /would begin again from checkpoint 64 of .*moved-parent, but there is no checkpoint 64/,
  );
  await expect(resume(dir)).rejects.toThrow(remedy);
  renameSync(`${checkpoint}.away`, checkpoint);
  const weights = weightsOf(copy);
  const whole = readFileSync(weights);
  writeFileSync(weights, Buffer.from(whole).fill(1, whole.length - 1));
  await expect(resume(dir)).rejects.toThrow(/policy\.safetensors is damaged.*: put that back/);
  rmSync(copy.dir, { recursive: true });
  await expect(resume(dir)).rejects.toThrow(/moved-parent, but that is not there: put that back/);
  expect(openRun(dir).status).toBe('failed');
});

test('what was written for a session that was killed before it saved still counts', async () => {
  // A rate that the guard has cut: writing one sets it anew, and so must a resume after a kill.
  const config = { ...policy, guard: 1e-6, learningRate: 0.05, steps: 64 };
  const begin = (): Promise<TrainResult> => trainPolicy({ config }, {});
  const [calm, killed] = [await begin(), await begin()];
  const longer = { steps: 96, learningRate: 0.04 };
  await resume(calm.dir, { config: longer });
  await expect(
    resume(killed.dir, {
      config: longer,
      onRow() {
        throw new Error('killed');
      },
    }),
  ).rejects.toThrow('killed');
  await resume(killed.dir);
  expect(readTrajectory(killed.dir).rows).toEqual(readTrajectory(calm.dir).rows);
  const rates = readTrajectory(calm.dir).rows.map(line => JSON.parse(line)['train/lr']);
  expect(rates[0]).toBeLessThan(config.learningRate / 2);
});

test('killed between its last checkpoint and policy.onnx, it has that of its last checkpoint in the end', async () => {
  const { dir } = await trainPolicy({}, {});
  const { onnx } = runPaths(dir);
  const whole = readFileSync(onnx);
  rmSync(onnx);
  updateManifest(dir, { status: 'running', endedAt: null });
  await resume(dir);
  expect(readFileSync(onnx).equals(whole)).toBe(true);
});

test('killed before changes by hand were deleted that a resume replaced, it goes on without them', async () => {
  const byHand = [{ iteration: 2, key: 'learningRate', value: 1e-5, by: 'a test' }];
  const longer = { steps: 128, learningRate: 2e-3 };
  const [calm, killed] = [await trainPolicy({}, {}), await trainPolicy({}, {})];
  for (const { dir } of [calm, killed]) writeAdjustments(dir, byHand);
  await resume(calm.dir, { config: longer });
  const onStart = (): never => {
    throw new Error('killed');
  };
  await expect(resume(killed.dir, { config: longer, onStart })).rejects.toThrow('killed');
  writeAdjustments(killed.dir, byHand);
  await resume(killed.dir);
  expect(readTrajectory(killed.dir).rows).toEqual(readTrajectory(calm.dir).rows);
  expect(readAdjustments(killed.dir)).toEqual([]);
});
