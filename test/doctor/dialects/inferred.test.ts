/** Settings that a log tells without naming them, and names that mean another thing in another trainer. */
import { describe, expect, it } from 'vitest';
import { objectiveOf } from '../../../src/doctor/canonical.ts';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { readContent } from '../support/files.ts';
import { scalarFile, summaryEvent, textValue } from '../support/tensorboard-file.ts';
import { events, table } from './support/raw.ts';

const list = Array.from({ length: 12 }, (_, i) => i + 1);

describe('epochs of Stable-Baselines3', () => {
  const row = (i: number, updates: number | undefined) => ({
    'time/iterations': i,
    'time/total_timesteps': 2048 * i,
    'time/fps': 900,
    'train/approx_kl': 0.01,
    'rollout/ep_rew_mean': i,
    ...(updates === undefined ? {} : { 'train/n_updates': updates }),
  });

  it('of a model that was loaded are those of its own updates', () => {
    const rows = list.map(i => row(i, i === 1 ? undefined : 1470 + 10 * (i - 1)));
    expect(toCanonical(table(rows)).config.epochs).toBe(10);
    // One row alone tells nothing.
    expect(toCanonical(table(rows.slice(0, 2))).config.epochs).toBeUndefined();
  });

  it('of a new one count from the first row on', () => {
    const rows = list.map(i => row(i, i === 1 ? undefined : 10 * (i - 1)));
    expect(toCanonical(table(rows)).config.epochs).toBe(10);
    expect(toCanonical(table(rows.slice(0, 2))).config.epochs).toBe(10);
  });
});

it('approx_kl of an old Stable-Baselines3 is the mean log-ratio, which may be negative', () => {
  const kl = (value: (i: number) => number) =>
    toCanonical(
      table(
        list.map(i => ({
          'time/iterations': i,
          'time/total_timesteps': 2048 * i,
          'time/fps': 900,
          'train/approx_kl': value(i),
          'rollout/ep_rew_mean': i,
        })),
      ),
    );
  const old = kl(i => (i % 3 === 0 ? -0.001 : 0.004));
  expect(old.series.get('kl/step')?.kl?.estimator).toBe('k1');
  expect(old.notes.join()).toContain('417');
  // What rounding does is no sign of it.
  const usual = kl(i => (i % 3 === 0 ? -1e-9 : 0.004));
  expect(usual.series.get('kl/step')?.kl?.estimator).toBe('k3');
  expect(usual.notes.join()).not.toContain('417');
});

it('returns of scripts that name them in their own way', () => {
  const found = (theirs: string): string | undefined =>
    [...toCanonical(table(list.map(i => ({ step: i, pg_loss: 0.1, [theirs]: i })))).series].find(
      ([, series]) => series.theirs === theirs,
    )?.[0];
  expect(
    ['100rew', 'Rewards/mean_episodes', 'rew', 'Loss/v', 'vl_loss', 'Len/mean_episodes'].map(found),
  ).toEqual([
    'episode/return',
    'episode/return',
    'reward/mean',
    'loss/value',
    'loss/value',
    'episode/length',
  ]);
  // Of an evaluation, and of single episodes: not the return of training.
  expect(['test100rew', 'Rewards/max_episodes'].map(found)).toEqual([undefined, undefined]);
});

it('a return by what counts it, of the task itself, and of wins', () => {
  const objective = (...names: string[]): string | undefined =>
    objectiveOf(
      toCanonical(table(list.map(i => Object.fromEntries([['step', i], ...names.map(name => [name, i])])))),
    )?.theirs;
  expect(objective('Episodic Reward/episode', 'Reward/(t)')).toBe('Episodic Reward/episode');
  expect(objective('AverageReturnShaped', 'TrueAverageReturn')).toBe('TrueAverageReturn');
  expect(objective('reward_mean_norm', 'reward_mean_raw')).toBe('reward_mean_raw');
  expect(objective('pg_loss', 'player0_winrate')).toBe('player0_winrate');
  // Wins count where nothing else tells how it goes.
  expect(objective('win_rate', 'reward')).toBe('reward');
});

