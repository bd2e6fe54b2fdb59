/** Mean and standard deviation (of the population) of some values; NaN of none. */
export function moments(values: ArrayLike<number>): { mean: number; std: number } {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  const mean = sum / values.length;
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] - mean) ** 2;
  return { mean, std: Math.sqrt(squares / values.length) };
}
