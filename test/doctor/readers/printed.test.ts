/** What long-winded programs print: rows that come late, settings over many lines, lists, copies that W&B keeps. */
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { sb3Table } from '../support/archives.ts';
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

describe("a trainer's tables behind what others put before each line", () => {
  const rows = Array.from({ length: 4 }, (_, i) =>
    sb3Table({ 'rollout/ep_rew_mean': i + 0.5, 'time/total_timesteps': 2048 * (i + 1) }),
  ).join('');
  const before = (prefix: string, suffix = ''): string =>
    rows
      .trimEnd()
      .split('\n')
      .map(line => `${prefix}${line}${suffix}\n`)
      .join('');

  it.each([
    ['docker-compose', before('trainer-1  | ')],
    ['kubernetes', before('2026-01-01T10:00:00.123456789Z stdout F ')],
    ['a clock', before('[10:00:00] ')],
    ["Python's logging", before('2026-01-01 10:00:00,123 - trainer - INFO - ')],
    ['a quote', before('> ')],
    ['a list of texts', before('"', '\\n",')],
  ])('%s', async (_, text) => {
    const run = await readContent(text);
    expect(values(run, 'rollout/ep_rew_mean')).toEqual([0.5, 1.5, 2.5, 3.5]);
    expect(values(run, 'time/total_timesteps')).toEqual([2048, 4096, 6144, 8192]);
  });

  it('in a document of a directory are found, and its other tables are not', async () => {
    const root = writeTree(temporaryDirectory(), {
      'docs/run.md': `# A run\n\n\`\`\`\n${rows}\`\`\`\n`,
      'example/readme.md': `An episode ends.\n${sb3Table({ 'rollout/ep_rew_mean': 1, 'time/total_timesteps': 2048 })}`,
      'readme.md': '| a | b |\n------------\n| c | 1 |\n| d | 2 |\n',
    });
    expect((await findRuns(root)).candidates.map(one => relative(root, one.path))).toEqual(['docs']);
  });
});

describe('rows of several lines', () => {
  it('are put together where a counter opens them', async () => {
    const text = [1, 2, 3, 4]
      .map(
        i =>
          `======== Iteration ${i}/100 ========\n  Mean reward: ${i}.5\n  Policy loss: 0.${i}\n  KL: 0.0${i} \n\nsome words\n`,
      )
      .join('');
    const run = await readContent(text);
    expect(values(run, 'iteration')).toEqual([1, 2, 3, 4]);
    expect(values(run, 'Mean reward')).toEqual([1.5, 2.5, 3.5, 4.5]);
    expect(values(run, 'KL')).toEqual([0.01, 0.02, 0.03, 0.04]);
  });

  it('of DeepSpeed-Chat have the reward below the losses', async () => {
    const text = [0, 1, 2, 3]
      .map(
        i =>
          `Epoch: 0 | Step: ${i} | PPO Epoch: 1 | Actor Loss: 0.${i}5 | Critic Loss: 1.${i} | Unsupervised Loss: 0.0\n|E2E latency=5.14s |Gather latency=0.00s\nAverage reward score: ${i}.25\n----------------------------------------\n`,
      )
      .join('');
    const run = toCanonical(await readContent(text));
    expect(run.trainer).toBe('deepspeed-chat');
    expect([...run.series.get('reward/mean')!.series.values]).toEqual([0.25, 1.25, 2.25, 3.25]);
    expect([...run.series.get('loss/policy')!.series.x]).toEqual([0, 1, 2, 3]);
  });

  it('of a frame are its rows, and what pandas leaves out is missing', async () => {
    const rows = [0, 1, 2, 3, 97, 98, 99].map(
      i => `${String(i).padEnd(4)}${String(100 * i).padStart(6)}  ${i}.5   0.0${i}`,
    );
    rows.splice(4, 0, '..     ...  ...   ...');
    const run = await readContent(
      `      step  reward     kl\n${rows.join('\n')}\n\n[100 rows x 3 columns]\n`,
    );
    expect(values(run, 'step')).toEqual([0, 100, 200, 300, 9700, 9800, 9900]);
    expect(values(run, 'reward')[6]).toBe(99.5);
  });
});
