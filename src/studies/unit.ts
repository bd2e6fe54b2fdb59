/**
 * Every axis on one scale: what a sampler draws is in 0..1, evenly over the domain's values or over their logarithm. Where
 * there are steps each value has a cell, and the ends' cells are as wide as the others: all values are equally likely. Runs
 * in a browser: nothing here may import a Node module.
 */
import type { Domain, ParamValue } from './schema.ts';
import { countOf, isSame, valueAt } from './space.ts';

type Range = Exclude<Domain, { kind: 'choice' }>;

/** The cell of a value, or -1 where the domain has no such value. */
export function indexOf(domain: Domain, value: ParamValue | undefined): number {
  if (value === undefined) return -1;
  if (domain.kind === 'choice') return domain.values.findIndex(other => isSame(other, value));
  if (typeof value !== 'number' || domain.step === undefined) return -1;
  const index = Math.round((value - domain.low) / domain.step);
  return index >= 0 && index < countOf(domain) ? index : -1;
}

/** The ends of what is drawn from: half a step beyond the values at either side, but above 0 where it is logarithmic. */
function edges(domain: Range): [number, number] {
  const { low, log, step = 0 } = domain;
  const last = step > 0 ? (valueAt(domain, countOf(domain) - 1) as number) : domain.high;
  return [log ? Math.max(low - step / 2, low / 2) : low - step / 2, last + step / 2];
}

function scaled(domain: Range, value: number): number {
  const [low, high] = edges(domain);
  const at = domain.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return high > low ? Math.min(1, Math.max(0, at)) : 0.5;
}

/** Where a value is in 0..1; undefined where it is none of the domain's kind. */
export function toUnit(domain: Domain, value: ParamValue | undefined): number | undefined {
  if (domain.kind === 'choice') {
    const index = indexOf(domain, value);
    return index < 0 ? undefined : (index + 0.5) / domain.values.length;
  }
  return typeof value === 'number' && Number.isFinite(value) ? scaled(domain, value) : undefined;
}

/** The cell of value `index` in 0..1. */
export function cellOf(domain: Domain, index: number): [number, number] {
  if (domain.kind === 'choice') return [index / domain.values.length, (index + 1) / domain.values.length];
  const value = valueAt(domain, index) as number;
  const half = (domain.step ?? 0) / 2;
  return [index === 0 ? 0 : scaled(domain, value - half), scaled(domain, value + half)];
}

/** The value at a place in 0..1. */
export function fromUnit(domain: Domain, unit: number): ParamValue {
  const u = Math.min(1, Math.max(0, unit));
  if (domain.kind === 'choice')
    return domain.values[Math.min(domain.values.length - 1, Math.floor(u * domain.values.length))];
  const [low, high] = edges(domain);
  const value = domain.log ? low * (high / low) ** u : low + u * (high - low);
  if (domain.step !== undefined) {
    const index = Math.round((value - domain.low) / domain.step);
    return valueAt(domain, Math.min(countOf(domain) - 1, Math.max(0, index)));
  }
  // Rounding may miss the end.
  return u === 1 ? domain.high : Math.min(domain.high, Math.max(domain.low, value));
}
