/** The autopilot: what is sure is done, in the run or from before the harm, and a run that is killed comes to the same bits. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Advice, Advisor } from '../../src/algos/autopilot/advice.ts';
import type { TrainHooks } from '../../src/algos/hooks.ts';
import type { PpoSettings } from '../../src/algos/ppo/settings.ts';
import { resume, train } from '../../src/algos/runs.ts';
import * as piloted from '../../src/autopilot/runs.ts';
import { ConfigError } from '../../src/base/errors.ts';
import {
  checkpointDir,
  openRun,
  readAdjustments,
  readEvents,
  readRows,
  readTrajectory,
  writeAdjustments,
} from '../../src/runs/index.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';

const root = temporaryRoot('autopilot');
const ITERATIONS = 24;
const config: PpoSettings = {
  ...{ tensorboard: false, csv: false, record: false, seed: 3, checkpointEvery: 2 },
  ...{ envs: 2, stepsPerRollout: 16, minibatchSize: 16, epochs: 1, hidden: [8], steps: 32 * ITERATIONS },
  ...{ guard: null, learningRate: 0.1, autopilot: true, autopilotEvery: 4, autopilotWait: 6 },
};

const said = (more: Partial<Advice> = {}): Advice => ({
  rule: 'kl-high',
  cause: 'learning-rate-too-high',
  confidence: 0.97,
  why: 'the KL is high',
  firstSeen: 96,
  changes: [{ key: 'learningRate', value: 1e-3 }],
  ...more,
});
/** Sick for as long as the rate is high, from the third row on. */
const ofRate: Advisor = async ({ rows, config }) =>
  rows.length >= 4 && Number(config.learningRate) > 0.01 ? said() : undefined;
/** Sick whatever is done. */
const always: Advisor = async ({ rows }) => (rows.length >= 4 ? said() : undefined);

const begin = (id: string, more: PpoSettings = {}, hooks: TrainHooks = {}) =>
  train({ env: 'pendulum', preset: {}, config: { ...config, ...more }, root, id, advisor: ofRate, ...hooks });
const stepsOf = (dir: string) => readEvents(dir).items.filter(({ type }) => type === 'autopilot');
const dirOf = (id: string): string => join(root, id);
const rateOf = (dir: string): number[] => readRows(dir).items.map(row => row['train/lr']);

describe('a setting that may change in a run', () => {
  test('is changed in it, with an event and a reason, and the run goes on', async () => {
    const { dir, status, id } = await begin('live');
    expect({ id, status }).toEqual({ id: 'live', status: 'finished' });
    // Said in the looks at 8 and, half a look ago, at 6.
    expect(stepsOf(dir)).toMatchObject([
      {
        iteration: 8,
        action: 'set',
        cause: 'learning-rate-too-high',
        changes: [{ key: 'learningRate', from: 0.1, value: 1e-3 }],
        message: 'learning rate too high (97%), the KL is high: learningRate 0.1 to 0.001',
      },
    ]);
    expect(rateOf(dir)).toEqual([...Array(8).fill(0.1), ...Array(ITERATIONS - 8).fill(1e-3)]);
    expect(readAdjustments(dir)).toEqual([
      { iteration: 9, key: 'learningRate', value: 1e-3, by: 'autopilot' },
    ]);
  });

  test.each([5, 8, 9, 11, 17])('comes to the same bits when it is killed in iteration %i', async at => {
    const whole = dirOf('live');
    const id = `live-killed-${at}`;
    const onRow = (row: Readonly<Record<string, number>>): void => {
      if (row['train/iteration'] === at) throw new Error('killed');
    };
    await expect(begin(id, {}, { onRow })).rejects.toThrow('killed');
    await resume(dirOf(id), { advisor: ofRate });
    expect(readTrajectory(dirOf(id)).rows).toEqual(readTrajectory(whole).rows);
    const untimed = (dir: string) => stepsOf(dir).map(({ 'time/unix_s': _, ...event }) => event);
    expect(untimed(dirOf(id))).toEqual(untimed(whole));
    expect(readAdjustments(dirOf(id))).toEqual(readAdjustments(whole));
    const weights = (dir: string) =>
      readFileSync(join(checkpointDir(dir, 32 * ITERATIONS), 'policy.safetensors'));
    expect(weights(dirOf(id)).equals(weights(whole))).toBe(true);
  });
});

