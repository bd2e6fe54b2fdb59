/** A run of Keel for the doctor: its columns as series of bounded length, by row number. */
import { saidBy } from '../../doctor/readers/said.ts';
import type { Series } from '../../doctor/series.ts';
import type { KeelRun } from '../runs/keel-run.ts';
import { type Column, meanOf, newStretch } from '../series/column.ts';
import { firstAt } from '../series/envelope.ts';
import type { JudgedRun } from './jobs.ts';

/** As many points as the doctor's own readers keep. */
const mostPoints = 32_768;

/** Arrays that several series have in common are one, and are sent once. */
interface Shared {
  readonly rows: number;
  readonly stride: number;
  readonly time: Float64Array;
  /** Of a column that has a value in every row. */
  readonly x: Float64Array;
  readonly wallTime: Float64Array;
  readonly unbroken: Uint32Array;
}

export function judgedRun(run: KeelRun): JudgedRun | undefined {
  const { manifest, table } = run;
  if (manifest === undefined || table.rows === 0) return undefined;
  const { axes } = table;
  const stride = Math.ceil(axes.length / mostPoints);
  const rows = axes.length;
  const plain = stride === 1 ? rows : 0;
  const shared: Shared = {
    rows,
    stride,
    time: axes.time,
    x: Float64Array.from({ length: plain }, (_, i) => i + 1),
    wallTime: Float64Array.from({ length: plain }, (_, i) => axes.time[i] / 1000),
    unbroken: new Uint32Array(plain),
  };
  return {
    path: run.path,
    series: [...table.columns].map(([name, column]) => [name, seriesOf(column, shared)]),
    ...saidBy(manifest),
    // As they are now: the doctor must not advise what was done already.
    config: run.settings,
    restarts: run.resumedAt
      .map(step => firstAt(axes.step, axes.length, step, true))
      .filter(row => row > 0 && row < axes.length)
      .map(row => row + 1),
    unfinished: run.state === 'running',
  };
}

/** Memory that is handed over with a run instead of being copied once more. */
export function buffersOf({ series }: JudgedRun): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const [, one] of series) {
    for (const array of [one.x, one.values, one.min, one.max, one.broken, one.wallTime])
      buffers.add(array.buffer as ArrayBuffer);
  }
  return [...buffers];
}

function seriesOf(column: Column, shared: Shared): Series {
  const { rows, stride } = shared;
  const { values, counts, min } = column.arrays();
  if (stride === 1 && counts === undefined && min === undefined && values.length === rows) {
    const own = values.slice();
    const broken = own.some(value => value - value !== 0)
      ? Uint32Array.from(own, value => (value - value === 0 ? 0 : 1))
      : shared.unbroken;
    const { x, wallTime } = shared;
    return { length: rows, count: rows, x, values: own, min: own, max: own, broken, wallTime };
  }
  return merged(column, shared);
}

function merged(column: Column, { rows, stride, time }: Shared): Series {
  const most = Math.ceil(rows / stride);
  const x = new Float64Array(most);
  const values = new Float64Array(most);
  const [min, max] = [new Float64Array(most), new Float64Array(most)];
  const broken = new Uint32Array(most);
  const wallTime = new Float64Array(most);
  let [length, count] = [0, 0];
  const stretch = newStretch();
  for (let from = 0; from < rows; from += stride) {
    const to = Math.min(rows, from + stride);
    Object.assign(stretch, newStretch());
    column.add(from, to, stretch);
    if (stretch.count === 0) continue;
    const last = column.lastBefore(to, from);
    const mean = stretch.count > stretch.broken ? meanOf(stretch) : column.at(last)!;
    x[length] = last + 1;
    values[length] = mean;
    min[length] = stretch.count > stretch.broken ? stretch.min : mean;
    max[length] = stretch.count > stretch.broken ? stretch.max : mean;
    broken[length] = stretch.broken;
    wallTime[length] = time[last] / 1000;
    count += stretch.count;
    length++;
  }
  return {
    length,
    count,
    x: x.slice(0, length),
    values: values.slice(0, length),
    min: min.slice(0, length),
    max: max.slice(0, length),
    broken: broken.slice(0, length),
    wallTime: wallTime.slice(0, length),
  };
}
