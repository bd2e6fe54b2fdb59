/** Two settings on the same seeds: what each came to, and how likely the one is better. */
import type { Objective, Params, Trial } from '../studies/schema.ts';
import {
  aggregate,
  bootstrapInterval,
  type Interval,
  probabilityOfImprovement,
} from '../studies/statistics.ts';

/** Some settings on some seeds. */
export interface Figures {
  readonly params: Params;
  readonly seeds: readonly number[];
  /** In the order of seeds. */
  readonly values: readonly number[];
  readonly value: number;
  /** Bootstrapped, 95 %. */
  readonly interval: Interval;
  readonly verdicts: readonly string[];
  readonly klLargest: number | null;
  readonly violations: readonly string[];
}

/** The first against the second. */
export interface Compared {
  readonly winner: Figures;
  readonly base: Figures;
  /** That a run with the winner's settings is better than one with the other's; .5 is no difference. */
  readonly probability: number;
  readonly probabilityInterval: Interval;
}

/** Undefined where one of them has no whole set of values, because a run failed. */
export function compareTrials(objective: Objective, winner: Trial, base: Trial): Compared | undefined {
  const [first, second] = [winner, base].map(trial => figuresOf(objective, trial));
  if (first === undefined || second === undefined) return undefined;
  // A smaller loss is the better one.
  const sign = objective.direction === 'maximize' ? 1 : -1;
  const signed = ({ values }: Figures): number[] => values.map(value => sign * value);
  const { probability, interval } = probabilityOfImprovement(signed(first), signed(second));
  return { winner: first, base: second, probability, probabilityInterval: interval };
}

export function figuresOf({ over }: Objective, trial: Trial): Figures | undefined {
  const outcomes = trial.seeds.flatMap(seed => trial.outcomes.find(one => one.seed === seed) ?? []);
  const values = outcomes.flatMap(({ value }) => (value === null ? [] : [value]));
  if (values.length < trial.seeds.length) return undefined;
  const largest = outcomes.flatMap(({ klLargest }) => (klLargest === null ? [] : [klLargest]));
  return {
    params: trial.params,
    seeds: trial.seeds,
    values,
    value: aggregate(over, values),
    interval: bootstrapInterval(values, { of: over }),
    verdicts: outcomes.map(({ verdict }) => verdict ?? 'unknown'),
    klLargest: largest.length === 0 ? null : Math.max(...largest),
    violations: trial.violations,
  };
}
