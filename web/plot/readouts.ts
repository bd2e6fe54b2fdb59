/** What a plot says in numbers and words: its values at the cursor, and a summary for those who do not see it. */
import { formatPlace } from '../lib/axis.ts';
import { nearestIndex } from '../lib/envelope.ts';
import { formatValue } from '../lib/format.ts';
import { summarise } from '../lib/plot-data.ts';
import type { PlotInfo } from './plot-info.ts';
import type { NamedLine } from './source.ts';
import type { Stage } from './stage.svelte.ts';

export interface Readout {
  readonly label: string;
  readonly color: number;
  readonly x: number | null;
  /** Whether it is over where the cursor is: then what is told is its end. */
  readonly ended: boolean;
  readonly mean: number | null;
  readonly min: number | null;
  readonly max: number | null;
  /** The largest of all that was measured there. */
  readonly largest: number | null;
  /** How many values share the bucket; of a group, how many runs are there. */
  readonly count: number;
  /** How many runs it stands for; then `min` and `max` are its interval. */
  readonly runs: number | null;
  /** Whether it stands beside what the plot is of. */
  readonly beside: boolean;
}

/** Whether a place lies beyond a line by more than its last points are apart. */
function isBeyond(xs: readonly number[], at: number | null): boolean {
  const last = xs.at(-1);
  return at !== null && last !== undefined && at - last > last - (xs.at(-2) ?? last);
}

/** The values nearest to a place; without one, the last. */
export function readoutsOf(lines: readonly NamedLine[], at: number | null): Readout[] {
  return lines.map(({ label, color, line, peak, runs = null, beside = false }) => {
    let i = at === null ? line.x.length - 1 : nearestIndex(line.x, at);
    // The newest buckets may have none.
    if (at === null) while (i > 0 && line.mean[i] === null) i--;
    return {
      label,
      color,
      x: line.x[i] ?? null,
      ended: isBeyond(line.x, at),
      mean: line.mean[i] ?? null,
      min: line.min[i] ?? null,
      max: line.max[i] ?? null,
      largest: (peak ?? line.max)[i] ?? null,
      count: line.count[i] ?? 0,
      runs,
      beside,
    };
  });
}

export function summaryOf(info: PlotInfo, lines: readonly NamedLine[], stage: Stage): string {
  const say = { value: formatValue, place: (x: number) => formatPlace(stage.axis, x, stage.origin) };
  const title = (label: string) => (lines.length > 1 ? `${info.title}, ${label}` : info.title);
  return lines.map(({ label, line }) => summarise(title(label), info.unit, line, say)).join(' ');
}
