/** What trips a reader of others' logs: late rows, other axes, signs, values that are no measurements. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import type { Series } from '../../../src/doctor/series.ts';
import { events, table } from './support/raw.ts';

const xs = (series: Series | undefined): number[] => [...series!.x.subarray(0, series!.length)];
const values = (series: Series | undefined): number[] => [...series!.values.subarray(0, series!.length)];

/** Rows of SB3 at 2048 steps a rollout: `train/*` of row i tells of the update after row i - 1. */
const sb3Row = (i: number, train: boolean) => ({
  'time/iterations': i,
  'time/total_timesteps': 2048 * i,
  'time/fps': 900,
  'rollout/ep_rew_mean': 10 * i,
  ...(train
    ? {
        'train/approx_kl': 0.001 * i,
        'train/entropy_loss': -1.4 + 0.01 * i,
        'train/n_updates': 10 * (i - 1),
        'train/policy_gradient_loss': -0.01,
        'train/loss': 0.5,
      }
    : {}),
});

describe('SB3', () => {
  it('moves train/* to the rollout that it was trained on', () => {
    const run = toCanonical(table([sb3Row(1, false), sb3Row(2, true), sb3Row(3, true), sb3Row(4, true)]));
    expect(xs(run.series.get('episode/return')?.series)).toEqual([2048, 4096, 6144, 8192]);
    expect(xs(run.series.get('kl/step')?.series)).toEqual([2048, 4096, 6144]);
    expect(values(run.series.get('kl/step')?.series)).toEqual([0.002, 0.003, 0.004]);
    expect(run.config.samplesPerUpdate).toBe(2048);
    expect(run.config.epochs).toBe(10);
    expect(values(run.series.get('train/epochs_run')?.series)).toEqual([10, 10, 10]);
    expect(run.unit).toBe('steps');
  });

  it('does so in an event file, whose x are steps', () => {
    const steps = [1000, 2000, 3000, 4000];
    const run = toCanonical(
      events({
        'rollout/ep_rew_mean': steps.map(step => [step, 1]),
        'time/fps': steps.map(step => [step, 500]),
        'train/approx_kl': steps.slice(1).map(step => [step, step / 1e6]),
        'train/entropy_loss': steps.slice(1).map(step => [step, -0.69]),
      }),
    );
    expect(xs(run.series.get('kl/step')?.series)).toEqual([1000, 2000, 3000]);
    expect(values(run.series.get('kl/step')?.series)).toEqual([0.002, 0.003, 0.004]);
  });

  it('finds the rollout when an evaluation in the next one took train/* with it', () => {
    const evaluation = {
      'time/total_timesteps': 5000,
      'eval/mean_reward': 7,
      'eval/mean_ep_length': 9,
      'train/approx_kl': 0.5,
    };
    const run = toCanonical(table([sb3Row(1, false), sb3Row(2, true), evaluation, sb3Row(3, false)]));
    expect(xs(run.series.get('kl/step')?.series)).toEqual([2048, 4096]);
    expect(values(run.series.get('kl/step')?.series)).toEqual([0.002, 0.5]);
    expect(xs(run.series.get('eval/return')?.series)).toEqual([5000]);
  });

  it('finds the last rollout when only every fourth is written', () => {
    const rows = [4, 8, 12].map(i => sb3Row(i, true));
    const run = toCanonical(table(rows));
    expect(xs(run.series.get('kl/step')?.series)).toEqual([3 * 2048, 7 * 2048, 11 * 2048]);
    expect(run.config.epochs).toBe(10);
  });

  it('mends the sign of the entropy, also of merged points', () => {
    const raw = table([sb3Row(1, false), sb3Row(2, true), sb3Row(3, true)]);
    const merged = raw.series.get('train/entropy_loss')!;
    merged.min[0] = -3;
    merged.max[0] = -1;
    const { series } = toCanonical(raw).series.get('policy/entropy')!;
    expect(values(series)[0]).toBeCloseTo(1.38, 12);
    expect([series.min[0], series.max[0]]).toEqual([1, 3]);
  });

  it('says nothing of the epochs that were set where each update ran one', () => {
    const rows = [1, 2, 3, 4].map(i => ({
      ...sb3Row(i, i > 1),
      ...(i > 1 ? { 'train/n_updates': i - 1 } : {}),
    }));
    const run = toCanonical(table(rows));
    expect(values(run.series.get('train/epochs_run')?.series)).toEqual([1, 1, 1]);
    expect(run.config.epochs).toBeUndefined();
  });

  it('leaves rows of off-policy algorithms where they are', () => {
    const rows = [1, 2, 3].map(i => ({
      'time/episodes': i,
      'time/total_timesteps': 100 * i,
      'time/fps': 50,
      'rollout/ep_rew_mean': i,
      'train/actor_loss': 1,
      'train/learning_rate': 3e-4,
    }));
    expect(xs(toCanonical(table(rows)).series.get('train/lr')?.series)).toEqual([100, 200, 300]);
  });

  it('counts steps of a monitor by the lengths of its episodes', () => {
    const run = toCanonical(
      table([
        { r: 1, l: 10, t: 0.1 },
        { r: 2, l: 20, t: 0.2 },
        { r: 3, l: 5, t: 0.3 },
      ]),
    );
    expect(run.trainer).toBe('stable-baselines3');
    expect(xs(run.series.get('episode/return')?.series)).toEqual([10, 30, 35]);
  });

  it('recognises every run of the fixtures, and tells actions and their largest entropy', async () => {
    const root = fileURLToPath(new URL('../fixtures/sb3', import.meta.url));
    const { candidates } = await findRuns(root);
    expect(candidates.length).toBeGreaterThanOrEqual(12);
    for (const candidate of candidates) {
      const run = toCanonical(await readRun(candidate));
      expect(run.trainer, run.path).toBe('stable-baselines3');
      expect(run.unknown, run.path).toEqual([]);
      const most = /cartpole/.test(run.path)
        ? Math.log(2)
        : /acrobot/.test(run.path)
          ? Math.log(3)
          : undefined;
      expect(run.actions, run.path).toBe(most === undefined ? 'continuous' : 'discrete');
      if (most === undefined) expect(run.maxEntropy).toBeUndefined();
      else expect(run.maxEntropy).toBeCloseTo(most, 12);
      const [kl, rollout] = [
        run.series.get('kl/step')!.series,
        run.series.get('time/steps_per_second')!.series,
      ];
      expect(kl.x[0], run.path).toBe(rollout.x[0]);
    }
  });
});

