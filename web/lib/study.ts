/** What is shown of a study's trials: who is best when, in which order, in which colour. */
import { type Verdict, verdictRank, worstOf } from '../../src/doctor/findings.ts';
import type { Tone } from '../../src/metrics/registry.ts';
import type { StudyTrial } from '../../src/server/api.ts';
import type { Direction, Objective, ParamValue, Space, TrialState } from '../../src/studies/schema.ts';
import { paramText, resultScale, type Scale, settingScale } from './scale.ts';

export const trialStates: readonly TrialState[] = ['complete', 'pruned', 'failed', 'running', 'waiting'];

export const stateTones: Readonly<Record<TrialState, Tone>> = {
  complete: 'muted',
  pruned: 'muted',
  failed: 'bad',
  running: 'good',
  waiting: 'muted',
};

/** Whether a trial may be the winner: it is complete and keeps to all that it must. */
const mayWin = ({ state, value, violations }: StudyTrial): boolean =>
  state === 'complete' && value !== null && violations.length === 0;

const sign = (direction: Direction): number => (direction === 'maximize' ? 1 : -1);

/** The trials, by number, that were better than all before them. */
export function bestSoFar(
  trials: readonly StudyTrial[],
  direction: Direction,
): { readonly number: number; readonly value: number }[] {
  const steps: { number: number; value: number }[] = [];
  for (const trial of [...trials].sort((a, b) => a.number - b.number)) {
    const last = steps.at(-1);
    if (!mayWin(trial) || trial.value === null) continue;
    if (last === undefined || sign(direction) * (trial.value - last.value) > 0)
      steps.push({ number: trial.number, value: trial.value });
  }
  return steps;
}

/**
 * For the colour of each trial that may win: 0 for the worst result, 1 for the best. By rank, because one run that fell apart
 * would give all others the same colour; equals share theirs.
 */
export function ranks(trials: readonly StudyTrial[], direction: Direction): Map<number, number> {
  const values = trials.filter(mayWin).map(({ value }) => sign(direction) * (value ?? 0));
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const places = new Map(sorted.map((value, i) => [value, sorted.length > 1 ? i / (sorted.length - 1) : 1]));
  return new Map(
    trials
      .filter(mayWin)
      .map(({ number, value }) => [number, places.get(sign(direction) * (value ?? 0)) ?? 0]),
  );
}

/** Over a trial's runs: the median of their medians, and the largest of all updates. */
export function klOf({ runs }: StudyTrial): {
  readonly median: number | null;
  readonly largest: number | null;
} {
  const medians = runs.flatMap(run => run.klMedian ?? []).sort((a, b) => a - b);
  const largest = runs.flatMap(run => run.klLargest ?? []);
  const middle = medians.length / 2;
  return {
    median: medians.length === 0 ? null : (medians[Math.ceil(middle) - 1] + medians[Math.floor(middle)]) / 2,
    largest: largest.length === 0 ? null : Math.max(...largest),
  };
}

/** The worst of a trial's runs. */
export const verdictOf = ({ runs }: StudyTrial): Verdict | null =>
  worstOf(runs.map(({ verdict }) => verdict));

export const stepsOf = ({ runs }: StudyTrial): number => runs.reduce((sum, { step }) => sum + step, 0);

/** Columns of the table that are not settings; a setting's is `p.` and its key. */
export const trialColumns = ['number', 'state', 'value', 'kl', 'klLargest', 'verdict', 'steps'] as const;
export type TrialColumn = (typeof trialColumns)[number];

const natural = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

function cellOf(trial: StudyTrial, column: string): ParamValue | undefined {
  switch (column as TrialColumn) {
    case 'number':
      return trial.number;
    case 'state':
      return trialStates.indexOf(trial.state);
    case 'value':
      return trial.value;
    case 'kl':
      return klOf(trial).median;
    case 'klLargest':
      return klOf(trial).largest;
    case 'verdict': {
      const verdict = verdictOf(trial);
      return verdict === null ? null : verdictRank[verdict];
    }
    case 'steps':
      return stepsOf(trial);
    default:
      return trial.params[column.replace(/^p\./, '')];
  }
}

