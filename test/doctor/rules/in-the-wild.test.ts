/** Shapes met in public logs: what must be named, and what must not be. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { toCanonical } from '../../../src/doctor/dialects/index.ts';
import { progressOf } from '../../../src/doctor/rules/progress.ts';
import { trackOf } from '../../../src/doctor/rules/track.ts';
import { named } from '../dialects/support/raw.ts';
import { type More, rows, run, series } from './support/build.ts';

/** A wave in place of noise: the same in every run of the tests. */
const wave = (i: number, size: number): number => size * Math.sin(i * 2.399963);
const model = (values: Parameters<typeof run>[0], more: More = {}): ReturnType<typeof run> =>
  run(values, { kind: 'language-model', trainer: 'verl', unit: 'updates', actions: 'tokens', ...more });
const N = 120;

describe('language models', () => {
  const calm = {
    'reward/mean': rows(N, (i, t) => 0.2 + 0.5 * t + wave(i, 0.02)),
    'kl/ref': rows(N, (i, t) => 0.001 + 0.03 * t + Math.abs(wave(i, 0.002))),
    'policy/entropy': rows(N, (i, t) => 0.5 - 0.3 * t + wave(i, 0.01)),
    'completion/length': rows(N, (i, t) => 300 + 100 * t + wave(i, 10)),
    'adv/max': rows(N, () => 2.4),
    'adv/min': rows(N, () => -2.4),
  };

  it('a calm run is healthy', () => {
    expect(diagnose(model(calm)).verdict).toBe('healthy');
  });

  it('advantages that are all 0 are groups without spread', () => {
    const none = rows(N, () => 0);
    const found = diagnose(model({ ...calm, 'reward/mean': none, 'adv/max': none, 'adv/min': none }));
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'degenerate-groups']);
  });

  it('one row in three without advantages is not', () => {
    const some = rows(N, i => (i % 3 === 0 ? 0 : 1.5));
    expect(diagnose(model({ ...calm, 'adv/max': some, 'adv/min': some.map(v => -v) })).verdict).toBe(
      'healthy',
    );
  });

  it('an entropy that dies within a few rows has collapsed', () => {
    const found = diagnose(
      model({
        ...calm,
        'policy/entropy': rows(N, (_, t) => 0.5 * Math.exp(-30 * t) + 5e-4),
        'reward/mean': rows(N, (i, t) => 0.2 - 0.05 * t + wave(i, 0.01)),
      }),
    );
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'entropy-collapse']);
  });

  it('completions that shrink to nothing with the reward are malformed', () => {
    const length = rows(N, (i, t) => 300 * Math.exp(-6 * t) + 4 + Math.abs(wave(i, 1)));
    const falling = rows(N, (i, t) => Math.max(0.02, 0.4 - 0.5 * t) + Math.abs(wave(i, 0.01)));
    const found = diagnose(model({ ...calm, 'completion/length': length, 'reward/mean': falling }));
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'malformed-outputs']);
    // Shorter answers with a better reward are learning.
    expect(diagnose(model({ ...calm, 'completion/length': length })).verdict).toBe('healthy');
  });

  it('a rate of 0.005 is the cause of all that follows', () => {
    const found = diagnose(
      model({
        'reward/mean': rows(24, i => (i === 0 ? -0.07 : 0)),
        'kl/ref': rows(24, i => (i === 0 ? 0 : i === 11 ? 4e11 : 1 + (i % 5))),
        'policy/entropy': rows(24, i => (i < 12 ? 0.8 : 1e-14)),
        'completion/truncated': rows(24, () => 1),
        'reward/zero_std_groups': rows(24, () => 1),
        'train/lr': rows(24, i => 0.005 - 1e-5 * i),
      }),
    );
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'learning-rate-too-high']);
  });

  it('answers that fill a short limit and earn something are watched, not sick', () => {
    const found = diagnose(
      model({
        'reward/mean': rows(N, i => (i === 0 ? -0.4 : 0.5 + wave(i, 0.2))),
        'completion/truncated': rows(N, i => (i === 0 ? 0 : 1)),
        'completion/length': rows(N, i => (i === 0 ? 9 : 16)),
      }),
    );
    expect([found.verdict, found.rootCause]).toEqual(['watch', 'malformed-outputs']);
  });

  it('two nats a token from the reference without a gain are watched', () => {
    const far = rows(N, (i, t) => 0.002 + 2.5 * Math.min(1, 5 * t) + wave(i, 0.1) * t);
    const flat = rows(N, i => 0.68 + wave(i, 0.03));
    const found = diagnose(model({ 'reward/mean': flat, 'kl/ref': far }));
    expect([found.verdict, found.rootCause]).toEqual(['watch', 'reference-too-weak']);
    // The sum over a sequence has another scale.
    const sequence = model({ 'reward/mean': flat, 'kl/ref': far }, { kl: { 'kl/ref': { per: 'sequence' } } });
    expect(diagnose(sequence).verdict).toBe('healthy');
  });
});

