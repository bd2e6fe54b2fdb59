/** Rewards that never reach the learner. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { rows, run } from './support/build.ts';
import { learning, loud, N, wave } from './support/learning.ts';

const { rng, about, agent } = learning(23);

describe('rewards that never reach the learner', () => {
  it('are told even if the return drifts up by luck', () => {
    const d = diagnose(
      agent({
        'episode/return': rows(N, (_, t) => -500 + 300 * Math.min(1, 2 * t) + 10 * rng.normal()),
        'loss/value': rows(N, (_, t) => 1e-2 * Math.exp(-7 * Math.min(1, 2 * t))),
        'value/explained_variance': rows(N, () => -3 + rng.normal()),
      }),
    );
    expect(d).toMatchObject({ verdict: 'sick', rootCause: 'no-reward-signal' });
  });

  it('are not told of a critic that is good', () => {
    const d = diagnose(
      agent({
        'loss/value': rows(N, (_, t) => 1e-2 * Math.exp(-7 * t)),
        'value/explained_variance': rows(N, () => 0.95),
      }),
    );
    expect(d.verdict).toBe('healthy');
  });
});

describe('one return in every row', () => {
  const n = 60;
  /** As a run that goes on with a policy: its critic knows what it earns, and has nothing more to fit. */
  const standing = (level: number, over: Parameters<typeof run>[0], more: Parameters<typeof run>[1] = {}) =>
    diagnose(
      run(
        {
          'episode/return': rows(n, () => level),
          'loss/value': rows(n, i => 2e-6 + Math.abs(wave(i, 1e-6))),
          'value/explained_variance': rows(n, i => -0.2 + wave(i, 0.4)),
          'kl/step': rows(n, i => 0.004 + wave(i, 0.001)),
          ...over,
        },
        more,
      ),
    );
  const discrete = { actions: 'discrete', maxEntropy: Math.LN2 } as const;
  const entropy = (share: number) => ({ 'policy/entropy': rows(n, () => share * Math.LN2) });
  const std = (level: number) => ({ 'policy/std': rows(n, () => level) });

  it.each([
    ['CartPole’s 500', 500, entropy(0.3), discrete],
    ['CartPole’s 500, whose number of actions nobody knows', 500, entropy(0.7), {}],
    [
      'CartPole’s 500, whose policy does not move any more',
      500,
      { ...entropy(0.3), 'kl/step': rows(n, () => 1e-9) },
      discrete,
    ],
    ['InvertedPendulum’s 1,000', 1000, std(0.4), { actions: 'continuous' }],
    [
      'one of a policy that began narrow and is narrower',
      93,
      std(0.1),
      { actions: 'continuous', config: { logStdInitial: -1.2 } },
    ],
  ] as const)(
    'is a task that was solved before, of a policy that had learnt something: %s',
    (_, level, over, more) => {
      expect(standing(level, over, more)).toMatchObject({ verdict: 'healthy', rootCause: null });
    },
  );

  it('may be a task that was solved before, where nothing tells of the policy', () => {
    const found = standing(500, {});
    expect(found.verdict).toBe('cannot-tell');
    expect(found.summary).toContain('is 500 in all 60 rows');
  });

  it.each([
    ['0', 0, entropy(0.3), discrete],
    ['the lowest there is', -200, entropy(0.3), discrete],
    ['0, whatever is known', 0, {}, {}],
    ['above 0, of a policy that is random all along', 200, entropy(1), discrete],
    ['above 0, of a std as of fresh weights', 200, std(1), { actions: 'continuous' }],
  ] as const)('is no reward at all: %s', (_, level, over, more) => {
    expect(standing(level, over, more)).toMatchObject({ verdict: 'sick', rootCause: 'no-reward-signal' });
  });

  it('above 0 is watched where a random policy has it as well and the critic has something to fit', () => {
    const found = standing(200, { ...entropy(1), 'loss/value': rows(n, i => 0.5 + wave(i, 0.1)) }, discrete);
    expect(found.verdict).toBe('watch');
  });

  it('is no ceiling where it is not the best, or not to the end', () => {
    const falls = (i: number) => (i < 40 ? 500 : 300);
    const dips = (i: number) => (i % 5 === 2 ? 495 : 500);
    const withReturns = (f: (i: number) => number) =>
      standing(0, { ...entropy(0.3), 'episode/return': rows(n, f) }, discrete).verdict;
    expect(withReturns(dips)).toBe('healthy');
    expect(withReturns(falls)).not.toBe('healthy');
    expect(withReturns(i => (i === 3 ? 501 : 500))).not.toBe('healthy');
  });

  it('of a policy that always did the same is no ceiling', () => {
    expect(standing(9, entropy(0.001), discrete).verdict).not.toBe('healthy');
  });
});

