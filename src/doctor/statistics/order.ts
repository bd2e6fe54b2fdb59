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

/** Finite values that are looked for an order statistic; grown when a longer list comes. */
let scratch = new Float64Array(1024);

/** Puts the finite values into the scratch; returns how many they are. */
function gather(values: Numbers): number {
  if (scratch.length < values.length) scratch = new Float64Array(2 * values.length);
  let n = 0;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (Number.isFinite(v)) scratch[n++] = v;
  }
  return n;
}

/** Moves what belongs at place `k` of the first `n` values in ascending order there: none before it is larger (Hoare 1961). */
function select(n: number, k: number): number {
  const a = scratch;
  let [low, high] = [0, n - 1];
  while (low < high) {
    const pivot = a[(low + high) >> 1];
    let i = low;
    let j = high;
    while (i <= j) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i > j) break;
      const swapped = a[i];
      a[i++] = a[j];
      a[j--] = swapped;
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return a[k];
}

/** {@link quantileOfSorted} of the first `n` values of the scratch, without sorting them all. */
function quantileOfScratch(n: number, p: number): number {
  if (n === 0) return Number.NaN;
  const at = Math.min(Math.max(p, 0), 1) * (n - 1);
  const below = Math.floor(at);
  const a = select(n, below);
  if (at === below) return a;
  let b = scratch[below + 1];
  for (let i = below + 2; i < n; i++) if (scratch[i] < b) b = scratch[i];
  return a * (1 - (at - below)) + b * (at - below);
}

/** The `p` quantile of the finite values. */
export function quantile(values: Numbers, p: number): number {
  return quantileOfScratch(gather(values), p);
}

/** The middle of the finite values. */
export function median(values: Numbers): number {
  return quantile(values, 0.5);
}

/** Spread of the finite values about their median, comparable to a standard deviation. */
export function spread(values: Numbers): number {
  const n = gather(values);
  const middle = quantileOfScratch(n, 0.5);
  let finite = 0;
  for (let i = 0; i < n; i++) {
    const off = Math.abs(scratch[i] - middle);
    if (Number.isFinite(off)) scratch[finite++] = off;
  }
  return MAD_TO_STD * quantileOfScratch(finite, 0.5);
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