it('of several agents the first one speaks, where they have losses of their own', () => {
  const run = (names: readonly string[]) =>
    toCanonical(table(list.map(i => Object.fromEntries(names.map(name => [name, i])))));
  const several = run(['Episode', 'Reward 1', 'Reward 2', 'Critic Loss 1', 'Critic Loss 2', 'Actor Loss 2']);
  expect(several.series.get('episode/return')?.theirs).toBe('Reward 1');
  expect(several.series.get('loss/value')?.theirs).toBe('Critic Loss 1');
  expect(several.unknown).toEqual(['Reward 2', 'Critic Loss 2', 'Actor Loss 2']);
  // Numbered rewards alone may be parts of one.
  expect(objectiveOf(run(['Episode', 'Reward 1', 'Reward 2', 'loss']))).toBeUndefined();
});

it('a return with two values does not stand before evaluations that tell how it went', () => {
  const rows = list.map(i => ({
    'time/total_timesteps': 2048 * i,
    'train/approx_kl': 0.004,
    'eval/mean_reward': i,
    ...(i < 3 ? { 'rollout/ep_rew_mean': 1 } : {}),
  }));
  expect(objectiveOf(toCanonical(table(rows)))?.id).toBe('eval/return');
});

describe('Stable-Baselines 2', () => {
  const tags = (
    factor: (i: number) => number,
    entropy: (i: number) => number,
    range?: (i: number) => number,
  ) => ({
    'loss/approximate_kullback-leibler': list.map(i => [i, 0.01] as const),
    'loss/clip_factor': list.map(i => [i, factor(i)] as const),
    'loss/entropy_loss': list.map(i => [i, entropy(i)] as const),
    'loss/value_function_loss': list.map(i => [i, 1] as const),
    ...(range === undefined ? {} : { 'input_info/clip_range': list.map(i => [i, range(i)] as const) }),
  });

  it('clip_factor of PPO1 is its clip range, and its entropy a loss', () => {
    const annealed = (i: number): number => 0.2 * (1 - i / 20);
    for (const range of [annealed, undefined]) {
      const run = toCanonical(events(tags(annealed, i => -0.014 + 0.0001 * i, range)));
      expect(run.series.has('policy/clip_fraction')).toBe(false);
      expect(run.series.get('train/clip_range')?.series.values[0]).toBeCloseTo(0.19);
      expect(run.series.has('policy/entropy')).toBe(false);
      expect(run.notes.join()).toMatch(/unknown coefficient/);
    }
    const known = toCanonical(
      events(
        tags(annealed, () => -0.014),
        { config: new Map([['entcoeff', 0.01]]) },
      ),
    );
    expect(known.series.get('policy/entropy')?.series.values[3]).toBeCloseTo(1.4);
  });

  it('clip_factor of PPO2 is its clip fraction, and its entropy is one', () => {
    const run = toCanonical(
      events(
        tags(
          i => 0.05 + 0.02 * (i % 3),
          () => 1.4,
          () => 0.2,
        ),
      ),
    );
    expect(run.series.get('policy/clip_fraction')?.theirs).toBe('loss/clip_factor');
    expect(run.series.get('policy/entropy')?.series.values[0]).toBe(1.4);
  });
});

