/** SB3's `monitor.csv`: one row an episode. Several environments write one each: together they are one run, by time. */
import type { Reading } from './bytes.ts';
import { readCsv } from './csv.ts';
import { defaultLimits, RunBuilder } from './run-builder.ts';

const mostFiles = 256;
/** Enough that no episode is merged with another before they are put in order. */
const capacity = 2 ** 19;

export async function readMonitors(
  files: readonly string[],
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  if (files.length === 1) {
    await readCsv(files[0], run, reading);
    return;
  }
  const parts: RunBuilder[] = [];
  for (const file of files.slice(0, mostFiles)) {
    const part = new RunBuilder(file, 'csv', 'row', { ...defaultLimits, capacity });
    await readCsv(file, part, reading);
    parts.push(part);
  }
  if (files.length > mostFiles) run.note(`only the first ${mostFiles} of ${files.length} monitors are read`);
  for (const part of parts) {
    for (const [name, value] of part.config) if (!run.config.has(name)) run.setting(name, value);
    run.unfinished ||= part.unfinished;
    for (const note of part.finish().notes) run.note(note);
  }
  // Each file is in order of time: the earliest of the next rows goes next.
  const queues = parts.map(part => ({
    at: 0,
    columns: [...part.series].map(([name, builder]) => ({ name, series: builder.build() })),
  }));
  let row = 0;
  for (;;) {
    let first: (typeof queues)[number] | undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const queue of queues) {
      const times = queue.columns[0]?.series;
      if (times === undefined || queue.at >= times.length) continue;
      const time = times.wallTime[queue.at];
      if (first === undefined || time < earliest) {
        first = queue;
        earliest = time;
      }
    }
    if (first === undefined) return;
    row++;
    for (const { name, series } of first.columns) {
      if (first.at < series.length) run.number(name, row, series.values[first.at], series.wallTime[first.at]);
    }
    first.at++;
    if (row % 4096 === 0) await reading.breathe();
  }
}
