/** Where a plot takes its lines from: one run's series, or those of several. */
import type { Line } from '../lib/envelope.ts';
import type { SeriesStore } from '../state/series-store.ts';

export interface NamedLine {
  readonly label: string;
  readonly color: number;
  readonly line: Line;
}

export interface Source {
  /** null while there is no answer yet. */
  lines(): readonly NamedLine[] | null;
  failure(): string | null;
  watch(onChange: () => void): () => void;
}

export function seriesSource(store: SeriesStore, metric: string, label: string): Source {
  return {
    lines() {
      const line = store.line(metric);
      return line === null ? null : [{ label, color: 0, line }];
    },
    failure: () => store.failure(metric),
    watch: onChange => store.watch(metric, onChange),
  };
}
