/**
 * A trial is never tried twice: a run's bits follow from its settings and seed, so the same settings come to the same result.
 */
import type { Rng } from '../../random/rng.ts';
import type { Params, Space } from '../../studies/schema.ts';
import { countOf, gridOf } from '../../studies/space.ts';
import { keyOf, paramsAt } from './params.ts';
import type { Seen } from './sampler.ts';

/** Draws before a space is held to be nearly exhausted. */
const DRAWS = 100;
/** Up to so many combinations what is left is looked for one by one. */
const SMALL = 10_000;

const drawAnywhere = (space: Space, rng: Rng): Params => paramsAt(space, () => rng.uniform());

/** Whether settings were not tried yet. */
export function notIn(space: Space, seen: readonly Seen[]): (params: Params) => boolean {
  // A range without steps that is always searched: no two draws are the same.
  if (space.some(axis => axis.when === undefined && countOf(axis.domain) === Infinity)) return () => true;
  const keys = new Set(seen.map(trial => keyOf(space, trial.params)));
  return params => !keys.has(keyOf(space, params));
}

/** Random settings that were not tried yet; undefined where all were. */
export function drawFresh(space: Space, rng: Rng, isFresh: (params: Params) => boolean): Params | undefined {
  let params = drawAnywhere(space, rng);
  for (let i = 1; i < DRAWS && !isFresh(params); i++) params = drawAnywhere(space, rng);
  if (isFresh(params)) return params;
  const most = space.reduce((product, axis) => product * countOf(axis.domain), 1);
  // In a large space a hundred misses cannot be but by a fault: better the same again than a study that ends.
  if (most > SMALL) return params;
  const left = gridOf(space).filter(isFresh);
  return left.length > 0 ? left[rng.integer(left.length)] : undefined;
}
