/** Changes to a run under way: they hold, they are told, and a run that is killed and resumed makes them again. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PpoSettings } from '../../src/algos/ppo/settings.ts';
import { fork, resume, train } from '../../src/algos/runs.ts';
import {
  adjustedAt,
  askRun,
  checkpointDir,
  openInbox,
  openRun,
  type RunAnswer,
  type RunRequest,
  readAdjustments,
  readEvents,
  readRows,
  readTrajectory,
} from '../../src/runs/index.ts';
import { scratch } from './support/make-run.ts';

const config: PpoSettings = {
  envs: 2,
  stepsPerRollout: 32,
  minibatchSize: 32,
  epochs: 2,
  hidden: [8],
  checkpointEvery: 5,
  steps: 64 * 14,
  learningRate: 0.003,
  learningRateSchedule: 'constant',
  gamma: 0.99,
  normaliseObservations: true,
  klCoef: 0.1,
  klCoefRule: 'adaptive',
  csv: false,
  tensorboard: false,
};

class Killed extends Error {}

/** Asks at some rows, and dies at one: without a checkpoint, as by a kill. */
function script(
  asks: Readonly<Record<number, RunRequest>>,
  answers: Promise<RunAnswer>[],
  diesAt = Number.POSITIVE_INFINITY,
) {
  return {
    onRow(row: Readonly<Record<string, number>>, { dir }: { dir: string }) {
      const iteration = row['train/iteration'];
      const request = asks[iteration];
      if (request !== undefined) answers.push(askRun(dir, request, { timeoutMs: 20_000 }));
      if (iteration === diesAt) throw new Killed('killed');
    },
  };
}

const set = (key: string, value: number | null): RunRequest => ({ type: 'set', key, value, by: 'page' });
const asks = {
  3: set('learningRate', 0.0005),
  7: set('guard', 0.002),
  8: set('klCoef', 0.7),
  11: set('gamma', 0.9),
};
const runIn = (root: string): string => join(root, readdirSync(root)[0]);

