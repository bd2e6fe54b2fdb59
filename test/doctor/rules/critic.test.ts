/** Critics that stop fitting, and those that never fit. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { Rng } from '../../../src/random/index.ts';
import { rows, run } from './support/build.ts';
import { learning, loud, N, wave } from './support/learning.ts';

const { rng, about, agent } = learning(23);

describe('explained variance that falls', () => {
  const falling = rows(N, (_, t) => 0.9 - 1.4 * t + 0.04 * rng.normal());

  it('is told under a flat return', () => {
    const d = diagnose(
      agent({ 'value/explained_variance': falling, 'episode/return': rows(N, () => about(20, 0.1)) }),
    );
    expect(d).toMatchObject({ verdict: 'watch', rootCause: 'critic-not-learning' });
    expect(loud(d)).toEqual(['critic-fading']);
    expect(d.findings[0].evidence.join(' ')).toMatch(/losing 0\.01\d* a row/);
  });

  it('is critical when the value loss rises with it', () => {
    const d = diagnose(
      agent({
        'value/explained_variance': falling,
        'episode/return': rows(N, () => about(20, 0.1)),
        'loss/value': rows(N, (_, t) => about(5 + 40 * t, 0.2)),
      }),
    );
    expect(d).toMatchObject({ verdict: 'sick', rootCause: 'critic-not-learning' });
  });

  it.each([
    ['while the return improves', {}],
    [
      'on a task that is solved, whose returns no longer vary',
      { 'episode/return': rows(N, (_, t) => Math.min(500, 20 + 3000 * t)) },
    ],
    [
      'where the value loss falls too',
      {
        'episode/return': rows(N, () => about(20, 0.1)),
        'loss/value': rows(N, (_, t) => about(20 * Math.exp(-4 * t), 0.2)),
      },
    ],
  ])('is not told %s', (_, over) => {
    expect(loud(diagnose(agent({ 'value/explained_variance': falling, ...over })))).not.toContain(
      'critic-fading',
    );
  });

  it('is not told for noise, nor for a level that only scatters', () => {
    for (let seed = 0; seed < 30; seed++) {
      const noise = new Rng(seed);
      const d = diagnose(
        agent({
          'value/explained_variance': rows(N, () => 0.4 + 0.5 * noise.normal()),
          'episode/return': rows(N, () => 20 + noise.normal()),
        }),
      );
      expect(loud(d), `seed ${seed}`).not.toContain('critic-fading');
    }
  });
});

describe('a critic with one answer to all states', () => {
  // Its loss falls with the level of the returns, and the return rises all the same.
  const alike = (length: number, goes: (t: number) => number): readonly string[] =>
    loud(
      diagnose(
        agent({
          'episode/return': rows(N, (_, t) => about(goes(t), 0.01)),
          'episode/length': rows(N, () => length),
          'value/explained_variance': rows(N, i => wave(i, 1e-6)),
          'loss/value': rows(N, (_, t) => about(8000 * Math.exp(-3 * t), 0.1)),
        }),
      ),
    );

  it('is told though its loss falls and the return rises', () => {
    expect(alike(52, t => 270 + 60 * t)).toEqual(['critic-flat']);
  });

  it('is not told of episodes of one step, nor of a task that is solved', () => {
    expect(alike(1, t => 270 + 60 * t)).toEqual([]);
    expect(alike(500, t => Math.min(500, 20 + 3000 * t))).toEqual([]);
  });
});

describe('a critic that explains nothing', () => {
  const blind = (n: number, loss: number, total: number, climb = 0): Diagnosis =>
    diagnose(
      run({
        'episode/return': rows(n, (i, t) => 1000 + climb * t + wave(i, 30)),
        'kl/step': rows(n, i => 0.006 + wave(i, 0.001)),
        'value/explained_variance': rows(n, i => wave(i, 1e-4)),
        'loss/value': rows(n, i => loss * (1 + wave(i, 0.2))),
        'loss/total': rows(n, i => total * loss * (1 + wave(i, 0.2))),
        'train/lr': rows(n, () => 3e-4),
      }),
    );
  const fixOf = (found: Diagnosis): string =>
    found.findings.find(({ code }) => code === 'critic-flat')?.fix.join(' ') ?? '';

  it('of a loss of 100,000 that is trained on has returns out of scale', () => {
    expect(blind(56, 1e5, 0.5)).toMatchObject({ verdict: 'sick', rootCause: 'reward-scale-too-large' });
    expect(blind(56, 1e5, 0.5, 600)).toMatchObject({ verdict: 'watch', rootCause: 'reward-scale-too-large' });
  });

  it('is told to weigh its loss only where that has no weight', () => {
    expect(fixOf(blind(56, 400, 0))).toContain('valueCoef');
    expect(fixOf(blind(56, 400, 0.5, 350))).not.toContain('valueCoef');
    expect(fixOf(blind(56, 400, 0.5, 350))).toContain('rewardScale');
  });

  it('for a few rows is no more than a warning, unless its loss has no weight', () => {
    expect(blind(22, 400, 0.5).verdict).toBe('watch');
    expect(blind(60, 400, 0.5).verdict).toBe('sick');
    expect(blind(22, 400, 0).verdict).toBe('sick');
  });
});
