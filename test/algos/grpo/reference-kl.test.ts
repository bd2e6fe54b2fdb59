/** What `klRefEstimator` comes to: where the exact KL fits and where not, in new runs and in those made before. */
import { expect, test } from 'vitest';
import { grpo } from '../../../src/algos/grpo/algorithm.ts';
import { MAX_KEPT, refKlOf } from '../../../src/algos/grpo/reference-kl.ts';
import { type GrpoConfig, type GrpoSettings, grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { resolveSettings, savedSettings } from '../../../src/settings/resolve.ts';
import { trainerFor } from './support.ts';

const chosen = (klRefEstimator: GrpoConfig['klRefEstimator'], size: number, reference = 'frozen') =>
  refKlOf({ klRefEstimator, reference: reference as GrpoConfig['reference'] }, size);

test('auto is exact as long as it fits, then ratio-k3; what is named is taken', () => {
  expect(chosen('auto', MAX_KEPT)).toBe('exact');
  expect(chosen('auto', MAX_KEPT + 1)).toBe('ratio-k3');
  for (const name of ['ratio-k3', 'k2', 'k1-advantage', 'k3'] as const)
    for (const size of [1, MAX_KEPT + 1]) expect(chosen(name, size)).toBe(name);
  for (const name of ['exact', 'exact-sequence'] as const) expect(chosen(name, MAX_KEPT)).toBe(name);
  expect(chosen('exact', MAX_KEPT + 1, 'none')).toBe('none');
});

test('an exact one that does not fit is refused, with what estimates the same', () => {
  const many = { promptsPerIteration: 2_000_000, steps: 1 } as const;
  expect(() => trainerFor({ ...many, klRefEstimator: 'exact' })).toThrow(
    /^klRefEstimator exact keeps \d+ numbers a batch, at most 64000000: use ratio-k3, or fewer or shorter completions$/,
  );
  expect(() => trainerFor({ ...many, klRefEstimator: 'exact-sequence' })).toThrow(/: use k1-advantage, or/);
});

test('a name that is none is refused with those that are', () => {
  const refused = (klRefEstimator: unknown): string => {
    try {
      resolveSettings(grpoSettings, { given: { klRefEstimator } as GrpoSettings });
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing was refused';
  };
  expect(refused('k4')).toBe(
    'klRefEstimator is "k4", not one of auto, exact, exact-sequence, ratio-k3, k2, k1-advantage, k3, exact-or-k3: the default is "auto"',
  );
});

test('a run made before goes on as it began: auto was k3 where the exact one does not fit, and means were over what counts', () => {
  const manifest = (config: object) => ({
    ...{ id: 'old', versions: { keel: '0.1.0' }, status: 'stopped', iteration: 3 },
    config,
  });
  const saved = (config: object) => savedSettings(grpoSettings, manifest(config));
  const { denominator: _, ...before } = grpoSettings.defaults;
  expect(saved(before)).toEqual({ ...before, denominator: 'counted', klRefEstimator: 'exact-or-k3' });
  expect(chosen('exact-or-k3', MAX_KEPT)).toBe('exact');
  expect(chosen('exact-or-k3', MAX_KEPT + 1)).toBe('k3');
  for (const klRefEstimator of ['exact', 'k3'] as const)
    expect(saved({ ...before, klRefEstimator })).toMatchObject({ klRefEstimator, denominator: 'counted' });
  // A run of this version says which it is.
  expect(saved(grpoSettings.defaults)).toEqual(grpoSettings.defaults);
  expect(grpoSettings.defaults).toMatchObject({ klRefEstimator: 'auto', denominator: 'all' });
});

test('denominator changes nothing where tokens are counted, and says so', () => {
  expect(() => resolveSettings(grpoSettings, { given: { denominator: 'counted' } })).toThrow(
    'denominator has no effect without aggregation sequence or constant: add that, or remove denominator',
  );
});

test.each(['exact-sequence', 'ratio-k3', 'k2', 'k1-advantage', 'k3'] as const)(
  '%s: it trains inside the bound, and pulls back to the reference',
  async klRefEstimator => {
    const at = async (klRefCoef: number) => {
      const trainer = trainerFor({
        ...{ klRefEstimator, klRefCoef, learningRate: 0.01, guard: 0.05, guardRetries: 0, seed: 4 },
        ...{ epochs: 2, minibatchSize: 16, learningRateSchedule: 'constant' },
      });
      let row: Record<string, number> = {};
      for (let i = 0; i < 12; i++) {
        ({ row } = await trainer.iterate());
        if (!(row['kl/step'] <= 0.05)) throw new Error(`a KL of ${row['kl/step']}`);
      }
      await trainer.dispose();
      return row;
    };
    const [free, held] = [await at(0), await at(3)];
    const [logged, other] =
      klRefEstimator === 'exact-sequence' ? ['kl/ref', 'kl/ref_k3'] : ['kl/ref_k3', 'kl/ref'];
    expect(free[logged]).toBeGreaterThan(0.05);
    expect(held[logged]).toBeLessThan(free[logged] / 2);
    expect(held[other]).toBeUndefined();
  },
);

test('a gradient that is right for the first step alone is remarked on where an update has more', () => {
  const remarkOn = (settings: Partial<GrpoConfig>): string | undefined =>
    grpo.remark!({
      config: { ...grpoSettings.defaults, ...settings },
      step: 0,
      started: true,
      subject: 'arithmetic',
    });
  for (const klRefEstimator of ['k2', 'k1-advantage', 'exact-sequence'] as const) {
    expect(remarkOn({ klRefEstimator })).toBeUndefined();
    expect(remarkOn({ klRefEstimator, epochs: 2, minibatchSize: 32 })).toMatch(
      new RegExp(
        `^klRefEstimator ${klRefEstimator} has the right gradient in the first of an update's 4 steps`,
      ),
    );
    expect(remarkOn({ klRefEstimator, epochs: 2, reference: 'none' })).toBeUndefined();
  }
  for (const klRefEstimator of ['auto', 'exact', 'ratio-k3'] as const)
    expect(remarkOn({ klRefEstimator, epochs: 4 })).toBeUndefined();
});
