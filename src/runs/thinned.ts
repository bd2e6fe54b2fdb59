/** Which of many old checkpoints are worth their place. */

/**
 * The steps that stay of an ascending list, at most so many: the first, and others whose distance grows with their age,
 * about twofold from one to the next. While there are too many, the one goes whose neighbours are nearest to each other
 * for their age, so that the same steps always leave the same ones.
 */
export function thinned(steps: readonly number[], newest: number, most: number): number[] {
  const left = [...steps];
  while (left.length > Math.max(1, most)) {
    let [least, at] = [Number.POSITIVE_INFINITY, left.length - 1];
    for (let i = 1; i < left.length; i++) {
      const [before, after] = [left[i - 1], left[i + 1] ?? newest];
      const gap = (after - before) / (newest - before);
      if (gap < least) [least, at] = [gap, i];
    }
    left.splice(at, 1);
  }
  return left;
}
