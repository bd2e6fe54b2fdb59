import { describe, expect, it } from 'vitest';
import {
  bernoulli,
  categorical,
  composite,
  type Distribution,
  gaussian,
  MASKED_LOGIT,
  multiCategorical,
} from '../../src/kl/index.ts';
import { testDistribution } from './support/contract.ts';

/** Every combination of one item from each list. */
const product = (...lists: number[][][]): number[][] =>
  lists.reduce((rows, list) => rows.flatMap(row => list.map(item => [...row, ...item])), [[]] as number[][]);
const upTo = (k: number): number[][] => Array.from({ length: k }, (_, i) => [i]);

const LOGIT_EXTREMES = [0, 1, -1, 20, -20, 100, -100, 1e4, -1e4, MASKED_LOGIT];
// As means: far apart. As log-stds: beyond the clamp on both sides.
const GAUSSIAN_EXTREMES = [0, 0.5, -0.5, 5, -5, 20, -20, 100, -100, 1000, -1000];

testDistribution('gaussian(1)', () => gaussian(1), { extremes: GAUSSIAN_EXTREMES });
testDistribution('gaussian(3)', () => gaussian(3), { extremes: GAUSSIAN_EXTREMES });
testDistribution('categorical(2)', () => categorical(2), { actions: upTo(2), extremes: LOGIT_EXTREMES });
testDistribution('categorical(7)', () => categorical(7), { actions: upTo(7), extremes: LOGIT_EXTREMES });
testDistribution('multiCategorical([3, 2, 4])', () => multiCategorical([3, 2, 4]), {
  actions: product(upTo(3), upTo(2), upTo(4)),
  extremes: LOGIT_EXTREMES,
});
testDistribution('multiCategorical([3, 3])', () => multiCategorical([3, 3]), {
  actions: product(upTo(3), upTo(3)),
  extremes: LOGIT_EXTREMES,
});
testDistribution('bernoulli(1)', () => bernoulli(1), { actions: upTo(2), extremes: LOGIT_EXTREMES });
testDistribution('bernoulli(4)', () => bernoulli(4), {
  actions: product(upTo(2), upTo(2), upTo(2), upTo(2)),
  extremes: LOGIT_EXTREMES,
});
testDistribution(
  'a composite of discrete parts',
  () => composite([categorical(3), bernoulli(2), multiCategorical([2, 2])]),
  {
    actions: product(upTo(3), upTo(2), upTo(2), upTo(2), upTo(2)),
    extremes: LOGIT_EXTREMES,
  },
);
testDistribution(
  'a composite of all kinds',
  () => composite([gaussian(2), composite([categorical(3), bernoulli(1)]), multiCategorical([2, 3])]),
  { extremes: [0, 1, -1, 5, -5, 20, -20, 100, -100] },
);

