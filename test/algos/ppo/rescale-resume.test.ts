/** A run that goes on under another reward scale: its critic is rescaled once, however often the process dies after it. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fork, type ResumeOptions, resume, train } from '../../../src/algos/runs.ts';
import { ConfigError } from '../../../src/base/errors.ts';
import {
  checkpointDir,
  listCheckpoints,
  loadCheckpoint,
  openRun,
  readEvents,
  readTrajectory,
} from '../../../src/runs/index.ts';

const work = mkdtempSync(join(tmpdir(), 'keel-rescale-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));

/** Two checkpoints, at 64 and 128 steps, of which the first is the best. */
let original: string;
beforeAll(async () => {
  const config = {
    envs: 2,
    stepsPerRollout: 32,
    minibatchSize: 32,
    epochs: 2,
    hidden: [8],
    checkpointEvery: 1,
  };
  const envOptions = { maxEpisodeSteps: 20 };
  const root = join(work, 'original');
  const done = await train({
    env: 'pendulum',
    envOptions,
    preset: {},
    config: { ...config, steps: 128 },
    root,
  });
  original = done.dir;
});

let copies = 0;
/** The same run in a place of its own. */
function copy(): string {
  const dir = join(work, String(copies++), basename(original));
  cpSync(original, dir, { recursive: true });
  return dir;
}

// No checkpoint before the end, which the killed ones do not reach.
const rescaling: ResumeOptions = {
  config: { rewardScale: 0.1, steps: 320, checkpointEvery: 100 },
  onRewardScale: 'rescale',
};

const rescalings = (dir: string) => readEvents(dir).items.filter(({ type }) => type === 'rescaled');

describe('a rescaled run', () => {
  let calm: string;
  beforeAll(async () => {
    calm = copy();
    await resume(calm, rescaling);
  });

  test('says so in its events, and its checkpoints remember the new scale', () => {
    expect(rescalings(calm)).toEqual([
      expect.objectContaining({
        iteration: 3,
        step: 128,
        from: 1,
        to: 0.1,
        factor: 0.1,
        message: 'critic rescaled by 0.1: rewardScale 1 to 0.1',
      }),
    ]);
    expect(loadCheckpoint(calm, 'last')!.index).toMatchObject({
      step: 320,
      environment: { reward: { scale: 0.1 } },
    });
  });

  const dying: [string, Pick<ResumeOptions, 'onStart' | 'onRow'>][] = [
    ['before the first update', { onStart: die }],
    ['after an update', { onRow: row => row['train/iteration'] === 4 && die() }],
  ];
  test.each(dying)('that dies %s goes on to the same bits without being told again', async (_, hooks) => {
    const dir = copy();
    await expect(resume(dir, { ...rescaling, ...hooks })).rejects.toThrow('killed');
    expect(loadCheckpoint(dir, 'last')!.index).toMatchObject({
      step: 128,
      environment: { reward: { scale: 1 } },
    });
    // Twice, since going on must not be what spoils the next time.
    await expect(resume(dir, hooks)).rejects.toThrow('killed');
    await resume(dir);
    expect(readTrajectory(dir)).toEqual(readTrajectory(calm));
    expect(rescalings(dir)).toHaveLength(1);
    for (const file of ['policy.safetensors', 'optimizer.safetensors']) {
      const [a, b] = [calm, dir].map(run => readFileSync(join(checkpointDir(run, 320), file)));
      expect(a.equals(b), file).toBe(true);
    }
  });

  test('may go back to an older checkpoint, or be forked from it: it is rescaled as well', async () => {
    const dir = copy();
    await resume(dir, rescaling);
    const older = listCheckpoints(dir).find(({ index }) => index!.environment!.reward.scale === 1)!.step;
    const forked = await fork(dir, { from: older, config: { steps: 384 } });
    expect(rescalings(forked.dir)).toEqual([
      expect.objectContaining({ iteration: 0, step: older, from: 1, to: 0.1 }),
    ]);
    await resume(dir, { from: older, discardLater: true });
    expect(rescalings(dir)).toEqual([expect.objectContaining({ step: older, from: 1, to: 0.1 })]);
    expect(openRun(dir)).toMatchObject({ status: 'finished', manifest: { step: 320 } });
  });

  test('refuses a third scale, and takes the old one back where nothing was saved since', async () => {
    const dir = copy();
    await expect(resume(dir, { ...rescaling, onStart: die })).rejects.toThrow('killed');
    await expect(resume(dir, { config: { rewardScale: 7 } })).rejects.toThrow(
      /^rewardScale was 1 and would be 7: .*--rescale-critic/,
    );
    await resume(dir, { config: { rewardScale: 1 } });
    expect(rescalings(dir)).toEqual([]);
  });
});

describe('rescaling where there is nothing to rescale', () => {
  test.each([
    ['the same scale', { steps: 192 }],
    ['the same scale, written', { steps: 192, rewardScale: 1 }],
  ])('%s is refused, and nothing is changed', async (_, config) => {
    const dir = copy();
    const before = readFileSync(join(dir, 'manifest.json'), 'utf8');
    for (const call of [resume, fork]) {
      const error = await call(dir, { config, onRewardScale: 'rescale' }).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(ConfigError);
      expect((error as Error).message).toMatch(
        /^rewardScale was 1 and stays 1, so there is nothing to rescale/,
      );
    }
    expect(readFileSync(join(dir, 'manifest.json'), 'utf8')).toBe(before);
  });

  test('a run without a checkpoint has learnt nothing of the old scale', async () => {
    const config = { steps: 64, envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 1, hidden: [4] };
    const root = join(work, 'early');
    const run = train({ env: 'pendulum', preset: {}, config, root, onStart: die });
    await expect(run).rejects.toThrow('killed');
    const dir = join(root, readdirSync(root)[0]);
    await expect(resume(dir, { config: { rewardScale: 0.1 }, onRewardScale: 'rescale' })).rejects.toThrow(
      /no checkpoint, so there is no critic to rescale/,
    );
    expect((await resume(dir, { config: { rewardScale: 0.1 } })).status).toBe('finished');
    expect(rescalings(dir)).toEqual([]);
  });
});

function die(): never {
  throw new Error('killed');
}
