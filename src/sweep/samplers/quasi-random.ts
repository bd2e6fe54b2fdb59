/**
 * Quasi-random search: Halton's sequence, whose points lie more evenly than random ones from the first on, with a random
 * permutation for each digit (Owen 2017, "A randomized Halton algorithm in R"). Without it neighbouring large bases rise in
 * step, and the first points of a space with many axes lie on a diagonal.
 *
 * Halton and not Sobol: it needs no table, and no number of trials has to be a power of two.
 */
import { Rng } from '../../random/rng.ts';
import type { Params, Space } from '../../studies/schema.ts';
import { drawFresh, notIn } from './fresh.ts';
import { paramsAt } from './params.ts';
import type { Sampler } from './sampler.ts';
import { streamOf } from './stream.ts';

/** Digits of a coordinate reach to this: beyond it no setting differs. */
const FINEST = 2 ** -32;

function primes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every(prime => n % prime !== 0)) found.push(n);
  return found;
}

/** One coordinate's points of a Halton sequence, as a function of the index. */
function haltonAxis(base: number, rng: Rng): (index: number) => number {
  // A permutation for each place; zeros before the first digit are permuted too, so that points are uniform one by one.
  const places: Int32Array[] = [];
  for (let weight = 1; weight > FINEST; weight /= base) places.push(rng.permutation(base));
  const offset = rng.uniform();
  return index => {
    let [rest, weight, unit] = [index, 1, 0];
    for (const permutation of places) {
      weight /= base;
      unit += permutation[rest % base] * weight;
      rest = Math.floor(rest / base);
    }
    return unit + offset * weight;
  };
}

/** The points of a space, by trial number, whatever has been seen. */
export function haltonPoints(space: Space, searchSeed: number): (number: number) => Params {
  const streams = new Rng(searchSeed).split(Math.max(1, space.length));
  const axes = primes(space.length).map((base, i) => haltonAxis(base, streams[i]));
  return number => paramsAt(space, i => axes[i](number));
}

export function quasiRandomSampler(space: Space, searchSeed: number): Sampler {
  const pointOf = haltonPoints(space, searchSeed);
  return {
    ask(number, seen) {
      const isFresh = notIn(space, seen);
      const point = pointOf(number);
      return isFresh(point) ? point : drawFresh(space, streamOf(searchSeed, number), isFresh);
    },
  };
}
