/**
 * The run's x: steps of the environment where the log counts them, else iterations or rows. One axis for all series,
 * so that a rule can say that one thing came before another.
 */
import type { Series } from '../series.ts';
import { seriesOf } from './derive.ts';
import type { Dialect, Log, NamedSeries, StepName } from './dialect.ts';

export interface Axis {
  /** What x counts: `steps`, `iterations` … */
  readonly unit: string;
  /** The step at a position of the reader's axis; NaN for a row that a later one supersedes. */
  at(position: number): number;
  readonly restarts: readonly number[];
  readonly notes: readonly string[];
}

/** Names that count, in any trainer, best first. */
const common: readonly StepName[] = [
  { theirs: 'train/step', unit: 'steps' },
  { theirs: 'time/total_timesteps', unit: 'steps' },
  { theirs: 'total_timesteps', unit: 'steps' },
  { theirs: 'num_env_steps_sampled_lifetime', unit: 'steps' },
  { theirs: 'timesteps_total', unit: 'steps' },
  { theirs: 'TimestepsSoFar', unit: 'steps' },
  { theirs: 'TotalEnvInteracts', unit: 'steps' },
  { theirs: 'agent_steps', unit: 'steps' },
  { theirs: 'total_env_steps', unit: 'steps' },
  { theirs: 'num_env_steps', unit: 'steps' },
  { theirs: 'environment_steps', unit: 'steps' },
  { theirs: 'env_steps', unit: 'steps' },
  { theirs: 'env_step', unit: 'steps' },
  { theirs: 'total_steps', unit: 'steps' },
  { theirs: 'num_timesteps', unit: 'steps' },
  { theirs: 'timesteps', unit: 'steps' },
  { theirs: 'timestep', unit: 'steps' },
  { theirs: 'frames', unit: 'steps' },
  { theirs: 'frame', unit: 'steps' },
  { theirs: 'global_step', unit: 'steps' },
  { theirs: 'train/global_step', unit: 'steps' },
  { theirs: 'training/global_step', unit: 'updates' },
  { theirs: 'step', unit: 'steps' },
  { theirs: 'steps', unit: 'steps' },
  { theirs: '_step', unit: 'steps' },
  { theirs: 'training_iteration', unit: 'iterations' },
  { theirs: 'time/iterations', unit: 'iterations' },
  { theirs: 'iteration', unit: 'iterations' },
  { theirs: 'iterations', unit: 'iterations' },
  { theirs: 'iter', unit: 'iterations' },
  { theirs: 'itr', unit: 'iterations' },
  { theirs: 'update', unit: 'updates' },
  { theirs: 'updates', unit: 'updates' },
  { theirs: 'num_updates', unit: 'updates' },
  { theirs: 'n_updates', unit: 'updates' },
  { theirs: 'epoch', unit: 'epochs' },
  { theirs: 'episode', unit: 'episodes' },
  { theirs: 'episodes', unit: 'episodes' },
];

const isOfSteps = ({ unit }: StepName): boolean => unit === 'steps' || unit === 'updates';

/** One spelling of a counter: `Total timesteps`, `total_timesteps`, `Total-Timesteps`. */
const plain = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, '_');
const plainNames = new Set(common.map(({ theirs }) => plain(theirs)));

/** Whether a name only counts: it is x or could be, and is nothing to diagnose. */
export function isStepName(name: string): boolean {
  return plainNames.has(plain(name));
}

/** The axis of a run; `told` is the series that the user says counts steps, and is believed. */
export function chooseAxis(
  log: Log,
  dialect: Pick<Dialect, 'steps' | 'eventStep' | 'lengths'>,
  told?: Series,
): Axis {
  const { raw } = log;
  if (told !== undefined) return axisOfTable(log, told, 'steps');
  if (raw.axis === 'step') {
    // W&B counts its own calls: what the trainer counts is a series.
    const counters = raw.format === 'wandb' ? [...dialect.steps, ...common.filter(isOfSteps)] : [];
    const better = pick(log, [...(dialect.eventStep.better ?? []), ...counters]);
    return better === undefined
      ? axisOfSteps(log, dialect.eventStep.unit)
      : axisOfTable(log, better.series, better.unit);
  }
  const found =
    pick(log, [...dialect.steps, ...common]) ??
    pick(
      { series: spelledPlainly(log) },
      common.map(({ theirs, unit }) => ({ theirs: plain(theirs), unit })),
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
  for (const [name, named] of log.series) if (!series.has(plain(name))) series.set(plain(name), named);
  return series;
}

function pick(
  log: Pick<Log, 'series'>,
  names: readonly StepName[],
): { series: Series; unit: string } | undefined {
  for (const { theirs, unit } of names) {
    const series = log.series.get(theirs)?.series;
    // Hugging Face prints how much of an epoch is done: no count of anything.
    if (series !== undefined && counts(series) && (unit !== 'epochs' || isWhole(series)))
      return { series, unit };
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

function isWhole(series: Series): boolean {
  for (let i = 0; i < series.length; i++) {
    const value = series.max[i];
    if (Number.isFinite(value) && !Number.isInteger(value)) return false;
  }
  return true;
}

/** A share of the way: a log that goes back further than this began anew, else it went back to a checkpoint. */
const anew = 0.1;

/**
 * Where a step goes back, what follows either begins anew (counted on, so that both parts stay in order) or repeats
 * from a checkpoint (what it repeats is dropped, as TensorBoard does). Steps that go back all the time are no restarts:
 * several workers wrote one log, and the largest step so far counts.
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
  const starts: number[] = [];
  const back = steps.filter((step, i) => i > 0 && step < steps[i - 1]).length;
  if (back > Math.max(3, steps.length * 0.05)) {
    for (let i = 1; i < steps.length; i++) steps[i] = Math.max(steps[i], steps[i - 1]);
    notes.push(`the ${unit} go back ${back} times: the largest so far is used`);
  } else if (back > 0) {
    unfold(rows, steps, unit, starts, notes);
  }
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

/** Makes `steps` ascend, in place. */
function unfold(
  rows: readonly number[],
  steps: number[],
  unit: string,
  starts: number[],
  notes: string[],
): void {
  let offset = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < steps.length; i++) {
    const own = steps[i];
    if (own + offset < last) {
      if (own <= anew * (last - offset)) {
        notes.push(
          `the ${unit} begin anew at row ${rows[i]} (${own} after ${last - offset}): counted on from ${last}`,
        );
        offset = last;
      } else {
        let dropped = 0;
        for (let j = i - 1; j >= 0 && !(steps[j] < own + offset); j--) {
          if (!Number.isNaN(steps[j])) dropped++;
          steps[j] = Number.NaN;
        }
        notes.push(
          `the ${unit} go back from ${last - offset} to ${own} at row ${rows[i]}: ${dropped} rows before it, which are repeated, are left out`,
        );
      }
      starts.push(own + offset);
    }
    steps[i] = own + offset;
    last = own + offset;
  }
}

/** An event file's own steps. */
function axisOfSteps(log: Log, unit: string): Axis {
  return { unit, at: step => step, restarts: log.raw.restarts, notes: [] };
}
