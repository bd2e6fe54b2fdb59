/** Faults that were once called healthy, and healthy runs beside them that look alike. */
import { describe, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { Rng } from '../../../src/random/index.ts';
import { type More, rows, run } from './support/build.ts';

const rng = new Rng(23);
const about = (level: number, share = 0.05): number => level * (1 + share * rng.normal());
const N = 80;

const base = {
  'episode/return': rows(N, (_, t) => about(20 + 300 * t)),
  'episode/length': rows(N, () => 200),
  'kl/step': rows(N, () => about(0.006, 0.3)),
  'policy/clip_fraction': rows(N, () => about(0.06, 0.3)),
  'policy/entropy': rows(N, (_, t) => 0.69 - 0.3 * t),
  'value/explained_variance': rows(N, (_, t) => Math.min(0.95, 0.1 + 2 * t)),
  'loss/value': rows(N, () => about(20, 0.3)),
  'loss/policy': rows(N, () => -about(0.006)),
  'train/lr': rows(N, () => 3e-4),
};
const agent = (over: Record<string, number[]> = {}, more: More = {}): CanonicalRun =>
  run({ ...base, ...over }, more);
const codes = (d: Diagnosis): string[] => d.findings.filter(f => f.severity !== 'info').map(f => f.code);

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

describe('explained variance that falls', () => {
  const falling = rows(N, (_, t) => 0.9 - 1.4 * t + 0.04 * rng.normal());

  it('is told under a flat return', () => {
    const d = diagnose(
      agent({ 'value/explained_variance': falling, 'episode/return': rows(N, () => about(20, 0.1)) }),
    );
    expect(d).toMatchObject({ verdict: 'watch', rootCause: 'critic-not-learning' });
    expect(codes(d)).toEqual(['critic-fading']);
    expect(d.findings[0]!.evidence.join(' ')).toMatch(/losing 0\.01\d* a row/);
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
    expect(codes(diagnose(agent({ 'value/explained_variance': falling, ...over })))).not.toContain(
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
      expect(codes(d), `seed ${seed}`).not.toContain('critic-fading');
    }
  });
});

describe('losses that are empty to the end', () => {
  it.each(['null', 'empty'] as const)('are not finite, if other numbers of the updates go on (%s)', kind => {
    const d = diagnose(blanked(['kl/step', 'loss/value', 'loss/policy'], 40, kind));
    expect(d).toMatchObject({ verdict: 'sick', rootCause: 'non-finite' });
    expect(d.findings[0]!.title).toMatch(/no value from step 41,000 on/);
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

describe('a return that is lost under a calm KL', () => {
  const lost = rows(N, i => about(i < 40 ? 20 + 4 * i : 180 - 4 * (i - 40)));

  it('is to be watched, and names no cause', () => {
    const d = diagnose(agent({ 'episode/return': lost }));
    expect(d).toMatchObject({ verdict: 'watch', rootCause: null });
    expect(codes(d)).toEqual(['return-collapse']);
  });

  it('is only told after the log was taken up again, perhaps with a harder task', () => {
    expect(diagnose(agent({ 'episode/return': lost }, { restarts: [45_000] })).verdict).toBe('healthy');
  });

  it('is only told where it is on its way back', () => {
    const back = rows(N, i => about(i < 30 ? 20 + 6 * i : i < 45 ? 60 : 60 + 4 * (i - 45)));
    expect(diagnose(agent({ 'episode/return': back })).verdict).toBe('healthy');
  });

  it('is a reward that shrank, if episodes stay as long and the value loss shrinks with the square', () => {
    const d = diagnose(
      agent({
        'episode/return': rows(N, i => about(i < 40 ? 200 : 20, 0.03)),
        'loss/value': rows(N, i => about(i < 40 ? 30 : 0.3, 0.2)),
      }),
    );
    expect(d.rootCause).toBe('reward-scale-changed');
  });

  it('is no change of scale where a policy learns fast and takes its critic along', () => {
    for (let seed = 0; seed < 20; seed++) {
      const noise = new Rng(seed);
      const level = (t: number): number => 5 + 200 / (1 + Math.exp(-50 * (t - 0.5)));
      const d = diagnose(
        agent({
          'episode/return': rows(N, (_, t) => Math.max(1, level(t) + 2 * noise.normal())),
          'loss/value': rows(N, (_, t) => 0.01 * level(t) ** 2 * Math.exp(0.2 * noise.normal())),
        }),
      );
      expect(d.verdict, `seed ${seed}`).toBe('healthy');
    }
  });
});

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
    expect(d.findings[0]!.fix.join(' ')).toMatch(/completions/);
    expect(d.findings[0]!.fix.join(' ')).not.toMatch(/episode/);
  });

  it('is left alone with fewer than 20 rows, above 0, or if one row differs', () => {
    expect(model(() => 0, 19).verdict).toBe('healthy');
    expect(model(() => 1).verdict).toBe('healthy');
    expect(model(i => (i % 4 === 3 ? 0.1 : 0)).rootCause).not.toBe('no-reward-signal');
  });
});

describe('an entropy that dies at once', () => {
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
    expect(codes(burst(0.08, 80_000))).not.toContain('ends-in-burst');
    const before = agent(
      {
        'kl/step': rows(N, i => (i === N - 1 ? 0.08 : i % 25 === 20 ? 0.07 : about(0.006, 0.3))),
        'loss/policy': rows(N, i => (i < N - 1 ? -about(0.006, 0.2) : -0.05)),
      },
      { config: { totalSteps: 200_000 } },
    );
    expect(codes(diagnose(before))).not.toContain('ends-in-burst');
  });

  it('is left alone where only the KL is out of line', () => {
    const made = agent(
      { 'kl/step': rows(N, i => (i < N - 1 ? about(0.006, 0.3) : 0.08)) },
      { config: { totalSteps: 200_000 } },
    );
    expect(codes(diagnose(made))).not.toContain('ends-in-burst');
  });
});
