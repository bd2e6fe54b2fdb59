/** Logs in the shapes in which people leave them: exports of web pages, JSON documents, lines they print themselves. */
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';

const list = Array.from({ length: 6 }, (_, i) => i);

describe("scalars that TensorBoard's page exported", () => {
  const csv = (f: (i: number) => number): string =>
    `Wall time,Step,Value\n${list.map(i => `${1_700_000_000 + i},${i * 2048},${f(i)}`).join('\n')}\n`;

  it('of one run are one run, under their own names', async () => {
    const root = writeTree(temporaryDirectory(), {
      'run-PPO_1-tag-train_approx_kl.csv': csv(() => 0.01),
      'run-PPO_1-tag-rollout_ep_rew_mean.csv': csv(i => 10 * i),
    });
    const run = await readOnly(root);
    expect(run.axis).toBe('step');
    expect(points(run, 'rollout/ep_rew_mean').slice(0, 2)).toEqual([
      [0, 0],
      [2048, 10],
    ]);
    expect(values(run, 'train/approx_kl')).toHaveLength(6);
    expect(toCanonical(run)).toMatchObject({ trainer: 'stable-baselines3', unit: 'steps' });
  });

  it('of two runs are two', async () => {
    const root = writeTree(temporaryDirectory(), {
      'run-a-tag-losses_approx_kl.csv': csv(() => 0.01),
      'run-b-tag-losses_approx_kl.csv': csv(() => 0.02),
    });
    expect((await findRuns(root)).candidates).toHaveLength(2);
  });

  it('are read from JSON, and named by the file', async () => {
    const triples = JSON.stringify(list.map(i => [1_700_000_000 + i, i * 100, i]));
    const root = writeTree(temporaryDirectory(), { 'run-.-tag-Train_mean_reward.json': triples });
    const run = await readOnly(join(root, 'run-.-tag-Train_mean_reward.json'));
    expect(points(run, 'Train/mean_reward')[5]).toEqual([500, 5]);
  });

  it('whose steps go back are put in order, and what is repeated counts as it was last', async () => {
    const steps = [0, 100, 200, 300, 400, 200, 300, 400, 500, 600];
    const rows = steps.map((step, i) => [1_700_000_000 + i, step, i]);
    const wanted = [
      [0, 0],
      [100, 1],
      [200, 5],
      [300, 6],
      [400, 7],
      [500, 8],
      [600, 9],
    ];
    const root = writeTree(temporaryDirectory(), {
      'a/run-a-tag-train_approx_kl.csv': `Wall time,Step,Value\n${rows.join('\n')}\n1700000000,inf,3\n`,
      'b/log.json': JSON.stringify({ 'train/approx_kl': rows, 'train/loss': rows }, undefined, 1),
    });
    for (const file of ['a/run-a-tag-train_approx_kl.csv', 'b/log.json']) {
      const run = await readOnly(join(root, file));
      expect(points(run, 'train/approx_kl')).toEqual(wanted);
      expect(run.restarts).toEqual([200]);
    }
  });
});

describe("charts that W&B's page exported", () => {
  const header = ['Step', 'fast - train/kl', 'fast - train/kl__MIN', 'fast - train/kl__MAX'];

  it('lose the name of the run and the ends of the range', async () => {
    const rows = list.map(i => `"${5 * i}","${0.01 * i}","0","1"`);
    const run = await readContent(`${header.map(h => `"${h}"`).join(',')}\n${rows.join('\n')}\n`);
    expect([...run.series.keys()].sort()).toEqual(['Step', 'train/kl']);
    const made = toCanonical(run);
    expect(made.unit).toBe('steps');
    expect(made.series.get('kl/step')?.series.x[5]).toBe(25);
  });

  it('of several runs are as many runs, with what all their charts say', async () => {
    const more = [...header, 'slow - train/kl', 'slow - train/kl__MIN', 'slow - train/kl__MAX'];
    const rows = list.map(i => `${i},${i},0,1,${-i},0,1`);
    const root = writeTree(temporaryDirectory(), {
      'kl.csv': `${more.join(',')}\n${rows.join('\n')}\n`,
      'reward.csv': `Step,slow - reward,slow - reward__MIN\n${list.map(i => `${2 * i},${3 * i},0`).join('\n')}\n`,
    });
    const alone = (await findRuns(join(root, 'kl.csv'))).candidates;
    expect(alone.map(one => relative(root, one.path))).toEqual(['kl.csv!/fast', 'kl.csv!/slow']);
    expect(values(await readRun(alone[1]), 'train/kl')).toEqual(list.map(i => 0 - i));
    const both = (await findRuns(root)).candidates;
    expect(both).toHaveLength(2);
    const slow = await readRun(both[1]);
    expect(points(slow, 'train/kl')).toEqual(list.map(i => [i, 0 - i]));
    expect(points(slow, 'reward')).toEqual(list.map(i => [2 * i, 3 * i]));
    expect([...(await readRun(both[0])).series.keys()]).toEqual(['Step', 'train/kl']);
  });

  it('leave other tables with a dash in a name alone', async () => {
    const run = await readContent(`step,a - b\n${list.map(i => `${i},${i}`).join('\n')}\n`);
    expect(values(run, 'a - b')).toEqual(list);
  });
});