describe('what is learnt at once', () => {
  const values = rows(
    400,
    i => (i < 20 ? 2 + 0.65 * i : i < 200 ? 15 + i / 33 : 21 - (i - 200) / 50) + wave(i, 0.3),
  );

  it('is not lost by a small fall', () => {
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(values) }));
    expect(progress.kept).toBe(true);
    expect(progress.collapsed).toBe(false);
  });

  // A CartPole of two million steps, solved after 24,000, was called sick: its first block was at the ceiling already.
  it('is solved, also where the first twentieth of the run has it', () => {
    const solved = rows(4_000, i => (i < 30 ? 15 + i : i < 45 ? 60 + 30 * (i - 30) : 500));
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(solved) }));
    expect(progress.saturated).toBe(true);
    const level = rows(4_000, i => 20 + wave(i, 3));
    expect(progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(level) })).saturated).toBe(
      false,
    );
  });

  it('and lost it is told', () => {
    const lost = rows(400, (i, t) => (t < 0.5 ? values[i]! : 3 + wave(i, 0.3)));
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(lost) }));
    expect(progress.kept).toBe(false);
    expect(progress.collapsed).toBe(true);
  });

  it('makes a KL of 0.06 a warning; with a rate of 0.02 it is critical', () => {
    const kl = rows(400, i => (i < 100 ? 0.02 : 0.065) + wave(i, 0.005));
    const of = (lr: number): string =>
      diagnose(run({ 'episode/return': values, 'kl/step': kl, 'train/lr': rows(400, () => lr) })).verdict;
    expect(of(2.5e-4)).toBe('watch');
    expect(
      diagnose(
        run({
          'episode/return': rows(400, i => 20 + wave(i, 3)),
          'kl/step': kl.map(v => 4 * v),
          'train/lr': rows(400, () => 0.02),
        }),
      ).verdict,
    ).toBe('sick');
  });
});

describe('settings', () => {
  it("RLlib's default of 30 epochs is no suspect", () => {
    const dead = {
      'policy/entropy': rows(20, i => (i === 0 ? 1e-6 : 0)),
      'episode/return': rows(20, () => -21),
      'kl/step': rows(20, i => (i === 0 ? 0.2 : 0)),
      'loss/value': rows(20, (_, t) => 0.2 * Math.exp(-4 * t)),
    };
    const of = (trainer: string): string | null =>
      diagnose(run(dead, { trainer, config: { epochs: 30 }, actions: 'discrete' })).rootCause;
    expect(of('rllib')).toBe('entropy-collapse');
    expect(of('cleanrl')).toBe('too-many-epochs');
  });

  it('a negative entropy bonus is kept', () => {
    const raw = { ...named(['step', 'losses/entropy']), config: new Map([['ent_coef', '-0.01']]) };
    expect(toCanonical(raw, { trainer: 'cleanrl' }).config.entropyCoef).toBe(-0.01);
    const rate = { ...named(['step', 'losses/entropy']), config: new Map([['learning_rate', '-1']]) };
    expect(toCanonical(rate, { trainer: 'cleanrl' }).config.learningRate).toBeUndefined();
  });
});