describe('set', () => {
  test('holds from the next iteration on; killed twice and resumed, all is to the bit as if it had not been', async () => {
    const [calm, killed] = [join(scratch(), 'a'), join(scratch(), 'b')];
    const answers: Promise<RunAnswer>[] = [];
    await train({ env: 'pendulum', config, root: calm, ...script(asks, answers) });
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ done: true });
    expect((await answers[0]).message).toBe('learningRate is 0.0005 from iteration 4 on, was 0.003');

    // The second and third change are after the last checkpoint that a resume finds, the fourth is after both kills.
    await expect(train({ env: 'pendulum', config, root: killed, ...script(asks, [], 9) })).rejects.toThrow(
      'killed',
    );
    const dir = runIn(killed);
    await expect(resume(dir, script({}, [], 9))).rejects.toThrow('killed');
    await resume(dir, script({ 11: asks[11] }, []));

    const [a, b] = [runIn(calm), dir];
    const [expected, got] = [readTrajectory(a), readTrajectory(b)];
    expect(got.rows).toEqual(expected.rows);
    expect(got.events).toEqual(expected.events);
    expect(readAdjustments(b)).toEqual(readAdjustments(a));
    const last = checkpointDir(a, 64 * 14);
    for (const file of readdirSync(last)) {
      if (file === 'checkpoint.json') continue; // has the time
      const same = readFileSync(join(last, file)).equals(readFileSync(join(checkpointDir(b, 64 * 14), file)));
      expect(same, file).toBe(true);
    }

    const rows = readRows(a).items;
    expect(rows.map(row => row['train/lr'].toPrecision(2)).slice(0, 5)).toEqual([
      '0.0030',
      '0.0030',
      '0.0030',
      '0.00050',
      '0.00050',
    ]);
    expect(rows[8]['kl/coef']).toBe(0.7);
    expect(Math.max(...rows.slice(7).map(row => row['kl/step']))).toBeLessThanOrEqual(0.002 * 1.001);
    const acts = readEvents(a).items.filter(({ type }) => type === 'act');
    expect(acts.map(({ iteration, by, what }) => [iteration, by, what])).toEqual([
      [4, 'page', 'learningRate 0.003 to 0.0005'],
      [8, 'page', 'guard 0.03 to 0.002'],
      [9, 'page', 'klCoef 0.1 to 0.7'],
      [12, 'page', 'gamma 0.99 to 0.9'],
    ]);
    // What was asked for at the beginning stays as it was written.
    expect(openRun(a).manifest.config.learningRate).toBe(0.003);
  });

  test('a run without changes does the same with and without an inbox', async () => {
    const root = scratch();
    const small = { ...config, steps: 64 * 3 };
    await train({ env: 'pendulum', config: small, root: join(root, 'x') });
    mkdirSync(join(root, 'y'));
    await train({
      env: 'pendulum',
      config: small,
      root: join(root, 'y'),
      onStart: ({ dir }) => mkdirSync(join(dir, 'inbox'), { recursive: true }),
    });
    expect(readTrajectory(runIn(join(root, 'x')))).toEqual(readTrajectory(runIn(join(root, 'y'))));
  });

  test('what cannot be is refused with a sentence, and the run goes on', async () => {
    const root = scratch();
    const answers: Promise<RunAnswer>[] = [];
    const wrong = {
      1: set('epochs', 3),
      2: set('learningRate', -1),
      3: set('nonsense', 1),
      4: set('learningRate', null),
    };
    await train({ env: 'pendulum', config: { ...config, steps: 64 * 6 }, root, ...script(wrong, answers) });
    const [epochs, negative, unknown, nothing] = await Promise.all(answers);
    expect(epochs).toEqual({
      done: false,
      message: 'epochs cannot change in a run that is under way: start a new run with it',
    });
    expect(negative).toMatchObject({ done: false, message: expect.stringMatching(/^learningRate is -1/) });
    expect(unknown).toMatchObject({ done: false, message: expect.stringContaining('nonsense') });
    expect(nothing).toMatchObject({ done: false, message: expect.stringContaining('learningRate is null') });
    const dir = runIn(root);
    expect(openRun(dir).manifest.status).toBe('finished');
    expect(existsSync(join(dir, 'adjustments.json'))).toBe(false);
  });

  test('what is set on resuming goes before; going back on purpose does without', async () => {
    const root = scratch();
    await expect(train({ env: 'pendulum', config, root, ...script(asks, [], 9) })).rejects.toThrow('killed');
    const dir = runIn(root);
    await resume(dir, { config: { guard: 0.03 } });
    expect(readAdjustments(dir).map(({ key }) => key)).toEqual(['learningRate', 'klCoef']);
    expect(readEvents(dir).items.filter(({ type }) => type === 'act')).toHaveLength(2);
    await resume(dir, { from: 10, discardLater: true, config: { steps: 64 * 16 } }).catch(() => undefined);
    await resume(dir, { from: 64 * 10, discardLater: true, config: { steps: 64 * 16 } });
    expect(readAdjustments(dir).map(({ key }) => key)).toEqual(['learningRate', 'klCoef']);
    expect(adjustedAt(readAdjustments(dir), 8)).toEqual({ learningRate: 0.0005 });
    expect(adjustedAt(readAdjustments(dir), 9)).toEqual({ learningRate: 0.0005, klCoef: 0.7 });
  });
});

describe('stop', () => {
  test('ends the run after its iteration with a checkpoint, and then answers', async () => {
    const root = scratch();
    const answers: Promise<RunAnswer>[] = [];
    const result = await train({
      env: 'pendulum',
      config,
      root,
      ...script({ 3: { type: 'stop', by: 'page' } }, answers),
    });
    expect(result).toMatchObject({ status: 'stopped', step: 64 * 3 });
    expect(await answers[0]).toEqual({ done: true, message: 'the run has stopped, with a checkpoint' });
    const { manifest } = openRun(runIn(root));
    expect(manifest).toMatchObject({ status: 'stopped', reason: 'stopped from the page', step: 64 * 3 });
    expect(existsSync(checkpointDir(runIn(root), 64 * 3))).toBe(true);
  });
});

