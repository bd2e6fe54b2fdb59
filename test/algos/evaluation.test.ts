/** What is looked at while a run trains, apart from any run. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evaluationRow, isEvaluated, reachedIn, roundSeed } from '../../src/algos/evaluation.ts';
import { envSeeds } from '../../src/envs/vector/vector.ts';
import { MAX_SEED } from '../../src/random/rng.ts';

describe('seeds of evaluations', () => {
  test('are seeds, never the own of the run, and different in each round', () => {
    const seeds = fc.oneof(
      fc.maxSafeNat(),
      fc.constantFrom(0, 1, 10_000, 2 ** 52 - 1, 2 ** 52, MAX_SEED - 1, MAX_SEED),
    );
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: 1000 }), (seed, round) => {
        const all = [roundSeed(seed, 0), roundSeed(seed, round)];
        expect(new Set([seed, ...all]).size).toBe(3);
        for (const one of all) expect(Number.isInteger(one) && one >= 0 && one <= MAX_SEED).toBe(true);
      }),
    );
  });

  test('make other environments than training has, the same ones for runs of any usual seed', () => {
    const training = [0, 1, 2, 3, 1000, 10_000].flatMap(seed => envSeeds(seed, 64));
    const evaluated = [0, 1, 2].flatMap(round => envSeeds(roundSeed(0, round), 16));
    expect(new Set([...training, ...evaluated]).size).toBe(training.length + evaluated.length);
    expect(roundSeed(0, 1)).toBe(roundSeed(12_345, 1));
  });
});

test('a row tells what there is to tell', () => {
  expect(evaluationRow({ returns: [1, 7], lengths: [10, 20] })).toEqual({
    'eval/return': 4,
    'eval/return_se': 3,
    'eval/return_std': 3,
    'eval/length': 15,
    'eval/episodes': 2,
  });
  const one = evaluationRow({ returns: [2], lengths: [3] });
  expect(one).toEqual({ 'eval/return': 2, 'eval/return_std': 0, 'eval/length': 3, 'eval/episodes': 1 });
  expect(evaluationRow({ returns: [], lengths: [] })).toEqual({ 'eval/episodes': 0 });
});

test('is due each so many iterations, and at the end', () => {
  const at = (evaluateEvery: number | undefined, iteration: number, steps: number) =>
    isEvaluated({ ...(evaluateEvery !== undefined && { evaluateEvery }) }, { iteration, steps }, 100);
  expect([at(3, 3, 30), at(3, 4, 40), at(3, 4, 100), at(0, 4, 100), at(undefined, 4, 100)]).toEqual([
    true,
    false,
    true,
    false,
    false,
  ]);
});

describe('a return to stop at', () => {
  const row = (values: Readonly<Record<string, number>>) => ({ 'train/iteration': 1, ...values });
  const trained = (mean: number, count: number) => row({ 'episode/return': mean, 'episode/count': count });
  const judged = (mean: number) => row({ 'eval/return': mean, 'eval/episodes': 3 });

  test('is none unless it is set', () => {
    expect(reachedIn({}, [trained(9, 99)])).toBeUndefined();
    expect(reachedIn({ stopAt: null }, [trained(9, 99)])).toBeUndefined();
    expect(reachedIn({ stopAt: 0 }, [])).toBeUndefined();
  });

  test('is reached at the value itself, and not by what is no number', () => {
    expect(reachedIn({ stopAt: 9 }, [trained(9, 20)])).toEqual({
      return: 9,
      stopAt: 9,
      episodes: 20,
      of: 'training',
    });
    expect(reachedIn({ stopAt: 9 }, [trained(8.999, 20)])).toBeUndefined();
    expect(reachedIn({ stopAt: -9 }, [trained(Number.NaN, 20)])).toBeUndefined();
    expect(reachedIn({ stopAt: 9 }, [trained(9, 19)])).toBeUndefined();
    expect(reachedIn({ stopAt: -5 }, [trained(-4, 20)])?.return).toBe(-4);
  });

  test('of an evaluation is that of the newest row: an older one judged another policy', () => {
    const looks = { stopAt: 5, evaluateEvery: 2 };
    expect(reachedIn(looks, [judged(6)])).toEqual({ return: 6, stopAt: 5, episodes: 3, of: 'evaluation' });
    expect(reachedIn(looks, [judged(6), row({})])).toBeUndefined();
    expect(reachedIn(looks, [trained(6, 100)])).toBeUndefined();
    expect(reachedIn({ stopAt: 5 }, [judged(6)])).toBeUndefined();
  });
});
