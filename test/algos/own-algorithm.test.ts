/** An algorithm of one's own, with nothing but what the package exports: it has the life of a run like any other. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  ConfigError,
  fork,
  openPolicy,
  registerAlgorithm,
  resolveRun,
  resume,
  type TrainHooks,
  type TrainResult,
  train,
} from '../../src/index.ts';
import {
  askRun,
  checkpointDir,
  listCheckpoints,
  openRun,
  readEvents,
  readRows,
  readTrajectory,
} from '../../src/runs/index.ts';
import type { CheckpointsAnswer, RunDetail, RunList, SeriesAnswer } from '../../src/server/api.ts';
import { keel } from '../cli/support/keel.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { start, until } from '../server/support/client.ts';
import { randomSearch } from './support/random-search.ts';

registerAlgorithm(randomSearch);

const root = temporaryRoot('own-algorithm');
const config = { steps: 6000, seed: 3, checkpointEvery: 4, csv: false, tensorboard: false };
const begin = (settings: object = {}, others: TrainHooks & { root?: string } = {}) =>
  train({
    env: 'cartpole',
    algorithm: randomSearch,
    config: { ...config, ...settings },
    root,
    ...others,
  });

/** A run that was stopped after so many iterations. */
function stoppedAfter(iterations: number, settings: object = {}): Promise<TrainResult> {
  const controller = new AbortController();
  return begin(settings, {
    signal: controller.signal,
    onRow: row => row['train/iteration'] === iterations && controller.abort(),
  });
}

const stateAt = (dir: string, step: number): string =>
  readFileSync(join(checkpointDir(dir, step), 'state.json'), 'utf8');
const rowsOf = (dir: string) => readRows(dir).items;

let whole: TrainResult;
beforeAll(async () => {
  whole = await begin();
});

test('it is under a hundred lines', () => {
  const source = readFileSync(new URL('./support/random-search.ts', import.meta.url), 'utf8');
  expect(source.trimEnd().split('\n').length).toBeLessThan(100);
});

test('it trains: a run like any other, which learns', () => {
  expect(whole.status).toBe('finished');
  expect(whole.step).toBeGreaterThanOrEqual(6000);
  const { manifest } = openRun(whole.dir);
  expect(manifest).toMatchObject({
    algorithm: 'random-search',
    status: 'finished',
    seed: 3,
    environment: { id: 'CartPole-v1' },
    config: { ...config, noise: 0.3, episodes: 2, env: 'cartpole' },
  });
  const rows = rowsOf(whole.dir);
  expect(rows[0]['episode/return_best']).toBeLessThan(50);
  expect(whole.lastRow!['episode/return_best']).toBeGreaterThan(150);
  const best = listCheckpoints(whole.dir).find(({ isBest }) => isBest)!;
  expect(best.index!.score).toBeGreaterThan(rows[0]['episode/return']);
});

describe('it resumes to the same bits', () => {
  const same = (dir: string): void => {
    expect(readTrajectory(dir).rows).toEqual(readTrajectory(whole.dir).rows);
    expect(stateAt(dir, whole.step)).toBe(stateAt(whole.dir, whole.step));
  };

  test('after a stop', async () => {
    const stopped = await stoppedAfter(6);
    expect(stopped).toMatchObject({ status: 'stopped' });
    expect(stopped.step).toBeLessThan(whole.step);
    expect(await resume(stopped.dir)).toMatchObject({ status: 'finished', step: whole.step });
    same(stopped.dir);
  });

  test('after a kill: from the checkpoint before it', async () => {
    const { dir, step } = await stoppedAfter(6);
    // What a kill leaves: rows that no checkpoint has.
    rmSync(checkpointDir(dir, step), { recursive: true });
    expect((await resume(dir)).status).toBe('finished');
    same(dir);
    expect(readEvents(dir).items.find(({ type }) => type === 'resumed')).toMatchObject({ iteration: 4 });
  });

  test('after a kill before its first checkpoint: from its seed', async () => {
    const early = join(root, 'early');
    const died = begin(
      {},
      {
        root: early,
        onRow(row) {
          if (row['train/iteration'] === 3) throw new Error('killed');
        },
      },
    );
    await expect(died).rejects.toThrow('killed');
    const { dir } = resolveRun('last', [early]);
    expect([listCheckpoints(dir).length, rowsOf(dir).length]).toEqual([0, 3]);
    expect((await resume(dir)).status).toBe('finished');
    same(dir);
  });

  test('another seed is another run', async () => {
    const other = await begin({ seed: 4 });
    expect(readTrajectory(other.dir).rows).not.toEqual(readTrajectory(whole.dir).rows);
  });
});

