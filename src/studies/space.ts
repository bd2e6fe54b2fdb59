/** What can be done with a search space. Runs in a browser: nothing here may import a Node module. */
import { ConfigError } from '../base/errors.ts';
import type { Axis, Domain, Params, ParamValue, Space } from './schema.ts';

/** Combinations of a grid at the most: nobody trains more, and they are all held in memory. */
const maxGrid = 100_000;

/** Whether an axis is searched where others have these values. An axis on which it depends and which is not there is not. */
export function isActive({ when }: Axis, params: Params): boolean {
  if (when === undefined) return true;
  return when.in.some(value => isSame(value, params[when.key]));
}

/** The axes that are searched where those before have these values. */
export const activeAxes = (space: Space, params: Params): Space =>
  space.filter(axis => isActive(axis, params));

/** Whether two values are the same, lists too. */
export const isSame = (a: ParamValue, b: ParamValue): boolean => JSON.stringify(a) === JSON.stringify(b);

/** How many values a domain has; Infinity for one of fractions without steps. */
export function countOf(domain: Domain): number {
  switch (domain.kind) {
    case 'choice':
      return domain.values.length;
    case 'int':
      return Math.floor((domain.high - domain.low) / domain.step) + 1;
    case 'float':
      return domain.step === undefined
        ? Number.POSITIVE_INFINITY
        : stepsIn(domain.low, domain.high, domain.step) + 1;
    default:
      return domain satisfies never;
  }
}

/** The value of a domain at a place, of those that can be counted. */
export function valueAt(domain: Domain, place: number): ParamValue {
  switch (domain.kind) {
    case 'choice':
      return domain.values[place];
    case 'int':
      return domain.low + place * domain.step;
    case 'float':
      return onGrid(domain.low, domain.step!, place);
    default:
      return domain satisfies never;
  }
}

/** All values of a domain; one of fractions without steps has none that can be listed. */
export const valuesOf = (domain: Domain): readonly ParamValue[] =>
  Array.from({ length: countOf(domain) }, (_, place) => valueAt(domain, place));

/** How many combinations a space has; Infinity where an axis cannot be counted. */
export function sizeOf(space: Space): number {
  if (space.some(({ domain }) => countOf(domain) === Number.POSITIVE_INFINITY))
    return Number.POSITIVE_INFINITY;
  // Each axis depends on one other at the most: a forest, in which what is below an axis counts for itself.
  const below = (key: string): Space => space.filter(({ when }) => when?.key === key);
  const sizeFrom = ({ key, domain }: Axis): number => {
    const named = valuesNamed(space, key).filter(value => has(domain, value));
    return named.reduce<number>((sum, value) => {
      const active = below(key).filter(axis => isActive(axis, { [key]: value }));
      return sum + active.reduce((product, axis) => product * sizeFrom(axis), 1);
    }, countOf(domain) - named.length);
  };
  return space
    .filter(({ when }) => when === undefined)
    .reduce((product, axis) => product * sizeFrom(axis), 1);
}

/** The values of an axis that conditions of others name, each once. */
function valuesNamed(space: Space, key: string): ParamValue[] {
  const named = space.flatMap(({ when }) => (when?.key === key ? when.in : []));
  return [...new Map(named.map(value => [JSON.stringify(value), value] as const)).values()];
}

/** All combinations, the last axis running fastest. */
export function gridOf(space: Space): readonly Params[] {
  const endless = space.filter(({ domain }) => countOf(domain) === Number.POSITIVE_INFINITY);
  if (endless.length > 0)
    throw new ConfigError(
      endless.map(({ key }) => ({
        key: `space.${key}`,
        text: `space.${key} has no end of values, which a grid cannot try: write a list or a step, or use method: random`,
      })),
    );
  const size = sizeOf(space);
  if (size > maxGrid)
    throw new ConfigError([
      { key: 'space', text: `space has ${size} combinations, a grid at most ${maxGrid}: use method: random` },
    ]);
  return space.reduce<Params[]>(
    (all, axis) =>
      all.flatMap(params =>
        isActive(axis, params)
          ? valuesOf(axis.domain).map(value => ({ ...params, [axis.key]: value }))
          : [params],
      ),
    [{}],
  );
}

/** Whether a domain has a value. */
export function has(domain: Domain, value: ParamValue): boolean {
  if (domain.kind === 'choice') return domain.values.some(one => isSame(one, value));
  if (typeof value !== 'number' || !(value >= domain.low && value <= domain.high)) return false;
  if (domain.step === undefined) return true;
  const place = Math.round((value - domain.low) / domain.step);
  return domain.kind === 'int'
    ? domain.low + place * domain.step === value
    : Math.abs(onGrid(domain.low, domain.step, place) - value) <= 1e-9 * domain.step;
}

/** Steps that fit between two numbers, where the last may miss by rounding. */
const stepsIn = (low: number, high: number, step: number): number => Math.floor((high - low) / step + 1e-9);

/** Decimal steps such as 0.1 leave `0.30000000000000004`, which nobody wants to read or to write. */
export const onGrid = (low: number, step: number, place: number): number =>
  Number((low + place * step).toPrecision(15));

export const lastOnGrid = (low: number, high: number, step: number): number =>
  onGrid(low, step, stepsIn(low, high, step));

/** What a trial's values set: settings, and options of the environment or the task. */
export function appliedParams(params: Params): {
  readonly config: Readonly<Record<string, ParamValue>>;
  readonly options: Readonly<Record<string, ParamValue>>;
} {
  const [config, options]: Record<string, ParamValue>[] = [{}, {}];
  for (const [key, value] of Object.entries(params)) {
    const option = /^(?:env|task)Options\.(.+)$/.exec(key)?.[1];
    if (option === undefined) config[key] = value;
    else options[option] = value;
  }
  return { config, options };
}
