/** Runs of language-model trainers. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { type More, rows, run } from './support/build.ts';
import { wave } from './support/learning.ts';

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
    const same = rows(N, () => 0.4);
    const found = diagnose(model({ ...calm, 'reward/mean': same, 'adv/max': none, 'adv/min': none }));
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'degenerate-groups']);
  });

  it('rewards that are all 0 are none, whatever the groups', () => {
    const none = rows(N, () => 0);
    const found = diagnose(model({ ...calm, 'reward/mean': none, 'adv/max': none, 'adv/min': none }));
    expect([found.verdict, found.rootCause]).toEqual(['sick', 'no-reward-signal']);
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
    expect(diagnose(sequence).findings.map(({ code }) => code)).toEqual(['return-flat']);
  });
});
