import type { Study } from '../../studies/schema.ts';
import { gridSampler } from './grid.ts';
import { quasiRandomSampler } from './quasi-random.ts';
import { randomSampler } from './random.ts';
import type { Sampler } from './sampler.ts';
import { tpeSampler } from './tpe.ts';

/** The sampler of a study's method. */
export function makeSampler({
  space,
  method,
  searchSeed,
  objective,
}: Pick<Study, 'space' | 'method' | 'searchSeed' | 'objective'>): Sampler {
  switch (method) {
    case 'grid':
      return gridSampler(space);
    case 'random':
      return randomSampler(space, searchSeed);
    case 'quasi-random':
      return quasiRandomSampler(space, searchSeed);
    case 'tpe':
      return tpeSampler(space, searchSeed, objective.direction);
    default:
      throw new RangeError(
        `method ${String(method satisfies never)} is unknown: use grid, random, quasi-random or tpe`,
      );
  }
}
