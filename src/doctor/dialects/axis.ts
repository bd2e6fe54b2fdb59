/**
 * The run's x: steps of the environment where the log counts them, else iterations or rows. One axis for all series,
 * so that a rule can say that one thing came before another.
 */
import { plainName, type StepName, stepNames } from '../counters.ts';
import { findRestarts } from '../readers/restarts.ts';
import type { Series } from '../series.ts';
import { median } from '../statistics/order.ts';
import { seriesOf } from './derive.ts';
import type { Dialect, Log, NamedSeries } from './dialect.ts';

export interface Axis {
  /** What x counts: `steps`, `iterations` … */
  readonly unit: string;
  /** The step at a position of the reader's axis; NaN for a row that a later one supersedes. */
  at(position: number): number;
  readonly restarts: readonly number[];
  readonly notes: readonly string[];
}

const isOfSteps = ({ unit }: StepName): boolean => unit === 'steps' || unit === 'updates';

/** The axis of a run; `told` is the series that the user says counts steps, and is believed. */
export function chooseAxis(
  log: Log,
  dialect: Pick<Dialect, 'steps' | 'eventStep' | 'lengths'>,
  told?: Series,
): Axis {
  const { raw } = log;
  if (told !== undefined) return axisOfTable(log, told, 'steps');
  if (raw.axis === 'step') {
    // W&B and trackio count their own calls: what the trainer counts is a series.
    const counters =
      raw.format === 'wandb' || raw.format === 'trackio'
        ? [...dialect.steps, ...stepNames.filter(isOfSteps)]
        : [];
    const better = pick(log, [...(dialect.eventStep.better ?? []), ...counters]);
    return better === undefined
      ? axisOfSteps(log, dialect.eventStep.unit)
      : axisOfTable(log, better.series, better.unit);
  }
  const found =
    pick(log, [...dialect.steps, ...stepNames]) ??
    pick(
      { series: spelledPlainly(log) },
      stepNames.map(({ theirs, unit }) => ({ theirs: plainName(theirs), unit })),
    ) ??
    summed(log, dialect.lengths);
  if (found === undefined) {
    return {
      unit: 'rows',
      at: row => row,
      restarts: raw.restarts,
      notes: ['no column counts steps: x is the row'],
    };
  }
  return axisOfTable(log, found.series, found.unit);
}

function spelledPlainly(log: Log): Log['series'] {
  const series = new Map<string, NamedSeries>();
  for (const [name, named] of log.series)
    if (!series.has(plainName(name))) series.set(plainName(name), named);
  return series;
}

function pick(
  log: Pick<Log, 'series'>,
  names: readonly StepName[],
): { series: Series; unit: string } | undefined {
  for (const { theirs, unit } of names) {
    const series = log.series.get(theirs)?.series;
    // Hugging Face prints how much of an epoch is done: no count of anything.
    if (series === undefined || !counts(series) || wanders(series)) continue;
    if (unit !== 'epochs' || isWhole(series)) return { series, unit };
  }
  return undefined;
}

/** Where a row is an episode, the lengths so far are the steps. A merged point stands for several episodes. */
function summed(log: Log, name: string | undefined): { series: Series; unit: string } | undefined {
  const lengths = name === undefined ? undefined : log.series.get(name)?.series;
  if (lengths === undefined || lengths.length === 0) return undefined;
  const each = lengths.count / lengths.length;
  let total = 0;
  const totals: number[] = [];
  for (let i = 0; i < lengths.length; i++) {
    const length = lengths.values[i];
    if (Number.isFinite(length) && length > 0) total += length * each;
    totals.push(Math.round(total));
  }
  return { series: seriesOf([...lengths.x.subarray(0, lengths.length)], totals), unit: 'steps' };
}

/** At least one finite value, and not the same in all of several rows. */
function counts(series: Series): boolean {
  let first = Number.NaN;
  for (let i = 0; i < series.length; i++) {
    const value = series.max[i];
    if (!Number.isFinite(value)) continue;
    if (Number.isNaN(first)) first = value;
    else if (value !== first) return true;
  }
  return !Number.isNaN(first) && series.length === 1;
}

/**
 * `steps` of a log that has a row for each episode are those of that episode: they go up and down, and come to no more
 * at the end than at the beginning. What several workers count goes back as often, and comes to more.
 */
function wanders(series: Series): boolean {
  const values = series.max.subarray(0, series.length).filter(Number.isFinite);
  const quarter = Math.floor(values.length / 4);
  if (quarter < 3) return false;
  let back = 0;
  for (let i = 1; i < values.length; i++) if (values[i] < values[i - 1]) back++;
  const early = values.subarray(0, quarter).reduce((a, b) => Math.max(a, b));
  return back > quarter / 2 && !(median(values.subarray(-quarter)) > early);
}

function isWhole(series: Series): boolean {
  for (let i = 0; i < series.length; i++) {
    const value = series.max[i];
    if (Number.isFinite(value) && !Number.isInteger(value)) return false;
  }
  return true;
}

/**
 * The readers have settled a table's own counter already; what the user names, or is spelled in an unusual way, may still
 * go back. Steps that go back all the time are no restarts: several workers wrote one log, and the largest step so far
 * counts.
 */
function axisOfTable(log: Log, series: Series, unit: string): Axis {
  const rows: number[] = [];
  const steps: number[] = [];
  for (let i = 0; i < series.length; i++) {
    if (!Number.isFinite(series.max[i])) continue;
    rows.push(series.x[i]);
    steps.push(series.max[i]);
  }
  const notes: string[] = [];
  const {
    restarts: falls,
    replaced,
    anew,
  } = findRestarts(Float64Array.from(rows), Float64Array.from(steps), rows.length, true);
  for (const { row, by } of anew) {
    for (let i = rows.indexOf(row); i < steps.length; i++) steps[i] += by;
    notes.push(`the ${unit} begin anew at row ${row}: counted on from ${by}`);
  }
  for (const { from, to } of replaced) {
    for (let i = rows.indexOf(from); i < rows.length && rows[i] < to; i++) steps[i] = Number.NaN;
    notes.push(
      `the ${unit} go back at row ${to}: the rows from ${from} on, which are repeated, are left out`,
    );
  }
  let most = Number.NEGATIVE_INFINITY;
  let back = 0;
  for (let i = 0; i < steps.length; i++) {
    if (steps[i] < most) back++;
    // One that is left out stays so.
    if (!Number.isNaN(steps[i])) most = steps[i] = Math.max(steps[i], most);
  }
  if (back > 0) notes.push(`the ${unit} go back ${back} times: the largest so far is used`);
  const starts = falls.map(({ row }) => steps[rows.indexOf(row)]);
  const at = (row: number): number => {
    if (rows.length === 0) return row;
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle] < row) low = middle + 1;
      else high = middle;
    }
    if (rows[low] === row || low === 0 || row > rows[low]) return steps[low];
    const [r0, r1, s0, s1] = [rows[low - 1], rows[low], steps[low - 1], steps[low]];
    return s0 + ((s1 - s0) * (row - r0)) / (r1 - r0);
  };
  const restarts = [...starts, ...log.raw.restarts.map(at)].filter(Number.isFinite);
  return { unit, at, restarts: [...new Set(restarts)].sort((a, b) => a - b), notes };
}

/** An event file's own steps. */
function axisOfSteps(log: Log, unit: string): Axis {
  return { unit, at: step => step, restarts: log.raw.restarts, notes: [] };
}
