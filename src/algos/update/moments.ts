/** Sums by name as means over so many. */
export function meansOf<Name extends string>(
  sums: Readonly<Record<Name, number>>,
  count: number,
): Record<Name, number> {
  const means = Object.entries<number>(sums).map(([name, sum]) => [name, sum / count]);
  return Object.fromEntries(means);
}

/** Mean and standard deviation (of the population) of some values; NaN of none. */
export function moments(values: ArrayLike<number>): { mean: number; std: number } {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  const mean = sum / values.length;
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] - mean) ** 2;
  return { mean, std: Math.sqrt(squares / values.length) };
}
