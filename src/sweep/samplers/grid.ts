/** All combinations, in a fixed order: trial n is the n-th. */
import type { Space } from '../../studies/schema.ts';
import type { Sampler } from './sampler.ts';
import { gridOf } from './unit.ts';

export function gridSampler(space: Space): Sampler {
  const grid = gridOf(space);
  return { ask: number => grid[number] };
}
