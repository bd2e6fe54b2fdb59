/** Charts that W&B's page exported: a column for each run, named `run - metric`, with the ends of its range beside it. */

import { isStepName } from '../counters.ts';
import type { Reading } from './bytes.ts';
import { headerDelimiter, readCsv, splitFields } from './csv.ts';
import { replaceRepeated } from './restarts.ts';
import { defaultLimits, RunBuilder } from './run-builder.ts';

const mostRuns = 1024;

/** `run-name - train/kl__MIN`: of which run, which metric, and which end of its range. */
function chartColumn(name: string): { run: string; metric: string; isRange: boolean } | undefined {
  const at = name.lastIndexOf(' - ');
  if (at <= 0) return undefined;
  const metric = name.slice(at + 3);
  const isRange = /__(?:MIN|MAX)$/.test(metric);
  return { run: name.slice(0, at), metric: isRange ? metric.slice(0, -5) : metric, isRange };
}

/** The runs whose columns a header has; none where it is not one of a chart. */
export function chartRuns(header: string): string[] {
  const delimiter = headerDelimiter(header);
  if (delimiter === undefined) return [];
  const columns = splitFields(header, delimiter).map(chartColumn);
  if (columns[0] !== undefined || !columns.slice(1).every(column => column !== undefined)) return [];
  if (!columns.some(column => column?.isRange)) return [];
  return [...new Set(columns.flatMap(column => (column === undefined ? [] : [column.run])))].slice(
    0,
    mostRuns,
  );
}

/** The names of the columns as one run has them; '' for one of another run, or of a range. */
const namesFor =
  (run: string) =>
  (names: readonly string[]): string[] =>
    names.map(name => {
      const column = chartColumn(name);
      if (column === undefined) return name;
      return column.run === run && !column.isRange ? column.metric : '';
    });

/** Reads the charts in which a run is: each has its own steps. */
export async function readCharts(
  files: readonly string[],
  name: string,
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  if (files.length === 1) {
    await readCsv(files[0], run, reading, namesFor(name));
    return;
  }
  run.axis = 'step';
  for (const file of files) {
    const part = new RunBuilder(file, 'csv', 'row', defaultLimits);
    await readCsv(file, part, reading, namesFor(name));
    const steps = [...part.series].find(([column]) => isStepName(column))?.[1].build();
    if (steps === undefined) run.note(`${file} has no column of steps and is left out`);
    for (const [metric, builder] of part.series) {
      const series = builder.build();
      if (steps === undefined || series.x === steps.x || isStepName(metric)) continue;
      // A metric that was not logged in a row has no cell there.
      for (let i = 0, at = 0; i < series.length; i++) {
        while (at < steps.length && steps.x[at] < series.x[i]) at++;
        if (at < steps.length && steps.x[at] === series.x[i])
          run.number(metric, steps.values[at], series.values[i], series.wallTime[i]);
      }
    }
  }
  replaceRepeated(run);
}
