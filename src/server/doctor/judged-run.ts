/** A run of Keel for the doctor: its columns as series of bounded length, by row number. */
import type { Series } from '../../doctor/series.ts';
import type { KeelRun } from '../runs/keel-run.ts';
import { type Column, meanOf, newStretch } from '../series/column.ts';
import { firstAt } from '../series/envelope.ts';
import type { JudgedRun } from './jobs.ts';

/** As many points as the doctor's own readers keep. */
const mostPoints = 32_768;

export function judgedRun(run: KeelRun): JudgedRun | undefined {
  const { manifest, table } = run;
  if (manifest === undefined || table.rows === 0) return undefined;
  const { axes } = table;
  const stride = Math.ceil(axes.length / mostPoints);
  const { config, environment, algorithm, seed, status, versions, reason } = manifest;
  return {
    path: run.path,
    series: [...table.columns].map(([name, column]) => [
      name,
      seriesOf(column, axes.length, axes.time, stride),
    ]),
    config,
    environment,
    other: { algorithm, seed, status, versions },
    error: status === 'failed' ? reason : null,
    restarts: run.resumedAt
      .map(step => firstAt(axes.step, axes.length, step, true))
      .filter(row => row > 0 && row < axes.length)
      .map(row => row + 1),
    unfinished: run.state === 'running',
  };
}

function seriesOf(column: Column, rows: number, time: Float64Array, stride: number): Series {
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
    wallTime[length] = time[last]! / 1000;
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