describe('JSON documents', () => {
  const row = (i: number) => ({ step: i * 100, mean_reward: i, losses: { value_loss: 2 * i } });

  it.each([
    ['rows inside', { config: { lr: 3e-4 }, metrics: list.map(row) }],
    [
      'rows by their step',
      Object.fromEntries(list.map(i => [i * 100, { mean_reward: i, losses: { value_loss: 2 * i } }])),
    ],
    [
      'columns',
      { step: list.map(i => i * 100), mean_reward: list, 'losses/value_loss': list.map(i => 2 * i) },
    ],
    [
      'columns further down',
      {
        seed: 1,
        run: { step: list.map(i => i * 100), mean_reward: list, 'losses/value_loss': list.map(i => 2 * i) },
      },
    ],
  ])('with %s are read, on one line and on many', async (_, document) => {
    for (const indent of [0, 2]) {
      const run = await readContent(JSON.stringify(document, null, indent));
      expect(values(run, 'mean_reward')).toEqual(list);
      expect(values(run, 'step')[5]).toBe(500);
      expect([...run.series.keys()].some(name => name.endsWith('value_loss'))).toBe(true);
    }
  });

  it('with objects one after the other are rows, and a last one that is cut is not', async () => {
    const text = list.map(i => JSON.stringify(row(i), null, 2)).join('\n');
    expect(values(await readContent(text), 'mean_reward')).toEqual(list);
    const cut = await readContent(text.slice(0, -10));
    expect(values(cut, 'mean_reward')).toEqual(list.slice(0, 5));
    expect(cut.unfinished).toBe(true);
  });

  it('of triples by tag count their own steps', async () => {
    const run = await readContent(
      JSON.stringify({
        'train/approx_kl': list.map(i => [1.7e9 + i, i * 10, i]),
        'train/loss': [[1.7e9, 0, 1]],
      }),
    );
    expect(points(run, 'train/approx_kl')[5]).toEqual([50, 5]);
  });

  it('with a column that is shorter spread it over the run, and say so', async () => {
    const run = await readContent(JSON.stringify({ reward: list, loss: [1, 2, 3] }));
    expect(points(run, 'loss')).toEqual([
      [2, 1],
      [4, 2],
      [6, 3],
    ]);
    expect(run.notes.join()).toMatch(/loss has fewer values than the longest column \(6\)/);
  });

  it('of settings and vocabularies are no logs', async () => {
    const root = writeTree(temporaryDirectory(), {
      'vocab.txt.json': JSON.stringify({ hello: [1, 2, 3, 4], world: [5, 6, 7, 8] }),
      'model.json': JSON.stringify({ layers: [64, 64, 64], name: 'x' }, null, 2),
    });
    await expect(findRuns(root)).rejects.toThrow(/found none in 2 files/);
  });
});

describe('lines that people print themselves', () => {
  it.each([
    ['pairs', (i: number) => `global_step=${i * 128}, episodic_return=[${i}.5]`, 'episodic_return'],
    [
      'columns',
      (i: number) => `[2024-01-01 10:00:0${i}] Episode ${i} | reward: ${i}.5 | loss: 0.1`,
      'reward',
    ],
    [
      'bars',
      (i: number) => `Train epoch [1/1]: ${i}%|#| ${i}/60 [00:01<00:02], policy_loss=0.1, reward=${i}.5`,
      'reward',
    ],
  ])('as %s are rows', async (_, line, name) => {
    const run = await readContent(`hello\n${list.map(line).join('\nSPS: 100\n')}\n`);
    expect(values(run, name)).toEqual(list.map(i => i + 0.5));
  });

  it('are counted by what they count', async () => {
    const run = await readContent(
      `${list.map(i => `Episode ${i * 10} | reward: ${i} | loss: 1`).join('\n')}\n`,
    );
    const made = toCanonical(run);
    expect(made.unit).toBe('episodes');
    expect(made.series.get('reward/mean')?.series.x[5]).toBe(50);
  });

  it('are left out where a trainer printed its own table', async () => {
    const table = (i: number): string =>
      `-----------\n| train/approx_kl | 0.0${i + 1} |\n| train/loss | 1 |\n-----------\n`;
    const run = await readContent(
      list.map(i => `Eval num_timesteps=${i}, episode_reward=${i}\n${table(i)}`).join(''),
    );
    expect([...run.series.keys()]).toEqual(['train/approx_kl', 'train/loss']);
  });

  it('fewer than three of a kind are talk', async () => {
    await expect(readContent('the reward: 3, the loss: 4\nand so on\nreward: 5, loss: 6\n')).rejects.toThrow(
      /looked for/,
    );
  });
});

