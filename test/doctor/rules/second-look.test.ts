/** Verdicts that were too hard on runs that learn, and too soft on a scale that is plainly wrong. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { rows, run } from './support/build.ts';

/** A wave in place of noise: the same in every run of the tests. */
const wave = (i: number, size: number): number => size * Math.sin(i * 2.399963);
const loud = (found: Diagnosis): string[] =>
  found.findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);

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

  it('never had any if it was not', () => {
    expect(loud(diagnose(run(series(1e-3))))).toContain('no-reward');
  });
});

describe('a value loss that rises', () => {
  const found = (loss: (i: number) => number): Diagnosis =>
    diagnose(
      run({
        'episode/return': rows(60, i => -104 + wave(i, 4)),
        'kl/step': rows(60, i => 0.006 + wave(i, 0.001)),
        'loss/value': rows(60, i => loss(i) * (1 + wave(i, 0.1))),
      }),
    );

  it('for two rows is no change of scale', () => {
    expect(loud(found(i => (i === 35 || i === 37 || i === 38 ? 900 : 5)))).not.toContain(
      'reward-scale-changed',
    );
    expect(loud(found(i => (i >= 35 && i < 39 ? 900 : 5)))).not.toContain('reward-scale-changed');
  });

  it('for good is one', () => {
    expect(found(i => (i < 35 ? 5 : 900)).rootCause).toBe('reward-scale-changed');
  });
});

describe('spikes of the KL', () => {
  const spiky = (dips: readonly number[], rate: number): Diagnosis => {
    const at = [46, 58, 70, 82, 94, 106];
    return diagnose(
      run({
        'episode/return': rows(120, (i, t) => {
          const fallen = dips.some(dip => i > dip && i < dip + 12);
          return (fallen ? 5 : 20 + 300 * t) + wave(i, 2);
        }),
        'kl/step': rows(120, i => (at.includes(i) ? 0.3 : 0.006 + wave(i, 0.001))),
        'train/lr': rows(120, () => rate),
      }),
    );
  };

  it('that the return survives are no sickness of a run that improves', () => {
    expect(spiky([70], 3e-3).findings.filter(({ code }) => code === 'kl-spikes')).toEqual([]);
  });

  it('are watched, not called sick, where nothing tells why', () => {
    const severity = (found: Diagnosis): string | undefined =>
      found.findings.find(({ code }) => code === 'kl-spikes')?.severity;
    expect(severity(spiky([94, 106], 3e-4))).toBe('warning');
    expect(severity(spiky([94, 106], 5e-3))).toBe('critical');
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
