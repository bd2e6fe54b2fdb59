import { expect, it } from 'vitest';
import { meansOf, moments } from '../../../src/algos/update/moments.ts';

it('means and standard deviations are those of the population', () => {
  expect(moments([1, 3])).toEqual({ mean: 2, std: 1 });
  expect(moments(Float32Array.of(5))).toEqual({ mean: 5, std: 0 });
  expect(moments([])).toEqual({ mean: Number.NaN, std: Number.NaN });
  expect(meansOf({ kl: 3, ratio: 6 }, 3)).toEqual({ kl: 1, ratio: 2 });
});
