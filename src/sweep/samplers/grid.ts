/** All combinations, in a fixed order: trial n is the n-th. */
import type { Space } from '../../studies/schema.ts';
import { gridOf } from '../../studies/space.ts';
import type { Sampler } from './sampler.ts';

export function gridSampler(space: Space): Sampler {
  const grid = gridOf(space);
  return { ask: number => grid[number] };
}
