/** Policies that no longer explore. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { rows, run } from './support/build.ts';
import { learning, N } from './support/learning.ts';

describe('an entropy that dies at once', () => {
  const { about, agent } = learning(23);

  it('is a collapse though it creeps back a little', () => {
    const d = diagnose(
      agent(
        {
          'episode/return': rows(N, i => about(i < 2 ? 21 : 9.4, 0.02)),
          'episode/length': rows(N, i => (i < 2 ? 21 : 9.4)),
          'policy/entropy': rows(N, (i, t) => (i < 2 ? 0.6 : about(0.01 + 0.06 * t * t, 0.5))),
          'loss/value': rows(N, () => about(0.04, 0.3)),
          'value/explained_variance': rows(N, () => about(0.98, 0.01)),
        },
        { maxEntropy: Math.LN2, actions: 'discrete' },
      ),
    );
    expect(d.rootCause).toBe('entropy-collapse');
  });
});

it("RLlib's default of 30 epochs is no suspect of an entropy that is gone", () => {
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
