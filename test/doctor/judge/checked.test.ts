/** What becomes of a rule on a run: whether it spoke, was near to it, was far from it, or could not look. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { KnownConfig } from '../../../src/doctor/known-settings.ts';
import { rows, run } from '../rules/support/build.ts';

const N = 60;
const checked = (
  code: string,
  values: Readonly<Record<string, readonly number[]>>,
  config: KnownConfig = {},
) => diagnose(run(values, { config })).checked.find(one => one.code === code);

const learning = { 'episode/return': rows(N, (i, t) => 10 + 400 * t + Math.sin(7 * i)) };
const kl = rows(N, () => 0.006);

describe('near', () => {
  it.each([
    ['within a fifth of the limit, on the quiet side', 0.41, 'near'],
    ['further away', 0.39, 'clear'],
  ])('%s', (_, clipRange, state) => {
    const told = checked('clip-range-inert', { ...learning, 'kl/step': kl }, { clipRange });
    expect(told).toMatchObject({ state });
    expect(told?.limit).toEqual(
      state === 'near' ? { of: 'the clip range', at: 0.5, value: clipRange } : undefined,
    );
  });

  it('is said of a limit from above as of one from below', () => {
    const at = (entropyCoef: number, targetKl: number) =>
      checked(
        'unusual-settings',
        { ...learning, 'train/lr': rows(N, () => 3e-4) },
        { entropyCoef, targetKl },
      );
    expect(at(0.041, 0.02)).toMatchObject({ state: 'near', limit: { of: 'the entropy coefficient' } });
    expect(at(0.01, 0.0035)).toMatchObject({ state: 'near', limit: { of: 'the target KL', at: 0.003 } });
    expect(at(0.01, 0.0037)).toMatchObject({ state: 'clear' });
  });

  it('is four updates in a row, where five are enough', () => {
    const streak = (length: number) =>
      checked('kl-high', {
        ...learning,
        'kl/step': rows(N, i => (i > 20 && i <= 20 + length ? 0.035 : 0.006)),
      });
    expect(streak(3)).toMatchObject({ state: 'clear' });
    expect(streak(4)).toMatchObject({ state: 'near', limit: { at: 5, value: 4 } });
    expect(streak(5)).toMatchObject({ state: 'found' });
  });

  it('is never said of a rule that spoke, nor of one that lacks what it looks at', () => {
    for (const one of diagnose(run(learning)).checked)
      expect(one.limit === undefined).toBe(one.state !== 'near');
    expect(checked('clip-fraction-high', { 'kl/step': kl })).toMatchObject({ state: 'blind' });
  });
});
