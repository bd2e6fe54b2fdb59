/** What is written for a resumed run holds, whatever controllers had made of it; what is not goes on as it was left. */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Settings } from '../../src/algos/algorithm.ts';
import { clone, fork, resume, train } from '../../src/algos/runs.ts';
import { loadCheckpoint, openRun, readRows } from '../../src/runs/index.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { echoFile, tiny } from './grpo/support.ts';

const root = temporaryRoot('resume');
const log = { tensorboard: false, csv: false };

let copies = 0;
/** The same run in a place of its own. */
function copyOf(dir: string): string {
  const copy = join(root, `copy-${copies++}`);
  cpSync(dir, copy, { recursive: true });
  return copy;
}

/** The first row of a copy that goes on with these settings. */
async function goingOn(dir: string, config: Settings): Promise<Readonly<Record<string, number>>> {
  const { items } = readRows((await resume(copyOf(dir), { config, trust: true })).dir);
  return items[readRows(dir).items.length];
}

const countersOf = (dir: string) => loadCheckpoint(dir, 'last')!.state.counters as Record<string, number>;

describe('PPO', () => {
  let dir: string;
  beforeAll(async () => {
    const config = {
      ...log,
      ...{ envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 2, hidden: [8], steps: 192 },
      ...{ klCoef: 0.1, klCoefRule: 'adaptive' as const, adaptiveRate: true, learningRate: 1e-3 },
    };
    ({ dir } = await train({ env: 'cartpole', preset: {}, config, root }));
  });

  test('goes on with what its controllers had made', async () => {
    const { klCoef, adaptiveFactor } = countersOf(dir);
    expect(klCoef).not.toBe(0.1);
    expect(adaptiveFactor).not.toBe(1);
    const row = await goingOn(dir, { steps: 256 });
    expect(row['kl/coef']).toBe(klCoef);
    expect(row['train/lr']).toBe(1e-3 * adaptiveFactor);
  });

  test('takes a weight of the KL that is written, and leaves the rate', async () => {
    const row = await goingOn(dir, { steps: 256, klCoef: 7 });
    expect(row['kl/coef']).toBe(7);
    expect(row['train/lr']).toBe(1e-3 * countersOf(dir).adaptiveFactor);
  });

  test('takes a rate that is written, and leaves the weight', async () => {
    const row = await goingOn(dir, { steps: 256, learningRate: 0.002 });
    expect(row['train/lr']).toBe(0.002);
    expect(row['kl/coef']).toBe(countersOf(dir).klCoef);
    expect(row['train/iteration']).toBe(4);
  });
});

test('the std that a policy began with stays: another would do nothing', async () => {
  const config = {
    ...log,
    envs: 2,
    stepsPerRollout: 32,
    minibatchSize: 32,
    epochs: 1,
    hidden: [4],
    steps: 64,
  };
  const { dir } = await train({ env: 'pendulum', preset: {}, config, root });
  for (const goOn of [resume, fork])
    await expect(goOn(dir, { config: { steps: 128, logStdInitial: -1 } })).rejects.toThrow(
      /^logStdInitial is 0 in this run and cannot become -1 on (resuming|forking): start a new run$/,
    );
});

test('GRPO takes a weight of the KL to its reference that is written', async () => {
  const task = join(root, 'echo.ts');
  writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));
  const config = { ...tiny, ...log, steps: 64, klRefCoefRule: 'adaptive' } as const;
  const { dir } = await train({ task, preset: {}, config, root });
  const { klRefCoef } = countersOf(dir);
  expect(klRefCoef).not.toBe(0.01);
  expect((await goingOn(dir, { steps: 96 }))['kl/ref_coef']).toBe(klRefCoef);
  expect((await goingOn(dir, { steps: 96, klRefCoef: 3 }))['kl/ref_coef']).toBe(3);
});

describe('a cloned policy', () => {
  let dir: string;
  beforeAll(async () => {
    const demonstrations = { steps: 256, envs: 6, demonstrators: ['least-finish'] };
    const envOptions = { replicas: 'h100,a40', requests: 128 };
    const config = { ...log, ...demonstrations, epochs: 2, batchSize: 32, hidden: [4] };
    const done = await clone({ env: 'cluster', envOptions, preset: {}, config, root });
    // Whole shares of what was asked for.
    expect(done.step).toBe(2 * 258);
    ({ dir } = done);
  });

  test('takes more epochs, also where the demonstrations that it has are named', async () => {
    const row = await goingOn(dir, { epochs: 3, steps: 256 });
    expect(row['train/step']).toBe(3 * 258);
  });

  test('refuses fewer epochs than it has done, and stays as it was', async () => {
    const before = openRun(dir).manifest;
    await expect(resume(dir, { config: { epochs: 1 } })).rejects.toThrow(
      /^this run has done 2 epochs, epochs 1 is less: give more, or leave it out$/,
    );
    expect(openRun(dir).manifest).toEqual(before);
    expect(await resume(copyOf(dir), { config: { epochs: 2 } })).toMatchObject({ status: 'finished' });
  });

  test.each([
    ['steps', 512],
    ['demonstrators', ['least-requests']],
    ['seed', 1],
    ['envs', 2],
    ['gamma', 0.5],
    ['rewardScale', 10],
  ])('has the demonstrations that it began with: no other %s', async (key, value) => {
    for (const goOn of [resume, fork])
      await expect(goOn(dir, { config: { epochs: 3, [key]: value } })).rejects.toThrow(
        new RegExp(`^${key} is .* in this run and cannot become .* on (resuming|forking): start a new run$`),
      );
  });
});
