/** How large a KL may be, and how often it may jump. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { rows, run } from './support/build.ts';
import { wave } from './support/learning.ts';

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

describe('a KL that stays high', () => {
  const values = rows(
    400,
    i => (i < 20 ? 2 + 0.65 * i : i < 200 ? 15 + i / 33 : 21 - (i - 200) / 50) + wave(i, 0.3),
  );

  it('is a warning at 0.06 where something is learnt; with a rate of 0.02 it is critical', () => {
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
