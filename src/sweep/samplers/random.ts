/** Random search: every value of each axis equally likely, in the logarithm where the axis is logarithmic. */
import type { Space } from '../../studies/schema.ts';
import { drawFresh, notIn } from './fresh.ts';
import type { Sampler } from './sampler.ts';
import { streamOf } from './stream.ts';

export const randomSampler = (space: Space, searchSeed: number): Sampler => ({
  ask: (number, seen) => drawFresh(space, streamOf(searchSeed, number), notIn(space, seen)),
});
