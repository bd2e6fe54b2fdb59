/** What a study has come to so far: for the page, the command line and programs alike. */
import type { Direction, Objective, Params, ParamValue, Study, Trial, TrialState } from './schema.ts';
import { isActive } from './space.ts';
import {
  aggregate,
  bootstrapInterval,
  type Improvement,
  type Interval,
  probabilityOfImprovement,
} from './statistics.ts';
import { toUnit } from './unit.ts';

/** What the search has come to after a trial ended. */
export interface BestSoFar {
  readonly trial: number;
  /** Of that trial. */
  readonly value: number;
  readonly feasible: boolean;
  /** Of the best trial up to then that can win; null while there is none. */
  readonly best: number | null;
  /** Steps of all runs of the trials up to then. */
  readonly steps: number;
  readonly endedAt: number | null;
}

/** A trial on an axis. */
export interface AxisPoint {
  readonly trial: number;
  readonly param: ParamValue;
  /** Where that is in the axis, from 0 to 1. */
  readonly at: number;
  /** Null until it is over; of a pruned trial what it had reached. */
  readonly value: number | null;
  readonly state: TrialState;
  readonly feasible: boolean;
}

/** One setting on fresh seeds. */
export interface Confirmed {
  readonly trial: number;
  readonly params: Params;
  readonly seeds: readonly number[];
  /** Of each seed that has one, by seed. */
  readonly values: readonly number[];
  /** As the objective aggregates; null while a seed is missing. */
  readonly value: number | null;
  /** Null while there are fewer than two values. */
  readonly interval: Interval | null;
  readonly state: TrialState;
}

/** What a study has come to so far. */
export interface StudySummary {
  readonly name: string;
  readonly objective: Objective;
  /** Trials of the search by state. */
  readonly counts: Readonly<Record<TrialState, number>>;
  /** How many there will be at the most. */
  readonly planned: number;
  /** Complete trials that cannot win. */
  readonly infeasible: number;
  /** The best trial that can win, the first of equal ones; null while there is none. */
  readonly winner: Trial | null;
  /** Over the complete trials, in the order in which they ended. */
  readonly bestSoFar: readonly BestSoFar[];
  /** Of all runs of the search, and of those that confirm. */
  readonly steps: number;
  readonly confirmSteps: number;
  /** Time in which runs trained, over all workers. */
  readonly seconds: number;
  /** Runs that cannot be trained, each with why. */
  readonly failures: readonly { readonly trial: number; readonly run: string; readonly problem: string }[];
  readonly axes: readonly { readonly key: string; readonly points: readonly AxisPoint[] }[];
  /** The newest winner and default that were trained on fresh seeds; null where none was. */
  readonly confirmation: Confirmation | null;
}

/** A winner and the default on fresh seeds. */
export interface Confirmation {
  readonly winner: Confirmed | null;
  readonly default: Confirmed | null;
  /** That a run of the winner is better than one of the default; null until both are complete. */
  readonly improvement: Improvement | null;
  /** What that comes to, in words; null with it. */
  readonly says: 'better' | 'worse' | 'not told apart' | 'too few seeds to tell' | null;
}

/** With three seeds a side the one is wholly above the other by chance one time in ten; with four, in 35. */
const fewestToTell = 4;

/** Whether one value is better than another. */
const isBetter = (direction: Direction, a: number, b: number): boolean =>
  direction === 'maximize' ? a > b : a < b;

/** Whether a trial can win. */
const canWin = ({
  purpose,
  state,
  value,
  violations,
}: Pick<Trial, 'purpose' | 'state' | 'value' | 'violations'>): boolean =>
  purpose === 'search' &&
  state === 'complete' &&
  value !== null &&
  !Number.isNaN(value) &&
  violations.length === 0;

/** The best trial that can win; the lower number of equal ones. */
export function winnerOf(direction: Direction, trials: readonly Trial[]): Trial | undefined {
  return [...trials]
    .sort((a, b) => a.number - b.number)
    .filter(canWin)
    .reduce<Trial | undefined>(
      (best, one) => (best === undefined || isBetter(direction, one.value!, best.value!) ? one : best),
      undefined,
    );
}