describe('it is forked', () => {
  test('without a change it goes on as its parent does; steps go on, iterations begin at 1', async () => {
    const parent = await stoppedAfter(6);
    const child = await fork(parent.dir, { id: 'child' });
    expect(openRun(child.dir).manifest).toMatchObject({
      algorithm: 'random-search',
      parent: { id: parent.id, step: parent.step },
    });
    const rest = rowsOf(whole.dir).slice(6);
    const returns = (rows: readonly Readonly<Record<string, number>>[]) =>
      rows.map(row => [row['train/step'], row['episode/return'], row['episode/return_best']]);
    expect(returns(rowsOf(child.dir))).toEqual(returns(rest));
    expect(rowsOf(child.dir)[0]['train/iteration']).toBe(1);
    expect(openRun(parent.dir).manifest.status).toBe('stopped');
  });

  test('with other settings, and refuses what is done', async () => {
    const child = await fork(whole.dir, { config: { noise: 0.01, steps: whole.step + 1 } });
    expect(openRun(child.dir).manifest.config).toMatchObject({ noise: 0.01 });
    expect(child.lastRow).toMatchObject({ 'train/lr': 0.01 });
    await expect(fork(whole.dir)).rejects.toThrow(
      /steps 6000 is no more than the \d+ that were done at checkpoint \d+: give more/,
    );
  });
});

test('its settings are looked at like any others', async () => {
  await expect(begin({ nois: 1 })).rejects.toThrow(/^nois is not a config key: did you mean noise\?/);
  await expect(begin({ zzzzzz: 1 })).rejects.toThrow(
    /^zzzzzz is not a config key: there are steps, seed, .*noise, episodes$/,
  );
  await expect(begin({ episodes: 0 })).rejects.toThrow(/^episodes is 0, below its least value 1/);
  await expect(resume(whole.dir, { config: { seed: 9 } })).rejects.toThrow(
    'seed is 3 in this run and cannot become 9 on resuming: start a new run',
  );
  await expect(fork(whole.dir, { config: { seed: 9 } })).rejects.toThrow(
    'seed is 3 in this run and cannot become 9 on forking: start a new run',
  );
  await expect(train({ env: 'cartpole', algorithm: randomSearch, from: whole.dir, root })).rejects.toThrow(
    /^random-search starts anew, it cannot begin from/,
  );
  await expect(train({ task: 'arithmetic', algorithm: randomSearch, root })).rejects.toThrow(
    /^random-search needs an environment, arithmetic is a text task/,
  );
  await expect(train({ env: 'pendulum', algorithm: randomSearch, root })).rejects.toThrow(
    /Pendulum-v1 has the actions Box/,
  );
  await expect(openPolicy(whole.dir)).rejects.toThrow(
    /a run of random-search, which makes no policy to hold/,
  );
  expect(() => registerAlgorithm({ ...randomSearch })).toThrow(ConfigError);
  expect(() => registerAlgorithm(randomSearch)).not.toThrow();
});

test('what may change in a live run changes, and what may not is refused', async () => {
  const asked: Promise<{ done: boolean; message: string }>[] = [];
  const { dir } = await train({
    env: 'cartpole',
    algorithm: randomSearch,
    config: { ...config, steps: 1500 },
    root,
    onStart({ dir: at }) {
      for (const key of ['noise', 'episodes'])
        asked.push(askRun(at, { type: 'set', key, value: 1, by: 'page' }, { timeoutMs: 20_000 }));
    },
  });
  expect(await Promise.all(asked)).toMatchObject([
    { done: true, message: expect.stringMatching(/^noise is 1 from iteration \d+ on, was 0.3$/) },
    { done: false, message: expect.stringMatching(/^episodes cannot change in a run that is under way/) },
  ]);
  expect(rowsOf(dir).at(-1)).toMatchObject({ 'train/lr': 1, 'episode/count': 2 });
});

describe('others who see such a run', () => {
  test('the page lists it, and has its rows, its settings and its checkpoints', async () => {
    const { get } = await start({ roots: [root] });
    const find = async () =>
      (await get('/api/runs')).json<RunList>().runs.find(({ name }) => name === whole.id);
    await until(async () => (await find())?.verdict != null, 'the run is judged');
    const run = (await find())!;
    expect(run).toMatchObject({
      trainer: 'keel',
      algorithm: 'random-search',
      environment: 'CartPole-v1',
      state: 'finished',
      step: whole.step,
      totalSteps: 6000,
      lastReturn: whole.lastRow!['episode/return'],
      problem: null,
    });
    const detail = (await get(`/api/runs/${run.id}`)).json<RunDetail>();
    expect(detail.config).toMatchObject({ noise: 0.3, episodes: 2 });
    const rows = rowsOf(whole.dir);
    expect(detail.metrics.find(({ id }) => id === 'episode/return')).toMatchObject({ points: rows.length });
    const { series } = (
      await get(`/api/runs/${run.id}/series?metrics=${encodeURIComponent('episode/return')}&x=iteration`)
    ).json<SeriesAnswer>();
    expect(series).toMatchObject([
      { x: rows.map(row => row['train/iteration']), mean: rows.map(row => row['episode/return']) },
    ]);
    const { checkpoints } = (await get(`/api/runs/${run.id}/checkpoints`)).json<CheckpointsAnswer>();
    expect(checkpoints.map(({ step }) => step)).toContain(whole.step);
  });

  test('the command line lists it, and says where it has no such algorithm', async () => {
    const listed = await keel(['runs', '--run-dir', root, '--json']);
    expect(listed.code, listed.stderr).toBe(0);
    expect(listed.stdout).toContain(whole.id);
    const resumed = await keel(['resume', whole.dir, '--set', 'steps=9000']);
    expect(resumed.code).toBe(1);
    expect(resumed.stderr).toMatch(
      /is a run of random-search, which is not known here: there are ppo, .*; registerAlgorithm adds one/,
    );
  });
});