describe('printed tables', () => {
  const cells = (i: number): string =>
    `| rollout/        |      |\n|    ep_rew_mean  | ${i}.5 |\n| time/           |      |\n|    total_timesteps | ${i} |\n`;
  const rule = '----------------------\n';

  it.each([
    ['with one rule between two', rule + list.map(i => cells(i) + rule).join('')],
    [
      'with a log’s time before each line',
      list.map(i => (rule + cells(i) + rule).replace(/^/gm, '2024-01-01 10:00:00,123 INFO ')).join('\n'),
    ],
    ['without rules, by empty lines', list.map(cells).join('\n')],
    ['without rules or empty lines', list.map(cells).join('')],
  ])('%s are all read', async (_, text) => {
    expect(values(await readContent(text), 'rollout/ep_rew_mean')).toEqual(list.map(i => i + 0.5));
  });

  it('of rl_games tell epochs, frames and the best reward so far', async () => {
    const line = (i: number): string =>
      `fps step: 120 fps step and policy inference: 90 fps total: 5${i} epoch: ${i + 1}/100 frames: ${(i + 1) * 64}\n${i % 2 === 0 ? `saving next best rewards:  [${i}.5]\n` : ''}`;
    const run = await readContent(list.map(line).join(''));
    expect(points(run, 'rewards/best')).toEqual([
      [1, 0.5],
      [3, 2.5],
      [5, 4.5],
    ]);
    const made = toCanonical(run);
    expect(made).toMatchObject({ trainer: 'rl_games', unit: 'steps' });
    expect(made.series.get('episode/return')?.series.x[2]).toBe(320);
  });
});

describe('cells that are empty to the end', () => {
  it('are told of a CSV and of JSON lines, from which row on', async () => {
    const csv = await readContent('step,loss,reward\n1,2,3\n2,2,3\n3,,4\n4,,5\n');
    expect(csv.blanks?.get('loss')).toEqual({ from: 3, rows: 2, kind: 'empty' });
    const json = await readContent(
      '{"step":1,"loss":2}\n{"step":2,"loss":null}\n{"step":3,"loss":1}\n{"step":4,"loss":null}\n',
    );
    expect(json.blanks?.get('loss')).toEqual({ from: 4, rows: 1, kind: 'null' });
    expect(toCanonical(csv).series.get('loss/total')?.blank).toEqual({
      from: 3,
      rows: 2,
      before: 2,
      kind: 'empty',
    });
  });

  it('are not told of a name that is only missing', async () => {
    expect((await readContent('{"step":1,"loss":2}\n{"step":2}\n{"step":3}\n')).blanks).toBeUndefined();
  });
});

it('columns by their index, as pandas writes a table, are columns', async () => {
  const column = (f: (i: number) => number | null): Record<string, number | null> =>
    Object.fromEntries(list.map(i => [String(i), f(i)]));
  const run = await readContent(
    JSON.stringify({ step: column(i => 100 * i), loss: column(i => (i === 2 ? null : i / 4)) }),
  );
  expect(values(run, 'step')).toEqual(list.map(i => 100 * i));
  expect(points(run, 'loss')).toEqual(list.filter(i => i !== 2).map(i => [i + 1, i / 4]));
});

it('scalars in files that a person named are one run', async () => {
  const csv = (f: (i: number) => number): string =>
    `Wall time,Step,Value\n${list.map(i => `${1_700_000_000 + i},${i * 2048},${f(i)}`).join('\n')}\n`;
  const root = writeTree(temporaryDirectory(), {
    'PPO_1_train_approx_kl.csv': csv(() => 0.01),
    'PPO_1_rollout_ep_rew_mean.csv': csv(i => 10 * i),
  });
  const run = await readOnly(root);
  expect([...run.series.keys()].sort()).toEqual(['rollout/ep_rew_mean', 'train/approx_kl']);
});
