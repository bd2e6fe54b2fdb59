/** What the user says with a map, which columns count steps, and fixes in the words of each trainer. */
import { describe, expect, it } from 'vitest';
import { dialects, toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { mapProblem } from '../../../src/doctor/dialects/user-map.ts';
import { change } from '../../../src/doctor/rules/words.ts';
import { named, table } from './support/raw.ts';

const rows = Array.from({ length: 5 }, (_, i) => ({ it: 10 * i, approx_kl: 0.01, mean_return: i }));

describe('a map', () => {
  it('to train/step makes that column the axis', () => {
    const made = toCanonical(table(rows), { map: new Map([['it', 'train/step']]) });
    expect(made.unit).toBe('steps');
    expect(made.series.get('kl/step')?.series.x[4]).toBe(40);
    expect(made.notes.join()).not.toMatch(/x is the row/);
  });

  it.each(['step', 'steps'])('to %s is the same', ours => {
    const made = toCanonical(table(rows), { map: new Map([['it', ours]]) });
    expect([made.unit, made.series.get('kl/step')?.series.x[4]]).toEqual(['steps', 40]);
    const twice: [string, string][] = [
      ['it', ours],
      ['approx_kl', 'train/step'],
    ];
    expect(mapProblem(twice)).toMatch(/both .*it.* and .*approx_kl.* are train\/step/);
  });

  it('of two names onto one metric is an error that names both', () => {
    const map = new Map([
      ['approx_kl', 'episode/return'],
      ['mean_return', 'episode/return'],
    ]);
    expect(() => toCanonical(table(rows), { map })).toThrow(
      /both .*approx_kl.* and .*mean_return.* are episode\/return/,
    );
    expect(
      mapProblem([
        ['a', 'kl/step'],
        ['a', 'kl/ref'],
      ]),
    ).toMatch(/is both kl\/step and kl\/ref/);
    expect(
      mapProblem([
        ['a', 'kl/step'],
        ['b', 'kl/ref'],
      ]),
    ).toBeUndefined();
  });
});

describe('a column that counts', () => {
  it.each([
    ['iter', 'iterations'],
    ['iteration', 'iterations'],
    ['Iteration', 'iterations'],
    ['update', 'updates'],
    ['epoch', 'epochs'],
    ['global_step', 'steps'],
    ['timesteps', 'steps'],
    ['Total Timesteps', 'steps'],
    ['total_steps', 'steps'],
    ['env_steps', 'steps'],
    ['Step', 'steps'],
  ])('named %s is x, in %s', (name, unit) => {
    const made = toCanonical(table(rows.map(({ it: count, ...rest }) => ({ [name]: count, ...rest }))));
    expect(made.unit).toBe(unit);
    expect(made.series.get('kl/step')?.series.x[4]).toBe(40);
    expect(made.unknown).toEqual([]);
  });
});

describe('a fix', () => {
  const names: Readonly<Record<string, readonly string[]>> = {
    keel: ['kl/step', 'episode/return'],
    'stable-baselines3': ['train/approx_kl', 'rollout/ep_rew_mean', 'time/total_timesteps'],
    cleanrl: ['losses/approx_kl', 'charts/episodic_return', 'charts/SPS'],
    rllib: ['info/learner/default_policy/learner_stats/kl', 'episode_reward_mean'],
    skrl: ['Loss / Policy loss', 'Loss / Value loss'],
    rl_games: ['losses/a_loss', 'losses/c_loss', 'info/last_lr'],
    rsl_rl: ['Loss/value_function', 'Loss/surrogate', 'Train/mean_reward'],
    tianshou: ['train/returns_stat/mean', 'update/loss'],
    'openai-baselines': ['eprewmean', 'approxkl', 'policy_entropy'],
  };
  const words = (trainer: string) => toCanonical(named(names[trainer]), { trainer }).wording;

  it.each([
    ['keel', /--set normaliseRewards=true/],
    ['stable-baselines3', /VecNormalize\(env, norm_obs=False, norm_reward=True\)/],
    ['cleanrl', /gym\.wrappers\.NormalizeReward/],
    ['rllib', /TransformReward\(.*0\.01 \* r/],
    ['skrl', /cfg\["rewards_shaper"\] = lambda .*rewards \* 0\.01/],
    ['rl_games', /^params\.config\.reward_shaper\.scale_value: 0\.01$/],
    ['rsl_rl', /rewards\.scales/],
    ['tianshou', /return_scaling=True/],
    ['openai-baselines', /VecNormalize\(env, ob=False, ret=True\)/],
  ] as const)('of the scale of rewards can be typed for %s', (trainer, typed) => {
    expect(words(trainer).setting({ rewardScale: 0.01 })?.text).toMatch(typed);
  });

  it('holds the KL in skrl by its scheduler', () => {
    expect(words('skrl').setting({ learningRate: 1e-4, targetKl: 0.008 })?.text).toBe(
      'cfg["learning_rate"] = 1e-4; cfg["learning_rate_scheduler"] = KLAdaptiveLR, cfg["learning_rate_scheduler_kwargs"] = {"kl_threshold": 0.008}',
    );
  });

  it('of Stable-Baselines 2 is a PPO2, of Baselines a flag', () => {
    const old = toCanonical(named(['ep_reward_mean', 'approxkl', 'policy_entropy', 'serial_timesteps']));
    expect(old.wording.setting({ learningRate: 1e-4 })?.text).toBe('PPO2(..., learning_rate=1e-4)');
    expect(words('openai-baselines').setting({ learningRate: 1e-4 })?.text).toBe('--lr=1e-4');
  });

  it('of old TRL sets early_stopping, without which its target KL does nothing', () => {
    const wording = toCanonical(named(['ppo/policy/approxkl', 'objective/kl_coef'])).wording;
    expect(wording.setting({ targetKl: 0.1 })?.text).toBe('PPOConfig(early_stopping=True, target_kl=0.1)');
    expect(wording.setting({ learningRate: 1e-6 })?.text).toBe('PPOConfig(learning_rate=1e-6)');
  });

  it('says that the learning rate of TRPO is the critic’s', () => {
    const wording = toCanonical(
      named(['train/kl_divergence_loss', 'train/policy_objective', 'rollout/ep_rew_mean']),
    ).wording;
    expect(wording.setting({ learningRate: 1e-4 })?.text).toMatch(/critic's alone/);
  });

  it('is of A2C where Stable-Baselines3 logs no ratio, and has nothing that only PPO has', () => {
    const names = ['time/total_timesteps', 'rollout/ep_rew_mean', 'train/entropy_loss', 'train/policy_loss'];
    const made = toCanonical(named(names));
    expect(made.trainer).toBe('stable-baselines3');
    expect(change(made, { learningRate: 1e-4 }, 'slower')?.text).toBe('A2C(..., learning_rate=1e-4)');
    expect(change(made, { targetKl: 0.015 }, 'stop early')).toBeUndefined();
    expect(change(made, { epochs: 10 }, 'fewer')).toBeUndefined();
    expect(change(made, { clipRange: 0.2 }, 'clip')).toBeUndefined();
    const ppo = toCanonical(named([...names, 'train/approx_kl', 'train/clip_range']));
    expect(change(ppo, { targetKl: 0.015 }, 'stop early')?.text).toBe('PPO(..., target_kl=0.015)');
  });

  it('raises the upper clip bound of GRPO and verl', () => {
    const grpo = toCanonical(named(['frac_reward_zero_std', 'reward', 'completions/mean_length'])).wording;
    expect(grpo.setting({ clipRangeHigh: 0.28 })?.text).toBe('GRPOConfig(epsilon_high=0.28)');
    const verl = toCanonical(named(['actor/ppo_kl', 'actor/pg_clipfrac', 'critic/score/mean'])).wording;
    expect(verl.setting({ clipRangeHigh: 0.28 })?.text).toBe('actor_rollout_ref.actor.clip_ratio_high=0.28');
    expect(verl.setting({ maxCompletionLength: 1024 })?.text).toBe('data.max_response_length=1024');
  });

  it('knows every trainer that is listed here', () => {
    for (const name of Object.keys(names)) expect(dialects.map(one => one.name)).toContain(name);
  });
});