describe('inbox', () => {
  test('nobody answers: the request is taken back', async () => {
    const dir = scratch();
    const answer = await askRun(dir, { type: 'stop', by: 'page' }, { timeoutMs: 200 });
    expect(answer).toMatchObject({ done: false, message: expect.stringContaining('did not answer') });
    expect(readdirSync(join(dir, 'inbox'))).toEqual([]);
  });

  test('what was left for a process that is gone is not done by the next', () => {
    const dir = scratch();
    mkdirSync(join(dir, 'inbox'));
    const id = '00000000-0000-4000-8000-000000000000';
    writeFileSync(join(dir, 'inbox', `${id}.json`), '{"type":"stop","by":"page"}');
    const inbox = openInbox(dir);
    expect(inbox.take()).toEqual([]);
    writeFileSync(join(dir, 'inbox', `${id}.json`), '{"type":"stop","by":"page"}');
    expect(inbox.take()).toEqual([{ id, request: { type: 'stop', by: 'page' } }]);
    expect(inbox.take()).toEqual([]);
  });

  test.each([
    '',
    '{',
    '{"type":"run","by":"x"}',
    '{"type":"set","key":"../x","value":1,"by":"x"}',
    '"stop"',
    'x'.repeat(100_000),
  ])('a request that is %s is refused, not done', async text => {
    const dir = scratch();
    const inbox = openInbox(dir);
    mkdirSync(join(dir, 'inbox'), { recursive: true });
    const id = '00000000-0000-4000-8000-000000000001';
    writeFileSync(join(dir, 'inbox', `${id}.json`), text);
    writeFileSync(join(dir, 'inbox', 'notes.txt'), 'not a request');
    expect(inbox.take()).toEqual([]);
    const answer = JSON.parse(readFileSync(join(dir, 'inbox', `${id}.answer`), 'utf8')) as RunAnswer;
    expect(answer.done).toBe(false);
    expect(answer.message).toContain('cannot be understood');
  });
});

describe('fork', () => {
  test('a new run from a checkpoint of another: parent named, steps go on, the other untouched', async () => {
    const root = scratch();
    const { dir: parentDir, id } = await train({
      env: 'pendulum',
      config,
      root,
      ...script({ 3: asks[3] }, []),
    });
    const before = readFileSync(join(parentDir, 'metrics.jsonl'));
    const child = await fork(parentDir, {
      from: 64 * 10,
      config: { targetKl: 0.004, steps: 64 * 18 },
      id: 'child',
    });
    const { manifest } = openRun(child.dir);
    expect(manifest.parent).toEqual({ id, step: 64 * 10 });
    // What was changed by hand in the parent holds in the child.
    expect(manifest.config).toMatchObject({ learningRate: 0.0005, targetKl: 0.004, steps: 64 * 18 });
    const rows = readRows(child.dir).items;
    expect(rows.map(row => row['train/iteration'])).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(rows.map(row => row['train/step'])).toEqual([11, 12, 13, 14, 15, 16, 17, 18].map(n => 64 * n));
    expect(readFileSync(join(parentDir, 'metrics.jsonl')).equals(before)).toBe(true);
  });

  test('with nothing changed it does what the parent did', async () => {
    const root = scratch();
    const plain = { ...config, klCoefRule: 'fixed' as const };
    const { dir } = await train({ env: 'pendulum', config: plain, root });
    const child = await fork(dir, { from: 64 * 10, id: 'same' });
    const keys = ['kl/step', 'loss/value', 'policy/entropy', 'reward/mean', 'grad/norm'];
    const pick = (row: Readonly<Record<string, number>>): unknown[] => keys.map(key => row[key]);
    expect(readRows(child.dir).items.map(pick)).toEqual(readRows(dir).items.slice(10).map(pick));
  });

  test('killed before its first own checkpoint it goes on from the parent', async () => {
    const root = scratch();
    const { dir } = await train({ env: 'pendulum', config, root });
    const options = { from: 64 * 10, config: { steps: 64 * 16 } };
    await expect(fork(dir, { ...options, id: 'killed', ...script({}, [], 3) })).rejects.toThrow('killed');
    await resume(join(root, 'killed'));
    const calm = await fork(dir, { ...options, id: 'calm' });
    expect(readTrajectory(join(root, 'killed')).rows).toEqual(readTrajectory(calm.dir).rows);
  });

  test('what cannot be is refused before anything is made', async () => {
    const root = scratch();
    const { dir } = await train({ env: 'pendulum', config, root });
    await expect(fork(dir, { config: { hidden: [16] } })).rejects.toThrow(/hidden/);
    await expect(fork(dir)).rejects.toThrow(
      /steps 896 is no more than the 896 that were done at checkpoint 896: give more/,
    );
    await expect(fork(dir, { from: 5 })).rejects.toThrow(/no checkpoint 5/);
    expect(readdirSync(root)).toHaveLength(1);
  });
});