describe('other axes', () => {
  it('moves the losses of PufferLib 3 back by a row, and only of that version', () => {
    const rows = [1, 2, 3].map(i => ({
      SPS: 1e5,
      agent_steps: 1000 * i,
      uptime: i,
      'environment/episode_return': i,
      ...(i > 1 ? { 'losses/approx_kl': i / 100, 'losses/old_approx_kl': 0 } : {}),
    }));
    const run = toCanonical(table(rows));
    expect(xs(run.series.get('kl/step')?.series)).toEqual([1000, 2000]);
    expect(run.series.get('kl/step')?.kl?.lag).toBe(1);
    const second = toCanonical(
      table(rows.map((row, i) => ({ ...row, 'losses/approx_kl': (i + 1) / 100, 'losses/old_approx_kl': 0 }))),
    );
    expect(xs(second.series.get('kl/step')?.series)).toEqual([1000, 2000, 3000]);
    expect(second.series.get('kl/step')?.kl?.lag).toBe(0);
  });

  it("puts Tianshou's gradient steps onto environment steps", () => {
    const run = toCanonical(
      events({
        'train/reward': [
          [0, 1],
          [10_000, 2],
          [20_000, 3],
        ],
        'update/loss/clip': [
          [50, 0.1],
          [100, 0.2],
          [200, 0.3],
        ],
        'update/loss/vf': [[200, 1]],
        'save/gradient_step': [
          [100, 100],
          [200, 200],
        ],
        'save/env_step': [
          [10_000, 10_000],
          [20_000, 20_000],
        ],
      }),
    );
    expect(xs(run.series.get('loss/policy')?.series)).toEqual([5000, 10_000, 20_000]);
    expect(xs(run.series.get('episode/return')?.series)).toEqual([0, 10_000, 20_000]);
  });

  it('has one axis for what rl_games logs by step, epoch and second', () => {
    const frames = [384, 832, 1280];
    const run = toCanonical(
      events({
        'losses/a_loss': frames.map(frame => [frame, 0]),
        'losses/c_loss': frames.map(frame => [frame, 1]),
        'info/last_lr': frames.map(frame => [frame, 1e-3]),
        'info/kl': frames.map(frame => [frame, 0.01]),
        'info/epochs': frames.map((frame, i) => [frame, i + 1]),
        'rewards/time': [[17, 5]],
        'rewards/iter': [[1, 5]],
        'rewards/step': [[832, 5]],
        'diagnostics/exp_var': [
          [2, 0.5],
          [3, 0.6],
        ],
        'diagnostics/clip_frac/0': [[2, 0]],
        'diagnostics/clip_frac/3': [[2, 0.25]],
        'diagnostics/clip_frac/10': [[2, 0.5]],
      }),
    );
    expect(xs(run.series.get('episode/return')?.series)).toEqual([832]);
    expect(xs(run.series.get('value/explained_variance')?.series)).toEqual([832, 1280]);
    expect(run.series.get('policy/clip_fraction')?.theirs).toBe('diagnostics/clip_frac/10');
    expect(run.unknown).toEqual([]);
  });

  it("uses RLlib's steps rather than its iterations, whatever the iterations begin with", () => {
    const rows = [5001, 5002].map(i => ({
      training_iteration: i,
      timesteps_total: 4800 * i,
      episode_reward_mean: Number.NaN,
      'info/learner/default_policy/kl': 0.01,
      'info/learner/default_policy/entropy': 1,
    }));
    const run = toCanonical(table(rows));
    expect(run.unit).toBe('steps');
    expect(xs(run.series.get('kl/step')?.series)).toEqual([4800 * 5001, 4800 * 5002]);
    expect(values(run.series.get('episode/return')?.series)).toEqual([Number.NaN, Number.NaN]);
  });

  it("takes the trainer's counter where W&B has its own", () => {
    const run = toCanonical(
      events(
        {
          global_step: [
            [0, 512],
            [7, 1024],
          ],
          'charts/SPS': [
            [0, 9],
            [7, 9],
          ],
          'charts/episodic_return': [[3, 20]],
          'losses/approx_kl': [[7, 0.01]],
        },
        { format: 'wandb' },
      ),
    );
    expect(run.trainer).toBe('cleanrl');
    expect(xs(run.series.get('kl/step')?.series)).toEqual([1024]);
    // Between two counted rows.
    expect(xs(run.series.get('episode/return')?.series)[0]).toBeCloseTo(512 + (512 * 3) / 7, 9);
  });
});