describe('composite', () => {
  const parts = [gaussian(2), categorical(3), bernoulli(2)];
  const whole = composite(parts);
  // [mean, mean, logStd, logStd | 3 logits | 2 logits]
  const p = [0.3, -1, 0.2, -0.5, 1, 0, -1, 0.4, -2];
  const q = [0.1, -1.2, 0.1, -0.4, 0.5, 0.2, -1, 0.9, -1];
  const action = [0.7, -1.1, 2, 1, 0];
  const cut = (row: number[], size: (part: Distribution) => number): number[][] => {
    let start = 0;
    return parts.map(part => {
      start += size(part);
      return row.slice(start - size(part), start);
    });
  };

  it('adds up', () => {
    const [ps, qs, as] = [cut(p, d => d.paramSize), cut(q, d => d.paramSize), cut(action, d => d.actionSize)];
    const sum = (f: (part: Distribution, i: number) => number): number =>
      parts.reduce((total, part, i) => total + f(part, i), 0);
    expect(whole.logProb(p, action)).toBeCloseTo(
      sum((part, i) => part.logProb(ps[i], as[i])),
      14,
    );
    expect(whole.entropy(p)).toBeCloseTo(
      sum((part, i) => part.entropy(ps[i])),
      14,
    );
    expect(whole.kl(p, q)).toBeCloseTo(
      sum((part, i) => part.kl(ps[i], qs[i])),
      14,
    );
    expect([whole.paramSize, whole.actionSize, whole.noiseSize]).toEqual([9, 5, 5]);
    expect(whole.name).toBe('composite([gaussian(2), categorical(3), bernoulli(2)])');
  });

  it('a multiCategorical is a composite of categoricals', () => {
    const multi = multiCategorical([2, 3]);
    const pair = composite([categorical(2), categorical(3)]);
    const [a, b] = [
      [0.1, 0.4, -1, 2, 0],
      [0.3, 0, -0.5, 1, 0.2],
    ];
    expect(multi.kl(a, b)).toBeCloseTo(pair.kl(a, b), 15);
    expect(multi.entropy(a)).toBeCloseTo(pair.entropy(a), 15);
    expect(multi.logProb(a, [1, 2])).toBeCloseTo(pair.logProb(a, [1, 2]), 15);
  });

  it('may hold one part object twice, and itself be a part', () => {
    const one = categorical(2);
    const twice = composite([one, one]);
    const nested = composite([twice, twice]);
    const row = [0.1, 0.9, -1, 1, 2, 0, 0, 0.5];
    expect(nested.logProb(row, [0, 1, 0, 1])).toBeCloseTo(
      twice.logProb(row.slice(0, 4), [0, 1]) + twice.logProb(row.slice(4), [0, 1]),
      14,
    );
  });
});

describe('bad input', () => {
  it.each<[message: string, call: () => unknown]>([
    [
      'gaussian(n): n is 0, not an integer of at least 1: try the number of continuous actions, gaussian(2)',
      () => gaussian(0),
    ],
    ['gaussian(n): n is -3, not an integer of at least 1', () => gaussian(-3)],
    ['gaussian(n): n is 1.5, not an integer', () => gaussian(1.5)],
    ['gaussian(n): n is NaN, not an integer', () => gaussian(Number.NaN)],
    [
      'categorical(k): k is 0, not an integer of at least 1: try the number of categories, categorical(2)',
      () => categorical(0),
    ],
    ['categorical(k): k is 2.5', () => categorical(2.5)],
    ['categorical(k): k is 3, not an integer', () => categorical('3' as unknown as number)],
    [
      'bernoulli(n): n is 0, not an integer of at least 1: try the number of switches, bernoulli(2)',
      () => bernoulli(0),
    ],
    [
      'multiCategorical([]) has 0 variables, at least 1 is needed: try multiCategorical([3, 2])',
      () => multiCategorical([]),
    ],
    ['multiCategorical(sizes): sizes[1] is 0, not an integer of at least 1', () => multiCategorical([3, 0])],
    [
      'composite([]) has 0 parts, at least 1 is needed: try composite([categorical(3), gaussian(1)])',
      () => composite([]),
    ],
    [
      'categorical(3): action 3 is not a category in 0..2: pass its index',
      () => categorical(3).logProb([0, 0, 0], [3]),
    ],
    ['categorical(3): action -1 is not a category in 0..2', () => categorical(3).logProb([0, 0, 0], [-1])],
    ['categorical(3): action 0.5 is not a category in 0..2', () => categorical(3).logProb([0, 0, 0], [0.5])],
    [
      'categorical(3): action NaN is not a category in 0..2',
      () => categorical(3).logProb([0, 0, 0], [Number.NaN]),
    ],
    [
      'multiCategorical([2, 3]): action 2 is not a category in 0..1',
      () => multiCategorical([2, 3]).logProb([0, 0, 0, 0, 0], [2, 0]),
    ],
    ['bernoulli(2): action 2 at index 1 is not 0 or 1: pass one', () => bernoulli(2).logProb([0, 0], [1, 2])],
    [
      'categorical(2): action 5 is not a category in 0..1',
      () => composite([gaussian(1), categorical(2)]).logProb([0, 0, 0, 0], [0, 5]),
    ],
  ])('%s', (message, call) => {
    expect(call).toThrow(message);
    expect(call).toThrow(/^[^\n]+$/);
  });
});
