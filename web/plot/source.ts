/** Where a plot takes its lines from: one run's series, or those of several. */
import type { Line } from '../lib/envelope.ts';
import type { GroupEnd } from '../lib/group-line.ts';
import type { SeriesStore } from '../state/series-store.ts';

export interface NamedLine {
  readonly label: string;
  readonly color: number;
  readonly line: Line;
  /** Of several runs: how many, where some of them end, and the largest value of any, where that is to be seen. */
  readonly runs?: number;
  readonly ends?: readonly GroupEnd[];
  readonly peak?: readonly (number | null)[];
  /** Drawn beside what the plot is of, such as evaluations beside returns. */
  readonly beside?: boolean;
}

export interface Source {
  /** null while there is no answer yet. */
  lines(): readonly NamedLine[] | null;
  failure(): string | null;
  watch(onChange: () => void): () => void;
}

/** The line of a metric, and beside it that of another once it has values. */
export function seriesSource(
  store: SeriesStore,
  metric: string,
  label: string,
  companion?: { readonly id: string; readonly label: string },
): Source {
  return {
    lines() {
      const line = store.line(metric);
      if (line === null) return null;
      const beside = companion === undefined ? null : store.line(companion.id);
      return [
        { label, color: 0, line },
        ...(beside === null || beside.x.length === 0
          ? []
          : [{ label: companion!.label, color: 1, line: beside, beside: true }]),
      ];
    },
    failure: () => store.failure(metric),
    watch(onChange) {
      const stops = [metric, ...(companion === undefined ? [] : [companion.id])].map(id =>
        store.watch(id, onChange),
      );
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}
