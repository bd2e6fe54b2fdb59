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

it('an entropy that does not begin at a std of 1 tells no std: nobody knows how many dimensions share it', () => {
  const growing = (start: number) =>
    diagnose(
      run(
        {
          'policy/entropy': rows(40, (_, t) => start + 25 * t),
          'episode/return': rows(40, i => 20 + (i % 3)),
          'kl/step': rows(40, () => 6e-3),
        },
        { actions: 'continuous' },
      ),
    ).findings.map(({ code }) => code);
  expect(growing(24.1)).toContain('std-growing');
  expect(growing(-43)).not.toContain('std-growing');
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

describe('continuous actions that are narrow from the first row on', () => {
  const narrow = (std: number, logStdInitial?: number) =>
    diagnose(
      run(
        {
          'policy/std': rows(20, () => std),
          'episode/return': rows(20, i => -1200 + (i % 3)),
          'kl/step': rows(20, () => 3e-3),
        },
        { config: logStdInitial === undefined ? {} : { logStdInitial }, actions: 'continuous' },
      ),
    );

  it.each([
    [0.0183, -4, 0.85],
    // Just below and just above the logarithm of 0.05.
    [0.0499, -2.997, 0.85],
    [0.0499, -2.995, 0.6],
    [0.0183, undefined, 0.6],
  ])('a std of %d with a log-std of %s is named with %d', (std, logStd, confidence) => {
    const { rootCause, findings } = narrow(std, logStd);
    expect(rootCause).toBe('entropy-collapse');
    expect(findings[0]).toMatchObject({ cause: 'entropy-collapse', confidence });
  });
});

it.each([
  [1, 0.01],
  [0.3, 0.01],
  // A tenth of it is less.
  [0.08, 0.008],
])('a bonus of %d that holds the entropy up is to be %d: a tenth may still be too large', (coef, value) => {
  const d = diagnose(
    run(
      {
        'policy/entropy': rows(40, i => 1.09 + 0.002 * (i % 2)),
        'episode/return': rows(40, i => -498 + (i % 3)),
        'kl/step': rows(40, () => 3e-3),
        'loss/value': rows(40, (_, t) => 100 * Math.exp(-4 * t)),
        'value/explained_variance': rows(40, () => 0.8),
      },
      { config: { entropyCoef: coef }, maxEntropy: Math.log(3), actions: 'discrete' },
    ),
  );
  expect(d.findings[0]).toMatchObject({
    code: 'entropy-stuck',
    fixes: [{ kind: 'setting', changes: [{ setting: 'entropyCoef', value }] }],
  });
});
