/** What long-winded programs print: rows that come late, settings over many lines, lists, copies that W&B keeps. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';
import { configRecord, wandbFile } from '../support/wandb-file.ts';

const verlLine = (step: number): string =>
  `step:${step} - actor/ppo_kl:0.0 - actor/pg_clipfrac:0.001 - critic/score/mean:${step / 10}`;
/** More than the beginning that is looked at to tell what a file is. */
const chatter = Array.from(
  { length: 4000 },
  (_, i) => `(worker) loading shard ${i}, think step by step: done`,
);

describe('rows that come late', () => {
  const text = [...chatter, verlLine(1), ...chatter.slice(0, 100), verlLine(2), ''].join('\n');

  it('are found in a file that is named', async () => {
    expect(text.length).toBeGreaterThan(2 ** 17);
    const run = await readContent(text);
    expect(run.format).toBe('verl-console');
    expect(values(run, 'critic/score/mean')).toEqual([0.1, 0.2]);
  });

  it('are found in a directory by the name of a log, and not in other files', async () => {
    const root = writeTree(temporaryDirectory(), { 'run/train.log': text, 'notes/essay': text });
    const { candidates } = await findRuns(root);
    expect(candidates.map(one => one.format)).toEqual(['verl-console']);
    expect(candidates[0].files).toEqual([join(root, 'run/train.log')]);
  });

  it('text without any is still no log', async () => {
    await expect(readContent(chatter.join('\n'))).rejects.toThrow(/found text whose first line is/);
  });
});

describe('settings that are printed before the first row', () => {
  const prefix = '\x1b[36m(main_task pid=7)\x1b[0m ';
  const settings = [
    `${prefix}{'actor_rollout_ref': {'actor': {'clip_ratio': 0.2,`,
    `${prefix}                                 'optim': {'lr': 1e-06,`,
    `${prefix}                                           'total_training_steps': -1}},`,
    `${prefix}                       'rollout': {'n': 8, 'temperature': 0.7}},`,
    `${prefix} 'algorithm': {'adv_estimator': 'grpo',`,
    `${prefix}               'kl_ctrl': {'kl_coef': 0.001, 'type': 'fixed'}}}`,
  ];

  it('are settings, not a row', async () => {
    const run = await readContent([...settings, verlLine(1), verlLine(2), ''].join('\n'));
    expect(run.format).toBe('verl-console');
    expect(values(run, 'step')).toEqual([1, 2]);
    expect(run.series.has('kl_coef')).toBe(false);
    expect(run.config.get('actor_rollout_ref/actor/optim/lr')).toBe(1e-6);
    const { config } = toCanonical(run);
    expect(config).toMatchObject({ learningRate: 1e-6, clipRange: 0.2, groupSize: 8, temperature: 0.7 });
  });

  it('that never end are left out', async () => {
    const run = await readContent([...settings.slice(0, 4), ...chatter, verlLine(1), ''].join('\n'));
    expect(run.config.size).toBe(0);
    expect(values(run, 'step')).toEqual([1]);
  });
});

describe("RSL-RL's lists", () => {
  const block = (iteration: number, reward: string, end = true): string =>
    [
      '#'.repeat(80),
      `\x1b[1m                     Learning iteration ${iteration}/300                     \x1b[0m `,
      '',
      '                       Computation: 226426 steps/s (collection: 0.414s, learning 0.165s)',
      '             Mean action noise std: 1.07',
      '          Mean value_function loss: 0.0586',
      '               Mean surrogate loss: -0.0007',
      '                 Mean entropy loss: 2.9040',
      `                       Mean reward: ${reward}`,
      '               Mean episode length: 28.82',
      '              Episode_Reward/alive: 0.9936',
      '-'.repeat(80),
      `                   Total timesteps: ${131072 * (iteration + 1)}`,
      '                    Iteration time: 0.58s',
      ...(end ? ['                               ETA: 00:02:53', ''] : []),
    ].join('\n');

  it('are rows, in the words of the trainer', async () => {
    const run = await readContent(['[INFO] a banner', block(0, '0.71'), block(1, 'nan'), ''].join('\n'));
    expect(run.format).toBe('console');
    expect(points(run, 'Mean reward')).toEqual([
      [1, 0.71],
      [2, Number.NaN],
    ]);
    expect(values(run, 'iteration')).toEqual([0, 1]);
    expect(values(run, 'Iteration time')).toEqual([0.58, 0.58]);
    const canonical = toCanonical(run);
    expect(canonical.trainer).toBe('rsl_rl');
    expect(canonical.unit).toBe('iterations');
    expect([...canonical.series.keys()]).toEqual(
      expect.arrayContaining([
        'episode/return',
        'episode/length',
        'policy/std',
        'policy/entropy',
        'loss/value',
        'loss/policy',
        'reward/part/alive',
        'time/steps_per_second',
      ]),
    );
    expect(canonical.unknown).toEqual([]);
  });

  it('one that is still being printed is unfinished and not a row', async () => {
    const run = await readContent([block(0, '0.71'), block(1, '0.8', false)].join('\n'));
    expect(values(run, 'Mean reward')).toEqual([0.71]);
    expect(run.unfinished).toBe(true);
  });
});

describe("W&B's copy of what was printed", () => {
  it('stands in for a log without numbers', async () => {
    const root = writeTree(temporaryDirectory(), {
      'run-1/run-abc.wandb': wandbFile([configRecord([[['seed'], '1']])]),
      'run-1/files/output.log': [...chatter, verlLine(1), verlLine(2), ''].join('\n'),
    });
    const run = await readOnly(root);
    expect(values(run, 'critic/score/mean')).toEqual([0.1, 0.2]);
    expect(run.notes.join()).toMatch(/the W&B log has no numbers/);
  });
});

describe("Hugging Face's share of an epoch", () => {
  it('counts nothing: rows do', async () => {
    const rows = [0.1, 0.2, 0.3].map(epoch => `{'loss': 0.1, 'reward': 0.5, 'kl': 0.01, 'epoch': ${epoch}}`);
    const run = toCanonical(await readContent(`${rows.join('\n')}\n`));
    expect(run.unit).toBe('rows');
  });
});