export function summaryOf(study: Study, trials: readonly Trial[]): StudySummary {
  const { objective, space } = study;
  const search = trials.filter(({ purpose }) => purpose === 'search');
  const confirming = trials.filter(isConfirming);
  const counts: Record<TrialState, number> = { waiting: 0, running: 0, complete: 0, pruned: 0, failed: 0 };
  for (const { state } of search) counts[state]++;
  return {
    name: study.name,
    objective,
    counts,
    planned: study.trials,
    infeasible: search.filter(trial => trial.state === 'complete' && !canWin(trial)).length,
    winner: winnerOf(objective.direction, trials) ?? null,
    bestSoFar: bestSoFar(objective.direction, search),
    steps: stepsOf(search),
    confirmSteps: stepsOf(confirming),
    seconds: trials.flatMap(({ outcomes }) => outcomes).reduce((sum, { seconds }) => sum + seconds, 0),
    failures: trials.flatMap(({ number, outcomes }) =>
      outcomes.flatMap(({ run, status, problem }) =>
        status === 'failed' ? [{ trial: number, run, problem: problem ?? 'it does not say why' }] : [],
      ),
    ),
    axes: space.map(axis => ({
      key: axis.key,
      points: search.flatMap(trial => {
        if (!Object.hasOwn(trial.params, axis.key) || !isActive(axis, trial.params)) return [];
        const param = trial.params[axis.key];
        const at = toUnit(axis.domain, param);
        // Of another program, which may have tried what is not in the space.
        if (at === undefined || !Number.isFinite(at)) return [];
        const { number, value, state, violations } = trial;
        return { trial: number, param, at, value, state, feasible: violations.length === 0 };
      }),
    })),
    confirmation: confirmationOf(objective, trials),
  };
}

function bestSoFar(direction: Direction, search: readonly Trial[]): BestSoFar[] {
  const ended = search
    .filter(({ state, value }) => state === 'complete' && value !== null)
    .sort((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0) || a.number - b.number);
  let best: number | null = null;
  let steps = 0;
  return ended.map(trial => {
    const value = trial.value!;
    if (canWin(trial) && (best === null || isBetter(direction, value, best))) best = value;
    steps += stepsOf([trial]);
    const { number, violations, endedAt } = trial;
    return { trial: number, value, feasible: violations.length === 0, best, steps, endedAt };
  });
}

/** What runs did, each counted once however often it paused. */
const stepsOf = (trials: readonly Trial[]): number =>
  trials.flatMap(({ outcomes }) => outcomes).reduce((sum, { step }) => sum + step, 0);

const isConfirming = ({ purpose }: Trial): boolean => purpose !== 'search';

/** What came of the winner and the default on fresh seeds, among all trials of a study. */
export function confirmationOf(objective: Objective, trials: readonly Trial[]): Confirmation | null {
  const confirming = trials.filter(isConfirming);
  if (confirming.length === 0) return null;
  const newest = (purpose: Trial['purpose']): Confirmed | null => {
    const trial = confirming.findLast(one => one.purpose === purpose);
    return trial === undefined ? null : confirmed(objective, trial);
  };
  const [winner, byDefault] = [newest('confirm-winner'), newest('confirm-default')];
  const isWhole = winner?.value != null && byDefault?.value != null;
  const gain = isWhole ? improvement(objective.direction, winner.values, byDefault.values) : null;
  const fewest = Math.min(winner?.values.length ?? 0, byDefault?.values.length ?? 0);
  return { winner, default: byDefault, improvement: gain, says: gain && improvementSays(gain, fewest) };
}

function improvementSays({ interval }: Improvement, seeds: number): NonNullable<Confirmation['says']> {
  if (seeds < fewestToTell) return 'too few seeds to tell';
  return interval.low > 0.5 ? 'better' : interval.high < 0.5 ? 'worse' : 'not told apart';
}

function confirmed(objective: Objective, { number, params, seeds, outcomes, state }: Trial): Confirmed {
  const values = outcomes.flatMap(({ value, finished }) =>
    finished && value !== null && !Number.isNaN(value) ? [value] : [],
  );
  const isWhole = seeds.length > 0 && values.length === seeds.length;
  return {
    trial: number,
    params,
    seeds,
    values,
    value: isWhole ? aggregate(objective.over, values) : null,
    interval: values.length < 2 ? null : bootstrapInterval(values, { resamples: 2000, of: objective.over }),
    state,
  };
}

/** Better is above where more is better, and below where less is. */
function improvement(direction: Direction, a: readonly number[], b: readonly number[]): Improvement {
  const sign = direction === 'maximize' ? 1 : -1;
  return probabilityOfImprovement(
    a.map(value => sign * value),
    b.map(value => sign * value),
  );
}