describe('what is no measurement', () => {
  it('turns the gain of a TRPO of Baselines, which is maximised, into a loss', () => {
    const run = toCanonical(
      table(
        [0.02, -0.01, 0.03].map((surrgain, i) => ({
          surrgain,
          meankl: 0.01,
          TimestepsSoFar: 1024 * (i + 1),
          EpRewMean: i,
        })),
      ),
    );
    expect(run.trainer).toBe('openai-baselines');
    expect(values(run.series.get('loss/policy')?.series)).toEqual([-0.02, 0.01, -0.03]);
  });

  const grpo = (kl: number) =>
    [1, 2, 3].map(step => ({
      step,
      kl,
      reward: step,
      reward_std: 0.1,
      'completions/mean_length': 20,
      'rewards/f/mean': 1,
    }));

  it('is no KL that only begins with 0', () => {
    const rows = grpo(0).map((row, i) => ({ ...row, kl: 0.01 * i }));
    expect(values(toCanonical(table(rows)).series.get('kl/ref')?.series)).toEqual([0, 0.01, 0.02]);
  });

  it('is a KL to a reference that is 0 in every row', () => {
    const run = toCanonical(table(grpo(0)));
    expect(run.series.has('kl/ref')).toBe(false);
    expect(run.notes.join()).toMatch(/kl is 0 in every row: there is no KL term/);
    expect(toCanonical(table(grpo(1e-9))).series.has('kl/ref')).toBe(true);
  });

  it('is a step KL of 0 in strictly on-policy training of a language model', () => {
    const rows = [1, 2, 3].map(step => ({
      step,
      'actor/ppo_kl': 0,
      'actor/pg_clipfrac': 0,
      'critic/score/mean': 1,
    }));
    const run = toCanonical(table(rows));
    expect(run.series.has('kl/step')).toBe(false);
    expect(run.notes.join()).toMatch(/has not moved yet/);
  });

  it("is RLlib's KL without a KL penalty; but a dead policy's stays", () => {
    const rows = (coef: (i: number) => object) =>
      [1, 2, 3].map(i => ({
        timesteps_total: 100 * i,
        'info/learner/default_policy/kl': 0,
        'info/learner/default_policy/entropy': 0,
        ...coef(i),
      }));
    expect(toCanonical(table(rows(() => ({})))).series.has('kl/step')).toBe(false);
    const key = 'info/learner/default_policy/cur_kl_coeff';
    expect(toCanonical(table(rows(() => ({ [key]: 0 })))).series.has('kl/step')).toBe(false);
    expect(toCanonical(table(rows(i => ({ [key]: 0.2 / i })))).series.has('kl/step')).toBe(true);
  });

  it("is a learning rate of 0.000 on verl's console", () => {
    const rows = [1, 2, 3].map(step => ({
      step,
      'actor/ppo_kl': 0.1,
      'actor/pg_clipfrac': 0,
      'actor/lr': 0,
    }));
    const run = toCanonical(table(rows, { format: 'verl-console' }));
    expect(run.series.has('train/lr')).toBe(false);
    expect(run.config.learningRate).toBeUndefined();
    expect(toCanonical(table(rows)).series.has('train/lr')).toBe(true);
  });

  it("is skrl's entropy loss without its scale; with it, it is the entropy", () => {
    const rows = [1, 2].map(i => ({
      step: i,
      'Loss / Policy loss': 0,
      'Loss / Value loss': 1,
      'Loss / Entropy loss': -0.03,
    }));
    const run = toCanonical(table(rows));
    expect(run.series.has('policy/entropy')).toBe(false);
    expect(run.notes.join()).toMatch(/entropy_loss_scale/);
    const known = toCanonical(table(rows, { config: new Map([['agent/entropy_loss_scale', 0.01]]) }));
    expect(values(known.series.get('policy/entropy')?.series)[0]).toBeCloseTo(3, 12);
    expect(known.config.entropyCoef).toBe(0.01);
  });
});

