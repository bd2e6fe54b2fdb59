/** Loads between two looks at the clock: some tenths of a microsecond. */
const LOADS_A_LOOK = 64;

/**
 * Looks for up to `spinMs` whether the number at `index` is `value` (`same`) or is not (`other`), without sleeping: to be woken
 * takes 10 to 50 microseconds. Only for threads that have a core each. Returns whether it is.
 */
export function spinUntil(
  array: Int32Array,
  index: number,
  is: 'same' | 'other',
  value: number,
  spinMs: number,
): boolean {
  const same = is === 'same';
  if ((Atomics.load(array, index) === value) === same) return true;
  if (spinMs === 0) return false;
  const until = performance.now() + spinMs;
  do {
    for (let i = 0; i < LOADS_A_LOOK; i++) if ((Atomics.load(array, index) === value) === same) return true;
  } while (performance.now() < until);
  return false;
}
