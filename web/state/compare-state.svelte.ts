/** Several runs at once: their settings, and their series in one plot each. */

import { findMetric } from '../../src/metrics/registry.ts';
import type { RunDetail } from '../../src/server/api.ts';
import type { LegendItem } from '../lib/compare.ts';
import type { Line } from '../lib/envelope.ts';
import type { GroupLine } from '../lib/group-line.ts';
import type { GroupFigure } from '../lib/view-state.ts';
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
  /** The curves of a metric: one for each item of the legend. */
  source(
    metric: string,
    legend: readonly LegendItem<ComparedRun>[],
    of: GroupFigure,
    hidden: ReadonlySet<string>,
  ): Source;
  /** First and last x of all. */
  onExtent(listener: (extent: [number, number] | null) => void): void;
  forEach(act: (series: SeriesStore) => void): void;
  close(): void;
}

let makeGroup: typeof import('../lib/group-line.ts').groupLine | null = null;
let groupFailure: string | null = null;

/** The statistics of groups, once there is one. */
async function loadGroups(): Promise<void> {
  try {
    makeGroup = (await import('../lib/group-line.ts')).groupLine;
  } catch {
    groupFailure = 'This part of the page could not be loaded: load the page again.';
  }
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
    source(metric, all, of, hidden) {
      const legend = all.filter(item => !hidden.has(item.label));
      const grouped = legend.some(item => item.runs.length > 1);
      const asked = legend
        .flatMap(item => item.runs)
        .filter(run => run.detail === null || run.detail.metrics.some(m => m.id === metric));
      const held = findMetric(metric)?.heldTo !== undefined;
      /** What was made of which lines: it costs milliseconds, and most rows change one run alone. */
      const made = new Map<string, { readonly lines: readonly Line[]; readonly group: GroupLine }>();
      function groupOf(label: string, lines: readonly Line[]): GroupLine {
        const known = made.get(label);
        if (known?.lines.length === lines.length && known.lines.every((line, i) => line === lines[i]))
          return known.group;
        const group = makeGroup!(lines, of);
        made.set(label, { lines, group });
        return group;
      }
      return {
        lines() {
          if (grouped && makeGroup === null) return null;
          const lines: NamedLine[] = [];
          for (const { label, color, runs: members } of legend) {
            const some = members
              .map(run => run.series.line(metric))
              .filter((l): l is Line => l !== null && l.x.length > 0);
            if (some.length === 0) continue;
            if (members.length === 1) {
              lines.push({ label, color, line: some[0] });
              continue;
            }
            const { line, peak, ends } = groupOf(label, some);
            lines.push({ label, color, line, ends, runs: members.length, ...(held ? { peak } : {}) });
          }
          const waiting = asked.some(
            run => run.series.line(metric) === null && run.series.failure(metric) === null,
          );
          return lines.length === 0 && waiting ? null : lines;
        },
        failure: () =>
          asked.map(run => run.series.failure(metric)).find(f => f !== null) ??
          (grouped ? groupFailure : null),
        watch(onChange) {
          const stops = asked.map(run => run.series.watch(metric, onChange));
          if (grouped && makeGroup === null) void loadGroups().then(onChange);
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
