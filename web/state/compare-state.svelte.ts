/** Several runs at once: their settings, and their series in one plot each. */
import type { RunDetail } from '../../src/server/api.ts';
import { legendOf, spreadOver } from '../lib/compare.ts';
import type { Line } from '../lib/envelope.ts';
import type { NamedLine, Source } from '../plot/source.ts';
import { client, messageOf, statusOf } from './client.ts';
import { connection } from './connection.svelte.ts';
import { createSeriesStore, type SeriesStore } from './series-store.ts';

export interface ComparedRun {
  readonly id: string;
  readonly name: string;
  readonly detail: RunDetail | null;
  readonly problem: string | null;
  readonly series: SeriesStore;
}

export interface CompareState {
  readonly runs: readonly ComparedRun[];
  setRuns(ids: readonly string[]): void;
  /** The curves of a metric: one for each run, or for each group. */
  source(metric: string, by: string | null, hidden: ReadonlySet<string>): Source;
  /** First and last x of all. */
  onExtent(listener: (extent: [number, number] | null) => void): void;
  forEach(act: (series: SeriesStore) => void): void;
  close(): void;
}

export function createCompare(): CompareState {
  let runs = $state.raw<readonly ComparedRun[]>([]);
  let tellExtent: (extent: [number, number] | null) => void = () => {};

  function change(id: string, fields: Partial<ComparedRun>): void {
    runs = runs.map(run => (run.id === id ? { ...run, ...fields } : run));
  }
  function measure(): void {
    const all = runs.map(run => run.series.extent()).filter(e => e !== null);
    tellExtent(all.length === 0 ? null : [Math.min(...all.map(e => e[0])), Math.max(...all.map(e => e[1]))]);
  }
  async function load(id: string): Promise<void> {
    try {
      const detail = await client.detail(id);
      change(id, { detail, name: detail.run.name, problem: null });
    } catch (error) {
      change(id, {
        problem: statusOf(error) === 404 ? 'not found: it was moved or deleted' : messageOf(error),
      });
    }
  }
  const stop = connection.listen(messages => {
    for (const message of messages) {
      if (message.type === 'reset') for (const run of runs) run.series.refresh();
      else if (message.type === 'rows')
        runs
          .find(run => run.id === message.run)
          ?.series.append(message.rows, message.generation, message.more);
    }
  });

  return {
    get runs() {
      return runs;
    },
    setRuns(ids) {
      const kept = new Map(runs.map(run => [run.id, run]));
      for (const run of runs) if (!ids.includes(run.id)) run.series.close();
      const fresh: string[] = [];
      runs = ids.map(id => {
        const old = kept.get(id);
        if (old !== undefined) return old;
        fresh.push(id);
        const series = createSeriesStore(
          (ask, signal) => client.series(id, ask, signal),
          requestAnimationFrame,
        );
        series.onExtent(measure);
        return { id, name: id, detail: null, problem: null, series };
      });
      for (const id of fresh) void load(id);
      measure();
    },
    source(metric, by, hidden) {
      const legend = legendOf(runs, by).filter(item => !hidden.has(item.label));
      const asked = legend
        .flatMap(item => item.runs)
        .filter(run => run.detail === null || run.detail.metrics.some(m => m.id === metric));
      return {
        lines() {
          const lines: NamedLine[] = [];
          for (const { label, color, runs: members } of legend) {
            const some = members
              .map(run => run.series.line(metric))
              .filter((l): l is Line => l !== null && l.x.length > 0);
            if (some.length === 0) continue;
            lines.push({ label, color, line: by === null ? some[0] : groupLine(some) });
          }
          const waiting = asked.some(
            run => run.series.line(metric) === null && run.series.failure(metric) === null,
          );
          return lines.length === 0 && waiting ? null : lines;
        },
        failure: () => asked.map(run => run.series.failure(metric)).find(f => f !== null) ?? null,
        watch(onChange) {
          const stops = asked.map(run => run.series.watch(metric, onChange));
          return () => {
            for (const end of stops) end();
          };
        },
      };
    },
    onExtent(listener) {
      tellExtent = listener;
    },
    forEach(act) {
      for (const run of runs) act(run.series);
    },
    close() {
      stop();
      for (const run of runs) run.series.close();
    },
  };
}

/** The mean of a group as a line, its spread as the band. */
function groupLine(lines: readonly Line[]): Line {
  const spread = spreadOver(lines);
  return {
    x: spread.x,
    min: spread.low,
    max: spread.high,
    mean: spread.mean,
    count: spread.x.map(() => 1),
    broken: [],
  };
}