describe('TRL', () => {
  const rows = (beta: number, noise = 0, cap = 128) =>
    list.map(i => ({
      step: i,
      kl: 0.2 * i,
      loss: Number((beta * 0.2 * i * (1 + noise * (i % 2))).toFixed(4)),
      reward: 0.1 * i,
      reward_std: 0.3,
      'completions/mean_length': 90 + i,
      'completions/max_length': i < 4 ? 100 + i : cap,
      'completions/clipped_ratio': i < 4 ? 0 : 0.1,
    }));

  it('the weight of the KL is its share of the loss, where that is one number', () => {
    expect(toCanonical(table(rows(0.04))).config.refCoef).toBe(0.04);
    expect(toCanonical(table(rows(0.01))).config.refCoef).toBe(0.01);
    expect(toCanonical(table(rows(0.04, 0.5))).config.refCoef).toBeUndefined();
    expect(toCanonical(table(rows(0.0001))).config.refCoef).toBeUndefined();
    expect(toCanonical(table(rows(0.04), { config: new Map([['beta', 0.1]]) })).config.refCoef).toBe(0.1);
  });

  it('the cap is the length at which completions are cut, again and again', () => {
    expect(toCanonical(table(rows(0.04))).config.maxCompletionLength).toBe(128);
    const free = rows(0.04).map(row => ({ ...row, 'completions/clipped_ratio': 0 }));
    expect(toCanonical(table(free)).config.maxCompletionLength).toBeUndefined();
  });

  it('the arguments in the event file are settings', async () => {
    const args = JSON.stringify(
      { learning_rate: 1e-6, beta: 0.02, max_completion_length: 256, num_generations: 8 },
      undefined,
      2,
    );
    const log = Buffer.concat([
      scalarFile(
        list.map(step => ({
          step,
          values: {
            'train/reward': step,
            'train/reward_std': 0.1,
            'train/completions/mean_length': 9,
            'train/kl': 0.1,
          },
        })),
      ),
      summaryEvent({ step: 0 }, textValue('args/text_summary', args)),
      summaryEvent(
        { step: 0 },
        textValue('model_config/text_summary', '{"vocab_size": 5, "temperature": 9}'),
      ),
    ]);
    const run = toCanonical(await readContent(log));
    expect(run.config).toMatchObject({
      learningRate: 1e-6,
      refCoef: 0.02,
      maxCompletionLength: 256,
      groupSize: 8,
    });
  });
});

describe('unknown trainers', () => {
  const row = (name: string, more: Record<string, number> = {}) =>
    table(list.map(i => ({ step: i, [name]: 0.1 * i, reward: i, ...more })));

  it.each(['kl', 'mean_kl', 'policy/kl', 'policy_kl', 'avg_kl_divergence', 'kl_loss', 'token_kl'])(
    '%s of a language model is to the reference',
    name => {
      const run = toCanonical(row(name, { response_length: 50 }));
      expect(run.kind).toBe('language-model');
      expect(run.series.get('kl/ref')?.theirs).toBe(name);
      expect(run.series.has('kl/step')).toBe(false);
    },
  );

  it.each(['approx_kl', 'ppo_kl', 'step_kl'])('%s is of the step, of a language model too', name => {
    expect(toCanonical(row(name, { response_length: 50 })).series.get('kl/step')?.theirs).toBe(name);
  });

  it('a mean KL of an agent is of the step', () => {
    expect(toCanonical(row('mean_kl')).series.get('kl/step')?.theirs).toBe('mean_kl');
  });
});

it("verl's score and its reward with the KL penalty in it are two metrics, also where the second alone is logged", () => {
  const both = toCanonical(
    table(
      list.map(i => ({
        step: i,
        'actor/ppo_kl': 0,
        'critic/score/mean': 1 - i / 20,
        'critic/rewards/mean': i / 20,
        'actor/pg_clipfrac': 0,
      })),
    ),
  );
  expect(both.series.get('reward/mean')?.theirs).toBe('critic/score/mean');
  expect(both.series.get('reward/penalised')?.theirs).toBe('critic/rewards/mean');
  const one = toCanonical(
    table(
      list.map(i => ({ step: i, 'actor/ppo_kl': 0, 'critic/rewards/mean': i / 20, 'actor/pg_clipfrac': 0 })),
    ),
  );
  expect(one.series.has('reward/mean')).toBe(false);
});
