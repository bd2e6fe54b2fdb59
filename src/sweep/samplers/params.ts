/** Settings of a place in the unit cube, and whether two trials have the same. */
import type { Params, ParamValue, Space } from '../../studies/schema.ts';
import { isActive } from '../../studies/space.ts';
import { fromUnit } from '../../studies/unit.ts';

/** Params of a place in the unit cube: an axis whose condition does not hold has its coordinate, and no value. */
export function paramsAt(space: Space, place: (axis: number) => number): Params {
  const params: Record<string, ParamValue> = {};
  space.forEach((axis, i) => {
    const unit = place(i);
    if (isActive(axis, params)) params[axis.key] = fromUnit(axis.domain, unit);
  });
  return params;
}

/** Two trials with the same values have the same key. */
export const keyOf = (space: Space, params: Params): string =>
  JSON.stringify(space.map(axis => params[axis.key] ?? null));
