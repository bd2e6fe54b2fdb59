/** Which trainer, which of several, and what the user says about it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunError } from '../../../src/base/errors.ts';
import { dialects, toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { dialectTable } from '../../../tools/doctor-docs/dialect-table.ts';
import { processorMs } from '../../support/processor-time.ts';
import { events, named, table } from './support/raw.ts';

const sb3 = [
  'time/total_timesteps',
  'rollout/ep_rew_mean',
  'train/approx_kl',
  'train/policy_gradient_loss',
  'time/fps',
];
const grpo = [
  'reward_std',
  'completions/mean_length',
  'reward',
  'kl',
  'frac_reward_zero_std',
  'rewards/f/mean',
];

describe('the trainer', () => {
  it('is the one with the most signs, and a second one is noted', () => {
    const run = toCanonical(named([...sb3, ...grpo]));
    expect(['stable-baselines3', 'trl-grpo']).toContain(run.trainer);
    expect(run.notes.join()).toMatch(/also has names of/);
    expect(toCanonical(named(sb3)).notes).toEqual([]);
  });

  it('may be named by the user', () => {
    expect(toCanonical(named(sb3), { trainer: 'cleanrl' }).trainer).toBe('cleanrl');
    expect(toCanonical(named(sb3), { trainer: 'unknown' }).series.get('kl/step')?.kl?.estimator).toBe(
      'unknown',
    );
    expect(() => toCanonical(named(sb3), { trainer: 'cleanlr' })).toThrow(
      'unknown trainer "cleanlr": did you mean cleanrl?',
    );
    expect(() => toCanonical(named(sb3), { trainer: '' })).toThrow(RunError);
  });

  it('is not TRL because rewards have a mean and a std', () => {
    const run = toCanonical(named(['step', 'reward', 'reward_std', 'kl', 'rewards/speed']));
    expect(run).toMatchObject({ trainer: 'unknown', kind: 'classic' });
  });

  it('is found in time among thousands of names', () => {
    const many = Array.from(
      { length: 4000 },
      (_, i) => `environment/agent_${i}/statistics of the mean_reward_${i}`,
    );
    const start = processorMs();
    expect(toCanonical(named([...many, ...sb3, ...grpo], 2)).series.size).toBeGreaterThan(3);
    expect(processorMs() - start).toBeLessThan(5000);
  });

  it('is Keel where the reader says so, however few names there are', () => {
    expect(toCanonical({ ...named(['loss/value']), format: 'keel' }).trainer).toBe('keel');
  });

  it('of several policies is about one, and says so', () => {
    const names = ['a', 'b'].flatMap(policy =>
      ['mean_kl_loss', 'entropy', 'vf_loss'].map(m => `learners/${policy}/${m}`),
    );
    const run = toCanonical(
      named([...names, 'learners/b/policy_loss', 'learners/__all_modules__/total_loss']),
    );
    expect(run.series.get('kl/step')?.theirs).toBe('learners/b/mean_kl_loss');
    expect(run.notes.join()).toMatch(/2 policies: this is about b, not a/);
    const withDefault = toCanonical(named([...names, 'learners/default_policy/mean_kl_loss']));
    expect(withDefault.series.get('kl/step')?.theirs).toBe('learners/default_policy/mean_kl_loss');
  });
});

describe('an unknown trainer', () => {
  it('is read by the words of its names, carefully', () => {
    const run = toCanonical(
      named([
        'global_step',
        'train/approx_kl',
        'train/entropy',
        'train/value_loss',
        'stats/explained_variance',
        'episode_reward',
        'opt/lr',
        'grad_norm',
        'clip_frac',
        'advantages/mean',
        'values/mean',
        'observations/std',
        'eval/return',
        'eval/entropy',
        'kludge',
        'max_return',
        'skill',
      ]),
    );
    expect(run.trainer).toBe('unknown');
    expect(Object.fromEntries([...run.series.values()].map(({ id, theirs }) => [id, theirs]))).toEqual({
      'kl/step': 'train/approx_kl',
      'policy/entropy': 'train/entropy',
      'loss/value': 'train/value_loss',
      'value/explained_variance': 'stats/explained_variance',
      'episode/return': 'episode_reward',
      'eval/return': 'eval/return',
      'train/lr': 'opt/lr',
      'grad/norm': 'grad_norm',
      'policy/clip_fraction': 'clip_frac',
    });
    expect(run.unknown).toEqual([
      'advantages/mean',
      'values/mean',
      'observations/std',
      'eval/entropy',
      'kludge',
      'max_return',
      'skill',
    ]);
  });

  it('means the update by a bare kl, and the reference where names speak of language models', () => {
    const classic = toCanonical(named(['step', 'kl', 'return', 'entropy']));
    expect(classic.series.get('kl/step')?.kl).toEqual({
      pair: 'step',
      estimator: 'unknown',
      per: 'unknown',
      aggregation: 'unknown',
      lag: 0,
    });
    const language = toCanonical(named(['step', 'kl', 'rewards', 'response_length']));
    expect(language.kind).toBe('language-model');
    expect(language.series.get('kl/ref')?.kl?.pair).toBe('ref');
    expect(language.series.has('kl/step')).toBe(false);
  });

  it('without a counter has rows for x, and says so', () => {
    const run = toCanonical(table([{ loss: 1 }, { loss: 2 }]));
    expect(run.unit).toBe('rows');
    expect(run.notes.join()).toMatch(/no column counts/);
  });
});

describe('--map', () => {
  const raw = named(['step', 'my_kl', 'entropy', 'loss/critic']);

  it('is stronger than what the names say', () => {
    const run = toCanonical(raw, {
      map: new Map([
        ['my_kl', 'kl/step_k1'],
        ['loss/critic', 'loss/total'],
      ]),
    });
    expect(run.series.get('kl/step_k1')).toMatchObject({
      theirs: 'my_kl',
      kl: { pair: 'step', estimator: 'k1' },
    });
    expect(run.series.get('loss/total')?.theirs).toBe('loss/critic');
    expect(run.series.has('loss/value')).toBe(false);
  });

  it('to an unknown name is an error with the nearest', () => {
    expect(() => toCanonical(raw, { map: new Map([['my_kl', 'kl/stpe']]) })).toThrow('did you mean kl/step?');
  });

  it('from a name that the log lacks is an error with similar ones', () => {
    expect(() => toCanonical(raw, { map: new Map([['myy_kl', 'kl/step']]) })).toThrow(
      '--map "myy_kl": the log has no such name; it has "my_kl"',
    );
    expect(() => toCanonical(raw, { map: new Map([['critic', 'loss/value']]) })).toThrow('"loss/critic"');
  });
});

describe('steps that go back', () => {
  const rows = (steps: readonly number[]) =>
    table(
      steps.map((step, i) => ({ 'time/total_timesteps': step, 'rollout/ep_rew_mean': i, 'time/fps': 1 })),
    );
  const x = (steps: readonly number[]): number[] => {
    const { series } = toCanonical(rows(steps)).series.get('episode/return')!;
    return [...series.x.subarray(0, series.length)];
  };

  it('to a checkpoint drop what is repeated', () => {
    expect(x([100, 200, 300, 400, 250, 350, 450])).toEqual([100, 200, 250, 350, 450]);
    expect(toCanonical(rows([100, 200, 300, 400, 250, 350, 450])).restarts).toEqual([250]);
  });

  it('to the beginning are counted on', () => {
    expect(x([100, 200, 300, 10, 110])).toEqual([100, 200, 300, 310, 410]);
  });

  it('again and again, and come to nothing, count no steps: they are those of an episode', () => {
    const axis = (steps: (i: number) => number): string =>
      toCanonical(table(Array.from({ length: 40 }, (_, i) => ({ episode: i, steps: steps(i), score: i }))))
        .unit;
    expect(axis(i => 90 + ((37 * i) % 50))).toBe('episodes');
    // Of several workers that write one log, each with a clock of its own.
    expect(axis(i => 100 * i + ((370 * i) % 500))).toBe('steps');
    expect(axis(i => 100 * i)).toBe('steps');
  });

  it('never leave x falling', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 2, maxLength: 40 }), steps => {
        fc.pre(new Set(steps).size > 1);
        const found = x(steps);
        for (let i = 1; i < found.length; i++) expect(found[i]).toBeGreaterThanOrEqual(found[i - 1]);
      }),
    );
  });
});

describe('any log', () => {
  it('gives a run: no name or number breaks it', () => {
    const parts = [
      'train',
      'losses',
      'kl',
      'entropy',
      'reward',
      '/',
      '_',
      ' ',
      'mean',
      'info/learner/',
      'x',
      '$1',
      '..',
      '',
      '__proto__',
    ];
    const name = fc
      .array(fc.constantFrom(...parts), { minLength: 1, maxLength: 6 })
      .map(list => list.join(''));
    const known = fc.constantFrom(
      ...dialects.flatMap(({ mappings }) =>
        mappings.flatMap(m => (typeof m.theirs === 'string' ? [m.theirs] : [])),
      ),
    );
    const value = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 0, -0, 1e308));
    fc.assert(
      fc.property(
        fc.dictionary(fc.oneof(name, known), fc.array(fc.tuple(fc.double(), value), { maxLength: 5 }), {
          maxKeys: 20,
        }),
        fc.constantFrom('row' as const, 'step' as const),
        (tags, axis) => {
          const raw = { ...events(tags), axis };
          const run = toCanonical(raw);
          for (const { id, series, kl } of run.series.values()) {
            expect(series.length).toBeGreaterThan(0);
            expect(series.values.length).toBeGreaterThanOrEqual(series.length);
            expect(kl !== undefined).toBe(id.startsWith('kl/') && !id.endsWith('coef'));
            for (let i = 0; i < series.length; i++) expect(Number.isFinite(series.x[i])).toBe(true);
          }
          for (const theirs of run.unknown) expect(raw.series.has(theirs)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is not changed by being read', () => {
    const raw = named(sb3, 5);
    const before = [...raw.series].map(([name, { x, values }]) => [name, [...x], [...values]]);
    toCanonical(raw);
    expect([...raw.series].map(([name, { x, values }]) => [name, [...x], [...values]])).toEqual(before);
  });
});

describe('the table of dialects', () => {
  it('has a row for each trainer, with every KL explained and no pattern left in a name', () => {
    const rows = dialectTable();
    expect(rows.map(({ trainer }) => trainer)).toEqual(dialects.map(({ name }) => name));
    for (const { trainer, metrics, remarks } of rows) {
      expect(remarks, trainer).toMatch(/\.$/);
      for (const { theirs, id, kl } of metrics) {
        expect(theirs.length, `${trainer} ${id}`).toBeGreaterThan(0);
        for (const name of theirs) expect(name, `${trainer} ${id}`).not.toMatch(/[\\^$?+[\]]/);
        expect(kl !== undefined, id).toBe(id.startsWith('kl/') && !id.endsWith('coef'));
      }
    }
    const approx = rows.find(({ trainer }) => trainer === 'stable-baselines3')!.metrics[0];
    expect(approx).toEqual({
      theirs: ['train/approx_kl'],
      id: 'kl/step',
      kl: 'step, k3, per action, last epoch, 1 row late',
    });
  });
});
