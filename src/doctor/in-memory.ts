/** Series that a program has in memory, without a log. */
import { fail } from '../base/errors.ts';
import type { CanonicalRun } from './canonical.ts';
import { type CanonicalOptions, toCanonical } from './dialects/translate.ts';
import { judged } from './doctor.ts';
import type { Diagnosis } from './findings.ts';
import type { RawRun } from './raw-run.ts';
import { runReport } from './report/report-of-run.ts';
import type { RunReport } from './report/run-report.ts';
import { SeriesBuilder } from './series.ts';

/** Values in the order they were logged, or with the step of each. */
export type SeriesInput =
  | ArrayLike<number>
  | { readonly steps: ArrayLike<number>; readonly values: ArrayLike<number> };

/** What is known besides the numbers. */
export interface SeriesContext extends CanonicalOptions {
  /** How reports name the run. */
  readonly path?: string;
  /** The step of each value, where the series does not have its own. */
  readonly steps?: ArrayLike<number>;
  /** The trainer's settings by its own names: `{ learning_rate: 3e-4 }`. */
  readonly config?: Readonly<Record<string, string | number | boolean | null>>;
}

/** What is wrong with a run whose series are given by the trainer's names (`train/approx_kl`) or by Keel's. */
export function diagnoseSeries(
  series: Readonly<Record<string, SeriesInput>>,
  context: SeriesContext = {},
): Diagnosis {
  return judged(canonicalOf(series, context));
}

/** The same with what is drawn, for the renderers. */
export function reportSeries(
  series: Readonly<Record<string, SeriesInput>>,
  context: SeriesContext = {},
): RunReport {
  const run = canonicalOf(series, context);
  return runReport(judged(run), run);
}

function canonicalOf(series: Readonly<Record<string, SeriesInput>>, context: SeriesContext): CanonicalRun {
  const { map, trainer } = context;
  return toCanonical(rawOf(series, context), {
    ...(map === undefined ? {} : { map }),
    ...(trainer === undefined ? {} : { trainer }),
  });
}

function rawOf(
  series: Readonly<Record<string, SeriesInput>>,
  { path = 'series', steps, config = {} }: SeriesContext,
): RawRun {
  let stated = steps !== undefined;
  const built = Object.entries(series).map(([name, input]) => {
    const own = 'values' in input && 'steps' in input ? input : undefined;
    const [values, x] = own === undefined ? [input as ArrayLike<number>, steps] : [own.values, own.steps];
    stated ||= own !== undefined;
    if (x !== undefined && x.length !== values.length)
      fail(`${name} has ${values.length} values and ${x.length} steps: give one step for each value`);
    const builder = new SeriesBuilder();
    for (let i = 0; i < values.length; i++) {
      const [at, value] = [x === undefined ? i : x[i], values[i]];
      if (typeof value !== 'number' || typeof at !== 'number')
        fail(
          `${name}[${i}] is ${String(value)} at step ${String(at)}: give numbers, NaN where there is none`,
        );
      builder.append(at, value);
    }
    return [name, builder.build()] as const;
  });
  return {
    path,
    format: 'jsonl',
    files: [],
    axis: stated ? 'step' : 'row',
    series: new Map(built),
    config: new Map(Object.entries(config)),
    texts: new Map(),
    restarts: [],
    notes: [],
    unfinished: false,
  };
}
