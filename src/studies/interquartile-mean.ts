/**
 * The mean of what is left when the lowest and the highest quarter are dropped, each rounded down to whole scores. After
 * R. Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021): unlike a mean it does not
 * hang on one lucky seed, unlike a median it uses half of them.
 */
export function interquartileMean(scores: readonly number[]): number {
  const sorted = [...scores].sort((a, b) => a - b);
  const dropped = Math.floor(sorted.length / 4);
  return mean(sorted.slice(dropped, sorted.length - dropped));
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