describe('a return that hardly varies, of a policy that had learnt something', () => {
  it('is not taken for none', () => {
    const found = (share: number) =>
      diagnose(
        run(
          {
            'episode/return': rows(N, i => 9350 + wave(i, 3)),
            'loss/value': rows(N, () => 1e-6),
            'value/explained_variance': rows(N, i => wave(i, 0.3)),
            'policy/std': rows(N, () => share),
          },
          { actions: 'continuous' },
        ),
      );
    expect(loud(found(0.3))).not.toContain('no-reward');
    expect(loud(found(1))).toContain('no-reward');
  });
});

describe('a critic with nothing left to fit', () => {
  const series = (first: number): Parameters<typeof run>[0] => ({
    'episode/return': rows(80, i => Math.min(1000, 7 + 40 * i) + wave(i, 30)),
    'loss/value': rows(80, i => (i < 12 ? first : 1e-5)),
    'value/explained_variance': rows(80, i => -0.4 + wave(i, 0.1)),
    'kl/step': rows(80, i => 0.006 + wave(i, 0.001)),
  });

  it('had rewards if its loss was large once', () => {
    expect(loud(diagnose(run(series(18))))).not.toContain('no-reward');
  });

  const long = (n: number, loss: (i: number) => number, earned: (i: number) => number): Diagnosis =>
    diagnose(
      run({
        'episode/return': rows(n, i => earned(i) + wave(i, 9)),
        'loss/value': rows(n, loss),
        'value/explained_variance': rows(n, i => -0.4 + wave(i, 0.1)),
        'kl/step': rows(n, i => 0.006 + wave(i, 0.001)),
      }),
    );
  const solvedBy = (row: number) => (i: number) => Math.min(9350, 40 + (9310 * i) / row);

  it('had rewards if its loss stayed until the task was solved', () => {
    expect(loud(long(489, i => (i < 90 ? 0.5 : 4e-5), solvedBy(80)))).not.toContain('no-reward');
  });

  it.each([
    ['goes at once', 100, (i: number) => 0.5 * Math.exp(-i / 2) + 1e-6],
    ['goes soon', 100, (i: number) => 0.5 * Math.exp(-i / 5) + 1e-6],
    ['goes slowly in a long run', 500, (i: number) => 0.5 * Math.exp(-i / 12) + 1e-6],
    ['is gone before the return has risen', 200, (i: number) => (i < 24 ? 0.5 : 1e-6)],
  ])('never had any if its loss %s', (_, n, loss) => {
    expect(loud(long(n, loss, i => 100 + (300 * i) / n))).toContain('no-reward');
  });

  it('never had any if it was not', () => {
    expect(loud(diagnose(run(series(1e-3))))).toContain('no-reward');
  });
});

describe('a language model that earns one constant', () => {
  const model = (reward: (i: number) => number, n = 40): Diagnosis =>
    diagnose(
      run(
        {
          'reward/mean': rows(n, reward),
          'kl/ref': rows(n, (_, t) => 0.01 * t),
          'grad/norm': rows(n, () => about(0.4)),
          'train/lr': rows(n, () => 1e-6),
        },
        { kind: 'language-model', trainer: 'trl-grpo', unit: 'updates', actions: 'tokens' },
      ),
    );

  it.each([0, -1])('%s in every row has no reward', level => {
    const d = model(() => level);
    expect(d).toMatchObject({ verdict: 'sick', rootCause: 'no-reward-signal' });
    expect(d.findings[0].fix.join(' ')).toMatch(/completions/);
    expect(d.findings[0].fix.join(' ')).not.toMatch(/episode/);
  });

  it('is left alone with fewer than 20 rows, above 0, or if one row differs', () => {
    // Nothing is learnt all the same: that is watched.
    expect(model(() => 0, 19)).toMatchObject({ verdict: 'watch', rootCause: null });
    expect(model(() => 1)).toMatchObject({ verdict: 'watch', rootCause: null });
    expect(model(i => (i % 4 === 3 ? 0.1 : 0)).rootCause).not.toBe('no-reward-signal');
  });
});
