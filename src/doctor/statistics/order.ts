/** Order statistics: what survives outliers. None of them changes its argument; those of no numbers are NaN. */

/** Any list of numbers. */
export type Numbers = ArrayLike<number>;

/** MAD times this is the standard deviation, for normal noise. */
const MAD_TO_STD = 1.4826;

/** A sorted copy, without what is not finite. */
export function sorted(values: Numbers): Float64Array {
  let n = 0;
  const copy = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (Number.isFinite(v)) copy[n++] = v;
  }
  return copy.subarray(0, n).sort();
}

/** The `p` quantile, 0 to 1, of numbers in ascending order; between two of them, linear. */
export function quantileOfSorted(ascending: Numbers, p: number): number {
  const n = ascending.length;
  if (n === 0) return Number.NaN;
  const at = Math.min(Math.max(p, 0), 1) * (n - 1);
  const below = Math.floor(at);
  const a = ascending[below];
  const b = ascending[Math.min(below + 1, n - 1)];
  // Halves first: the difference of two huge numbers of unlike sign would overflow.
  return at === below ? a : a * (1 - (at - below)) + b * (at - below);
}

/** The `p` quantile of the finite values. */
export function quantile(values: Numbers, p: number): number {
  return quantileOfSorted(sorted(values), p);
}

/** The middle of the finite values. */
export function median(values: Numbers): number {
  return quantile(values, 0.5);
}

/** Spread of the finite values about their median, comparable to a standard deviation. */
export function spread(values: Numbers): number {
  const ascending = sorted(values);
  const middle = quantileOfSorted(ascending, 0.5);
  return MAD_TO_STD * median(ascending.map(v => Math.abs(v - middle)));
}

/** The share of the finite values that satisfy a condition; 0 of none. */
export function share(values: Numbers, condition: (value: number) => boolean): number {
  let finite = 0;
  let hits = 0;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (!Number.isFinite(v)) continue;
    finite++;
    if (condition(v)) hits++;
  }
  return finite === 0 ? 0 : hits / finite;
}
