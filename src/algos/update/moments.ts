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

/** What some values come to. */
export interface Summary {
  readonly mean: number;
  /** Of the values themselves, as a population. */
  readonly std: number;
  /** How far the mean would scatter if others were drawn: the sample's std over the root of their number; NaN of one. */
  readonly standardError: number;
}

/** Mean, spread and standard error of values that were drawn independently of each other. */
export function summaryOf(values: ArrayLike<number>): Summary {
  const { mean, std } = moments(values);
  // Equal values have a mean that rounding may take a little off, which is no spread.
  const spread = Array.from(values).every(value => value === values[0]) ? 0 : std;
  return {
    mean,
    std: spread,
    standardError: values.length > 1 ? spread / Math.sqrt(values.length - 1) : Number.NaN,
  };
}