describe('a KL that is not logged', () => {
  const run = (rates: readonly number[], config = new Map<string, string | number>()) =>
    toCanonical(
      events(
        {
          'Loss/surrogate': rates.map((_, i) => [i, -0.01]),
          'Loss/value_function': rates.map((_, i) => [i, 1]),
          'Loss/learning_rate': rates.map((rate, i) => [i, rate]),
          'Train/mean_reward': rates.map((_, i) => [i, i]),
        },
        { config },
      ),
    );

  it('is told by a learning rate that follows it', () => {
    const adaptive = run([1e-3, 1.5e-3, 1e-3, 1e-3 / 1.5], new Map([['algorithm/desired_kl', 0.02]]));
    expect(adaptive.klProxy).toMatchObject({
      theirs: 'Loss/learning_rate',
      id: 'train/lr',
      floor: 1e-5,
      ceiling: 1e-2,
      target: 0.02,
    });
    expect(adaptive.config).toMatchObject({
      learningRate: 1e-3,
      learningRateSchedule: 'adaptive',
      targetKl: 0.02,
    });
    // Event files hold 32-bit numbers.
    expect(run([1e-5, 1e-5, 1e-5].map(Math.fround)).klProxy?.floor).toBe(1e-5);
  });

  it('is not told by one that is constant elsewhere or only falls', () => {
    expect(run([1e-3, 1e-3, 1e-3]).klProxy).toBeUndefined();
    expect(run([1e-3, 8e-4, 5e-4]).klProxy).toBeUndefined();
  });
});