describe('what cannot be mended in the run', () => {
  test('goes on as another run, from the newest checkpoint before the harm', async () => {
    const started: string[] = [];
    const onStart = ({ id }: { id: string }) => started.push(id);
    const { dir, id, status } = await begin('twice', {}, { advisor: always, onStart });
    expect({ id, status, started }).toEqual({
      id: 'twice-auto1',
      status: 'finished',
      started: ['twice', 'twice-auto1'],
    });
    const parent = dirOf('twice');
    // The change in the run did not help: from before the first harm, with that change.
    expect(stepsOf(parent)).toMatchObject([
      { iteration: 8, action: 'set' },
      {
        iteration: 16,
        action: 'fork',
        checkpoint: 64,
        child: id,
        changes: [{ key: 'learningRate', value: 1e-3 }],
      },
    ]);
    expect(openRun(parent).manifest).toMatchObject({
      status: 'stopped',
      reason: 'its autopilot has twice-auto1 go on',
    });
    const { manifest } = openRun(dir);
    expect(manifest).toMatchObject({ parent: { id: 'twice', step: 64 }, config: { learningRate: 1e-3 } });
    expect(manifest.autopilot).toMatchObject([
      { run: 'twice', action: 'set' },
      { run: 'twice', action: 'fork', cause: 'learning-rate-too-high' },
    ]);
    expect(readRows(dir).items.at(-1)!['train/step']).toBe(32 * ITERATIONS);
    // What is so already is not advised, and nothing is done again.
    expect(stepsOf(dir)).toEqual([]);
  });

  test.each(['before the other run is there', 'when it has begun', 'in the middle of it'])(
    'comes to the same bits when it is killed %s',
    async when => {
      const id = `killed-${when.split(' ')[0]}`;
      const child = `${id}-auto1`;
      const die = (now: boolean): void => {
        if (now) throw new Error('killed');
      };
      const hooks: TrainHooks = {
        advisor: always,
        onEvent: event =>
          die(when.startsWith('before') && event.type === 'autopilot' && event.action === 'fork'),
        onStart: progress => die(when.startsWith('when') && progress.id === child),
        onRow: (row, progress) =>
          die(when.startsWith('in') && progress.id === child && row['train/iteration'] === 7),
      };
      await expect(begin(id, {}, hooks)).rejects.toThrow('killed');
      const last = existsSync(dirOf(child)) ? child : id;
      const { dir } = await resume(dirOf(last), { advisor: always });
      expect(dir).toBe(dirOf(child));
      expect(readTrajectory(dir).rows).toEqual(readTrajectory(dirOf('twice-auto1')).rows);
      expect(openRun(dir).manifest.autopilot).toHaveLength(2);
    },
  );

  test('goes back at once where the harm began with the run, or too little of it is left', async () => {
    const fromStart: Advisor = async look => ((await ofRate(look)) ? said({ firstSeen: 32 }) : undefined);
    expect((await begin('start', {}, { advisor: fromStart })).id).toBe('start-auto1');
    expect(stepsOf(dirOf('start'))).toMatchObject([{ iteration: 8, action: 'fork', checkpoint: 0 }]);
    // By then the checkpoint before the harm is no longer kept, but the first one is.
    const late: Advisor = async look => (look.rows.length > 15 ? ofRate(look) : undefined);
    expect((await begin('late', {}, { advisor: late })).id).toBe('late-auto1');
    expect(stepsOf(dirOf('late'))).toMatchObject([{ iteration: 20, action: 'fork', checkpoint: 0 }]);
  });

  test('begins again with a setting that is part of the shape of a run', async () => {
    const advisor: Advisor = async ({ rows, config }) =>
      rows.length >= 4 && config.normaliseRewards === false
        ? said({ changes: [{ key: 'normaliseRewards', value: true }] })
        : undefined;
    const { dir, id } = await begin('shape', {}, { advisor });
    expect(id).toBe('shape-auto1');
    expect(stepsOf(dirOf('shape'))).toMatchObject([{ action: 'begin-again' }]);
    expect(openRun(dir).manifest).toMatchObject({
      parent: { id: 'shape', step: 0 },
      config: { normaliseRewards: true },
    });
    expect(readRows(dir).items).toHaveLength(ITERATIONS);
  });

  test('a run that fails goes on otherwise', async () => {
    // Weights that are not finite at once: the run gives up.
    const advisor: Advisor = async ({ error, config }) =>
      error !== null && Number(config.learningRate) > 1
        ? said({ firstSeen: 32, changes: [{ key: 'learningRate', value: 1e-3 }] })
        : undefined;
    const { status, id } = await begin(
      'fails',
      { learningRate: 1e38, recoveries: 0, skipLimit: 1 },
      { advisor },
    );
    expect({ status, id }).toEqual({ status: 'finished', id: 'fails-auto1' });
  });
});

