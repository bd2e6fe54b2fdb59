import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { openPolicy, train } from '../../../src/algos/runs.ts';
import { listReplays, loadReplay, readEvents, replayPath } from '../../../src/runs/index.ts';
import { temporaryRoot } from '../../runs/support/temporary.ts';

const root = temporaryRoot('record');
const crawler = fileURLToPath(new URL('../../view/fixtures/crawler.ts', import.meta.url));
const config = {
  steps: 512,
  envs: 4,
  stepsPerRollout: 64,
  minibatchSize: 64,
  epochs: 2,
  checkpointEvery: 1,
  csv: false,
};

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const parameters = (dir: string, step: number): string =>
  sha256(join(dir, 'checkpoints', String(step), 'policy.safetensors'));

let dir: string;
beforeAll(async () => {
  ({ dir } = await train({ env: crawler, config, root: join(root, 'with') }));
});

test('training records the first and the last policy', () => {
  const replays = listReplays(dir);
  expect(replays.map(({ step }) => step)).toEqual([256, 512]);
  const replay = loadReplay(replayPath(dir, '512'));
  expect(replay.environment).toBe('TestCrawler-v0');
  expect(replay.scene.bodies[0].name).toBe('torso');
  expect(replay.terms).toEqual(['forward', 'effort']);
  expect(replay.frames).toBeGreaterThan(5);
  // The start is the start: nothing was done and nothing earned; then rewards are the sum of their terms.
  expect([replay.rewards[0], ...replay.actions.subarray(0, 8)]).toEqual(Array(9).fill(0));
  expect(replay.positions[2]).toBeCloseTo(0.38, 6);
  let total = 0;
  for (let i = 0; i < replay.frames; i++) {
    const sum = replay.rewardTerms[2 * i] + replay.rewardTerms[2 * i + 1];
    expect(replay.rewards[i]).toBeCloseTo(sum, 5);
    total += replay.rewards[i];
  }
  expect(replay.episodeReturn).toBeCloseTo(total, 3);
});

test('recording changes no bit of training', async () => {
  const { dir: without } = await train({
    env: crawler,
    config: { ...config, record: false },
    root: join(root, 'without'),
  });
  expect(existsSync(join(without, 'replays'))).toBe(false);
  for (const step of [256, 512]) expect(parameters(without, step)).toBe(parameters(dir, step));
});

test('what cannot be recorded costs a note, not the run', async () => {
  const { dir: bad, status } = await train({
    env: crawler,
    config,
    root: join(root, 'bad'),
    // A file where the directory should be.
    onStart: ({ dir: at }) => writeFileSync(join(at, 'replays'), 'in the way'),
  });
  expect(status).toBe('finished');
  const notes = readEvents(bad).items.filter(({ type }) => type === 'note');
  expect(notes).toHaveLength(1);
  expect(notes[0].message).toMatch(/^recording stopped: /);
  expect(parameters(bad, 512)).toBe(parameters(dir, 512));
});

describe('from a checkpoint', () => {
  test('the same episode again is the same to the bit; further ones begin elsewhere', async () => {
    const before = loadReplay(replayPath(dir, '512'));
    const policy = await openPolicy(dir, { checkpoint: 'last' });
    const names = await policy.record({ episodes: 2 });
    await policy.close();
    expect(names).toEqual(['512', '512-1']);
    const after = loadReplay(replayPath(dir, '512'));
    expect({ ...after, recordedAt: 0 }).toEqual({ ...before, recordedAt: 0 });
    expect(loadReplay(replayPath(dir, '512-1')).joints.subarray(0, 8)).not.toEqual(
      after.joints.subarray(0, 8),
    );
  });

  test('an environment without a body says so', async () => {
    const { dir: pole } = await train({
      env: 'CartPole-v1',
      config: { ...config, steps: 256 },
      preset: {},
      root: join(root, 'pole'),
    });
    expect(existsSync(join(pole, 'replays'))).toBe(false);
    mkdirSync(join(pole, 'replays'));
    const policy = await openPolicy(pole, { checkpoint: 'last' });
    await expect(policy.record()).rejects.toThrow(/CartPole-v1 cannot be drawn/);
    await policy.close();
  });
});