/** Trials by one column; those without a value come last either way, equals in order of their number. */
export function sortTrials(
  trials: readonly StudyTrial[],
  column: string,
  down: boolean,
): readonly StudyTrial[] {
  const cells = new Map(trials.map(trial => [trial, cellOf(trial, column) ?? null]));
  return [...trials].sort((a, b) => {
    const [x, y] = [cells.get(a) ?? null, cells.get(b) ?? null];
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1;
    } else {
      const order =
        typeof x === 'number' && typeof y === 'number' ? x - y : natural.compare(String(x), String(y));
      if (order !== 0) return down ? -order : order;
    }
    return a.number - b.number;
  });
}

/**
 * The new trials, each the old object where it is still the same, and the old list where all are: what is drawn from them is
 * then left alone.
 */
export function reuseTrials(
  before: readonly StudyTrial[],
  after: readonly StudyTrial[],
): readonly StudyTrial[] {
  const known = new Map(before.map(trial => [trial.number, trial]));
  const next = after.map(trial => {
    const old = known.get(trial.number);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(trial) ? old : trial;
  });
  return next.length === before.length && next.every((trial, i) => trial === before[i]) ? before : next;
}

const ofWords: Readonly<Record<Objective['of'], string>> = {
  last: 'at the end',
  best: 'at its best',
  mean: 'over the whole run',
};
const overWords: Readonly<Record<Objective['over'], string>> = {
  iqm: 'interquartile mean',
  mean: 'mean',
  median: 'median',
  min: 'lowest',
  max: 'highest',
};

/** What is searched for, in words: `score at the end, interquartile mean over 3 seeds, higher is better`. */
export function objectiveText({ metric, of, over, direction }: Objective, seeds: number): string {
  const many = seeds === 1 ? '1 seed' : `${overWords[over]} over ${seeds} seeds`;
  return `${metric} ${ofWords[of]}, ${many}, ${direction === 'maximize' ? 'higher' : 'lower'} is better`;
}

/** From the worst to the best: told apart by lightness alone, and the best stands out in both themes. */
const ramps = {
  light: ['#c9a227', '#86a34a', '#2f9285', '#1f6398', '#2c2a78'],
  dark: ['#5d5396', '#4a7fb5', '#3fa8a0', '#8ccb6b', '#f5e663'],
} as const;

/** A colour between those of the worst and the best. */
export function rampColor(share: number, dark: boolean): string {
  const stops = ramps[dark ? 'dark' : 'light'];
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const part = (k: number): string => {
    const [a, b] = [stops[i], stops[i + 1]].map(hex => Number.parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16));
    return Math.round(a + (at - i) * (b - a))
      .toString(16)
      .padStart(2, '0');
  };
  return `#${part(0)}${part(1)}${part(2)}`;
}

/** The ramp as a style. */
export const rampGradient = (dark: boolean): string =>
  `linear-gradient(to right, ${ramps[dark ? 'dark' : 'light'].join(', ')})`;

/** An axis of the search, or, last, the result. */
export interface PlaneAxis {
  readonly key: string;
  readonly title: string;
  readonly scale: Scale;
}

/** Where all trials are on all axes; what charts are drawn from. */
export interface Plane {
  readonly axes: readonly PlaneAxis[];
  readonly trials: readonly { readonly trial: StudyTrial; readonly places: readonly (number | null)[] }[];
}

/** The key of the axis of results; no setting has such a name. */
export const resultKey = '=';

export function planeOf(space: Space, trials: readonly StudyTrial[], metric: string): Plane {
  const axes = [
    ...space.map(({ key, domain }) => ({
      key,
      title: key,
      scale: settingScale(
        domain,
        trials.map(({ params }) => params[key]),
      ),
    })),
    { key: resultKey, title: metric, scale: resultScale(trials.map(({ value }) => value)) },
  ];
  return {
    axes,
    trials: trials.map(trial => ({
      trial,
      places: axes.map(({ key, scale }) =>
        key === resultKey ? scale.at(trial.value) : scale.at(trial.params[key]),
      ),
    })),
  };
}

/** The settings of a trial in a line: `learningRate 0.0003, epochs 10`. */
export const paramsText = (space: Space, { params }: StudyTrial): string =>
  space.flatMap(({ key }) => (key in params ? [`${key} ${paramText(params[key])}`] : [])).join(', ');
