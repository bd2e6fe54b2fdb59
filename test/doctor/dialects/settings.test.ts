/** Settings of a run, what its actions are, and how a change is typed. */
import { describe, expect, it } from 'vitest';
import { choicesAt } from '../../../src/doctor/dialects/actions.ts';
import { dialects, toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { typed } from '../../../src/doctor/dialects/wording.ts';
import type { KnownConfig } from '../../../src/doctor/known-settings.ts';
import { named, table } from './support/raw.ts';

type Setting = string | number | boolean | null;

/** A run of a trainer, by force, with these names and settings. */
const runOf = (trainer: string, names: readonly string[] = [], config: Record<string, Setting> = {}) =>
  toCanonical({ ...named(['step', ...names]), config: new Map(Object.entries(config)) }, { trainer });

describe('settings', () => {
  const cases: [trainer: string, config: Record<string, Setting>, known: KnownConfig][] = [
    [
      'stable-baselines3',
      {
        learning_rate: 'lin_2.5e-4',
        n_epochs: 4,
        clip_range: 0.1,
        n_steps: 128,
        batch_size: '256',
        target_kl: null,
      },
      {
        learningRate: 2.5e-4,
        learningRateSchedule: 'linear',
        epochs: 4,
        clipRange: 0.1,
        stepsPerRollout: 128,
        minibatchSize: 256,
      },
    ],
    [
      'cleanrl',
      {
        learning_rate: '0.00025',
        update_epochs: '4',
        target_kl: 'None',
        minibatch_size: '256',
        env_id: 'CartPole-v1',
        anneal_lr: 'True',
      },
      { learningRate: 2.5e-4, epochs: 4, minibatchSize: 256, task: 'CartPole-v1' },
    ],
    [
      'rllib',
      {
        'config/lr': 5e-5,
        'config/num_sgd_iter': 30,
        'config/kl_target': 0.01,
        'config/env': 'Pong-v0',
        'config/lr_schedule': null,
      },
      { learningRate: 5e-5, epochs: 30, targetKl: 0.01, task: 'Pong-v0' },
    ],
    [
      'verl',
      {
        'actor_rollout_ref.actor.optim.lr': 1e-6,
        'actor_rollout_ref/actor/kl_loss_coef': 0.001,
        'actor_rollout_ref/rollout/n': 8,
        'actor_rollout_ref/rollout/temperature': 0.9,
        'actor_rollout_ref/actor/clip_ratio_high': 0.28,
        'critic/optim/lr': 1e-5,
      },
      { learningRate: 1e-6, refCoef: 0.001, groupSize: 8, temperature: 0.9, clipRangeHigh: 0.28 },
    ],
    [
      'trl-grpo',
      { beta: 0, num_generations: 8, learning_rate: 1e-6, epsilon_high: 0.28, entropy_coef: 0.01 },
      { refCoef: 0, groupSize: 8, learningRate: 1e-6, clipRangeHigh: 0.28, entropyCoef: 0.01 },
    ],
    ['openrlhf', { init_kl_coef: 0.01, actor_learning_rate: 5e-7 }, { refCoef: 0.01, learningRate: 5e-7 }],
    [
      'keel',
      { learningRate: 3e-4, gradientClip: 0.5, steps: 1000, 'environment/id': 'pendulum' },
      { learningRate: 3e-4, maxGradNorm: 0.5, totalSteps: 1000, task: 'pendulum' },
    ],
    [
      'keel',
      { klRefCoef: 0.02, groupSize: 8, temperature: 0.8, clipLow: 0.2, maxNewTokens: 64 },
      { refCoef: 0.02, groupSize: 8, temperature: 0.8, clipRange: 0.2, maxCompletionLength: 64 },
    ],
  ];
  it.each(cases)('of %s', (trainer, config, known) => {
    expect(runOf(trainer, [], config).config).toEqual(known);
  });

  it('that make no sense are left out', () => {
    const config = {
      learning_rate: 'fast',
      n_epochs: 0,
      batch_size: 2.5,
      gamma: Number.NaN,
      clip_range: -1,
      ent_coef: true,
    };
    expect(runOf('stable-baselines3', [], config).config).toEqual({});
  });

  it('are read off series where the config is silent', () => {
    const rows = (rate: (i: number) => number) =>
      toCanonical(
        table(
          Array.from({ length: 20 }, (_, i) => ({
            global_step: i,
            'charts/SPS': 1,
            'charts/episodic_return': i,
            'charts/learning_rate': rate(i),
          })),
        ),
      ).config;
    expect(rows(() => Math.fround(2.5e-4))).toEqual({
      learningRate: 2.5e-4,
      learningRateSchedule: 'constant',
    });
    expect(rows(i => 1e-3 * (1 - i / 20))).toEqual({ learningRate: 1e-3, learningRateSchedule: 'falling' });
    expect(rows(i => 1e-3 * Math.min(1, i / 2))).toEqual({
      learningRate: 1e-3,
      learningRateSchedule: 'warm-up, then constant',
    });
    expect(rows(i => (i < 2 ? 5e-4 * i : 1e-3 * (1 - i / 40)))).toMatchObject({
      learningRateSchedule: 'warm-up, then falling',
    });
  });

  it('keeps a negative entropy bonus, and no negative rate', () => {
    expect(runOf('cleanrl', ['losses/entropy'], { ent_coef: '-0.01' }).config.entropyCoef).toBe(-0.01);
    expect(runOf('cleanrl', ['losses/entropy'], { learning_rate: '-1' }).config.learningRate).toBeUndefined();
  });
});

describe('actions', () => {
  it('are counted by an entropy near ln k, closer where the ks are closer', () => {
    for (let k = 2; k <= 30; k++) expect(choicesAt(0.999 * Math.log(k)), String(k)).toBe(k);
    expect(choicesAt(0.985 * Math.log(2))).toBe(2);
    expect(choicesAt(0.975 * Math.log(2))).toBeUndefined();
    expect(choicesAt(0.985 * Math.log(20))).toBeUndefined();
    // An entropy above ln k later on: not k choices.
    expect(choicesAt(Math.log(3), 1.2)).toBeUndefined();
  });

  const entropies = (...values: number[]) =>
    toCanonical(
      table(values.map((entropy, i) => ({ global_step: i, 'charts/SPS': 1, 'losses/entropy': entropy }))),
    );

  it('are continuous where the entropy is negative', () => {
    expect(entropies(0.5, -0.2).actions).toBe('continuous');
    expect(entropies(1.38, 1.2)).toMatchObject({ actions: 'discrete', maxEntropy: Math.log(4) });
    // A Gaussian of two dimensions, std 1, is near ln 17.
    expect(entropies(2.8379, 2.7)).toMatchObject({ actions: 'unknown' });
    expect(entropies(2.8379, 2.7).maxEntropy).toBeUndefined();
  });
});

describe('an entropy that is logged with its share of the maximum', () => {
  it('tells the maximum of any number of actions', () => {
    const rows = [1, 2].map(i => ({
      'train/step': i,
      'train/iteration': i,
      'kl/step': 0.01,
      'policy/entropy': 4,
      'policy/entropy_relative': 0.8,
    }));
    expect(toCanonical(table(rows))).toMatchObject({ trainer: 'keel', actions: 'discrete', maxEntropy: 5 });
  });
});

describe('wording', () => {
  const change = { learningRate: 1e-4, targetKl: 0.015 } as const;
  const cases: [
    trainer: string,
    names: string[],
    change: Parameters<ReturnType<typeof runOf>['wording']['setting']>[0],
    text: string,
  ][] = [
    ['stable-baselines3', [], change, 'PPO(..., learning_rate=1e-4, target_kl=0.015)'],
    ['cleanrl', [], change, '--learning-rate 1e-4 --target-kl 0.015'],
    [
      'rllib',
      [],
      { learningRate: 1e-4, targetKl: 0.01, epochs: 10 },
      'config.training(lr=1e-4, kl_target=0.01, num_sgd_iter=10)',
    ],
    ['rllib', ['learners/p/mean_kl_loss'], { epochs: 10 }, 'config.training(num_epochs=10)'],
    ['trl-grpo', [], { refCoef: 0.04, learningRate: 1e-6 }, 'GRPOConfig(beta=0.04, learning_rate=1e-6)'],
    ['trl-grpo', [], { learningRateSchedule: 'cosine' }, 'GRPOConfig(lr_scheduler_type="cosine")'],
    [
      'verl',
      ['actor/kl_loss'],
      { learningRate: 1e-6, refCoef: 0.001 },
      'actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.kl_loss_coef=0.001',
    ],
    [
      'verl',
      [],
      { refCoef: 0.001 },
      'actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.001',
    ],
    ['verl', ['critic/kl'], { refCoef: 0.001 }, 'algorithm.kl_ctrl.kl_coef=0.001'],
    ['openrlhf', [], { learningRate: 5e-7, refCoef: 0.01 }, '--actor.adam.lr 5e-7 --algo.kl.init_coef 0.01'],
    ['rl_games', [], change, 'params.config.learning_rate: 1e-4, params.config.kl_threshold: 0.015'],
    ['rsl_rl', [], change, 'PPO algorithm cfg: learning_rate=1e-4, desired_kl=0.015'],
    ['skrl', [], { learningRate: 1e-4 }, 'cfg["learning_rate"] = 1e-4'],
    ['tianshou', [], { learningRate: 1e-4, clipRange: 0.1 }, 'lr=1e-4 eps_clip=0.1'],
    [
      'pufferlib',
      [],
      { learningRate: 0.015, entropyCoef: 1e-3 },
      '--train.learning-rate 0.015 --train.ent-coef 0.001',
    ],
    ['keel', [], change, 'keel train … --set learningRate=1e-4 --set targetKl=0.015'],
    // Its GRPO has other keys than its PPO.
    [
      'keel',
      [],
      { refCoef: 0.01 },
      '--set reference=frozen --set klRefCoefInitial=0.01 --set klRefCoefFinal=0.01',
    ],
    [
      'keel',
      ['completion/length'],
      {
        learningRate: 1e-5,
        targetKl: 0.02,
        refCoef: 0.01,
        clipRangeHigh: 0.28,
        groupSize: 16,
        temperature: 1,
      },
      'keel train … --set learningRate=1e-5 --set guard=0.02 --set klRefCoef=0.01 --set clipHigh=0.28 --set groupSize=16 --set temperature=1',
    ],
    ['unknown', [], change, 'set the learning rate to 1e-4, set the target KL to 0.015'],
  ];
  it.each(cases)('of %s %j', (trainer, names, changes, text) => {
    expect(runOf(trainer, names).wording.setting(changes)?.text).toBe(text);
  });

  it('leaves out what a trainer does not have', () => {
    // TRL's GRPO and verl have no target KL, Tianshou's PPO and PufferLib 3 neither.
    for (const trainer of ['trl-grpo', 'verl', 'tianshou', 'pufferlib', 'openai-baselines']) {
      const { wording } = runOf(trainer);
      expect(wording.nameOf('targetKl'), trainer).toBeUndefined();
      expect(wording.setting({ targetKl: 0.015 }), trainer).toBeUndefined();
    }
    for (const trainer of ['stable-baselines3', 'cleanrl', 'rllib']) {
      expect(runOf(trainer).wording.nameOf('refCoef'), trainer).toBeUndefined();
    }
    expect(
      runOf('sb3-contrib', ['train/kl_divergence_loss']).wording.setting({ learningRate: 1e-4 })?.text,
    ).toMatch(/critic's alone/);
  });

  it('says otherwise what exists in another form', () => {
    expect(runOf('cleanrl').wording.setting({ learningRate: 1e-4, minibatchSize: 256 })?.text).toBe(
      '--learning-rate 1e-4; choose --num-minibatches so that num_envs x num_steps / num_minibatches is 256',
    );
    expect(
      runOf('openrlhf', [], { init_kl_coef: 0.01 }).wording.setting({ learningRate: 5e-7, refCoef: 0.02 })
        ?.text,
    ).toBe('--actor_learning_rate 5e-7 --init_kl_coef 0.02');
    expect(
      runOf('keel', [], { 'environment/id': 'cart; rm -rf /' }).wording.setting({ epochs: 4 })?.text,
    ).toBe('keel train … --set epochs=4');
  });

  it('has a learning rate for every trainer that has one', () => {
    for (const { name } of dialects) expect(runOf(name).wording.nameOf('learningRate'), name).toBeDefined();
  });

  it('types numbers as people do', () => {
    expect([1e-4, 2.5e-4, 3.0000000000000004e-5, 0.015, 64, 0, 1e-6, 100_000, 0.1 + 0.2].map(typed)).toEqual([
      '1e-4',
      '2.5e-4',
      '3e-5',
      '0.015',
      '64',
      '0',
      '1e-6',
      '100000',
      '0.3',
    ]);
  });
});
