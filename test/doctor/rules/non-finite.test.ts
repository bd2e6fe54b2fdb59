/** Runs that died of a NaN, also where the log shows none. */
import { describe, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { rows } from './support/build.ts';
import { learning, loud, N } from './support/learning.ts';

const { about, agent, base } = learning(23);

/** The same run with some series empty from a row on. */
function blanked(ids: readonly string[], row: number, kind: 'null' | 'empty'): CanonicalRun {
  const made = agent(Object.fromEntries(ids.map(id => [id, base[id as keyof typeof base].slice(0, row)])));
  const series = new Map(
    [...made.series].map(([id, one]) => [
      id,
      ids.includes(id)
        ? { ...one, blank: { from: (row + 1) * 1000, rows: N - row, before: row, kind } }
        : one,
    ]),
  );
  return { ...made, series };
}

describe('losses that are empty to the end', () => {
  it.each(['null', 'empty'] as const)('are not finite, if other numbers of the updates go on (%s)', kind => {
    const d = diagnose(blanked(['kl/step', 'loss/value', 'loss/policy'], 40, kind));
    expect(d).toMatchObject({ verdict: 'sick', rootCause: 'non-finite' });
    expect(d.findings[0].title).toMatch(/no value from step 41,000 on/);
  });

  it('are no fault where all that updates write ends at once: training ended there', () => {
    const all = [
      'kl/step',
      'loss/value',
      'loss/policy',
      'policy/entropy',
      'policy/clip_fraction',
      'train/lr',
      'value/explained_variance',
    ];
    expect(diagnose(blanked(all, 40, 'empty')).verdict).toBe('healthy');
  });

  it('are no fault for a few rows, nor for one series alone', () => {
    expect(diagnose(blanked(['kl/step', 'loss/value'], N - 3, 'null')).verdict).toBe('healthy');
    expect(diagnose(blanked(['loss/value'], 40, 'null')).verdict).toBe('healthy');
  });

  it('are no fault where they were logged now and then', () => {
    const made = blanked(['kl/step', 'loss/value'], 40, 'empty');
    const rare = new Map(
      [...made.series].map(([id, one]) => [
        id,
        one.blank === undefined ? one : { ...one, blank: { ...one.blank, before: 400 } },
      ]),
    );
    expect(diagnose({ ...made, series: rare }).verdict).toBe('healthy');
  });
});

describe('a log that ends in a burst', () => {
  const burst = (last: number, end: number): Diagnosis =>
    diagnose(
      agent(
        {
          'kl/step': rows(N, i => (i < N - 1 ? about(0.006, 0.3) : last)),
          'loss/policy': rows(N, i => (i < N - 1 ? -about(0.006, 0.2) : -0.05)),
        },
        { config: { totalSteps: end } },
      ),
    );

  it('died of a NaN, whichever numbers of the last update show it', () => {
    expect(burst(0.08, 200_000)).toMatchObject({ verdict: 'sick', rootCause: 'non-finite' });
  });

  it('is left alone where the run had its length, or where the KL had been there before', () => {
    expect(loud(burst(0.08, 80_000))).not.toContain('ends-in-burst');
    const before = agent(
      {
        'kl/step': rows(N, i => (i === N - 1 ? 0.08 : i % 25 === 20 ? 0.07 : about(0.006, 0.3))),
        'loss/policy': rows(N, i => (i < N - 1 ? -about(0.006, 0.2) : -0.05)),
      },
      { config: { totalSteps: 200_000 } },
    );
    expect(loud(diagnose(before))).not.toContain('ends-in-burst');
  });

  it('is left alone where only the KL is out of line', () => {
    const made = agent(
      { 'kl/step': rows(N, i => (i < N - 1 ? about(0.006, 0.3) : 0.08)) },
      { config: { totalSteps: 200_000 } },
    );
    expect(loud(diagnose(made))).not.toContain('ends-in-burst');
  });
});