describe('what is left alone', () => {
  const untouched = async (id: string, more: PpoSettings, hooks: TrainHooks): Promise<void> => {
    const { dir } = await begin(id, more, hooks);
    expect(stepsOf(dir)).toEqual([]);
    expect(openRun(dir).manifest.parent).toBeNull();
    expect(new Set(rateOf(dir))).toEqual(new Set([0.1]));
  };

  test('a run of which nobody is sure', () =>
    untouched('unsure', {}, { advisor: async () => said({ confidence: 0.9 }) }));

  test('a run that was called sick only once', () => {
    const advisor: Advisor = async ({ rows }) => (rows.length === 8 ? said() : undefined);
    return untouched('once', {}, { advisor });
  });

  test('a run without an autopilot, of which nobody is asked', async () => {
    const { autopilot: _, autopilotEvery: __, autopilotWait: ___, ...plain } = config;
    const advisor: Advisor = () => Promise.reject(new Error('asked'));
    const { dir } = await train({ env: 'pendulum', preset: {}, config: plain, root, id: 'off', advisor });
    expect(stepsOf(dir)).toEqual([]);
  });

  test('more than a few steps', async () => {
    await begin('few', { autopilotSteps: 1 }, { advisor: always });
    expect(stepsOf(dirOf('few'))).toMatchObject([{ action: 'set' }]);
    expect(existsSync(dirOf('few-auto1'))).toBe(false);
  });

  test('a setting that a person has set back', async () => {
    // Killed after the step, and set back by hand.
    const onRow = (row: Readonly<Record<string, number>>): void => {
      if (row['train/iteration'] === 11) throw new Error('killed');
    };
    await expect(begin('by-hand', {}, { onRow })).rejects.toThrow('killed');
    const dir = dirOf('by-hand');
    const back = { iteration: 11, key: 'learningRate', value: 0.1, by: 'page' };
    writeAdjustments(dir, [...readAdjustments(dir), back]);
    await resume(dir, { advisor: ofRate });
    expect(stepsOf(dir)).toHaveLength(1);
    expect(existsSync(dirOf('by-hand-auto1'))).toBe(false);
    expect(rateOf(dir).slice(10)).toEqual(Array(ITERATIONS - 10).fill(0.1));
  });
});

describe('taking a step back', () => {
  test('a run that goes on as another one says so, and goes on itself without an autopilot', async () => {
    const parent = dirOf('twice');
    await expect(resume(parent, { advisor: always })).rejects.toThrow(
      /twice goes on as twice-auto1, which is there: .*resume \S*twice-auto1 goes on with it, .*resume .* --set autopilot=false with this one as it was/,
    );
    const { id, status } = await resume(parent, { config: { autopilot: false } });
    expect({ id, status }).toEqual({ id: 'twice', status: 'finished' });
  });
});

test('without anybody to ask it is an error, before anything is trained', async () => {
  const asked = train({ env: 'pendulum', preset: {}, config, root, id: 'nobody' });
  await expect(asked).rejects.toThrow(ConfigError);
  await expect(asked).rejects.toThrow(/^autopilot has nobody to ask here/);
  expect(existsSync(dirOf('nobody'))).toBe(false);
});

test('with the doctor a run with a rate of .1 learns', async () => {
  const { dir, id } = await piloted.train({
    env: 'CartPole-v1',
    preset: {},
    root,
    id: 'sabotaged',
    config: {
      ...{ tensorboard: false, csv: false, record: false, seed: 1, threads: 1, workers: 0, autopilot: true },
      ...{ envs: 8, stepsPerRollout: 128, minibatchSize: 256, gamma: 0.98, gaeLambda: 0.8, guard: null },
      ...{ learningRate: 0.1, steps: 30_720 },
    },
  });
  expect(id).toMatch(/^sabotaged-auto1/);
  expect(stepsOf(dirOf('sabotaged'))).toMatchObject([
    { cause: 'learning-rate-too-high', changes: [{ key: 'learningRate', from: 0.1 }] },
  ]);
  const before = readRows(dirOf('sabotaged')).items.at(-1)!['episode/return'];
  expect(before).toBeLessThan(60);
  expect(readRows(dir).items.at(-1)!['episode/return']).toBeGreaterThan(150);
});

test('the judge is told from which row on a person has changed a setting, and of nothing else', async () => {
  const told: [rows: number, changed: number][] = [];
  const advisor: Advisor = async ({ rows, changed }) => {
    told.push([rows.length, changed]);
    return undefined;
  };
  const first = new AbortController();
  const onRow = (row: Readonly<Record<string, number>>): void => {
    if (row['train/iteration'] === 10) first.abort();
  };
  const { dir } = await begin('changed', { steps: 32 * 16 }, { advisor, onRow, signal: first.signal });
  expect(told).toEqual([
    [4, 0],
    [8, 0],
  ]);
  told.length = 0;
  // To go on is no change; another rate is one.
  const second = new AbortController();
  const until = (row: Readonly<Record<string, number>>): void => {
    if (row['train/iteration'] === 13) second.abort();
  };
  await resume(dir, { advisor, onRow: until, signal: second.signal });
  expect(told).toEqual([[12, 0]]);
  await resume(dir, { advisor, config: { learningRate: 0.2 } });
  expect(told.slice(1)).toEqual([[16, 13]]);
});
