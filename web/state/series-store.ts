/**
 * The series of one run, as far as they are looked at. Plots that are on screen watch a metric; all that is missing is
 * asked for in a few requests; a zoom asks again for its stretch, at its resolution; live rows are added at the end
 * without asking. Plain, without runes: a plot is told when there is something to draw, at most once a frame.
 */
import type { SeriesAnswer, XAxis } from '../../src/server/api.ts';
import { appendPoint, joinLines, type Line, lineOf } from '../lib/envelope.ts';

export type Row = Readonly<Record<string, number | null>>;
export interface Ask {
  readonly metrics: readonly string[];
  readonly x: XAxis;
  readonly from: number | null;
  readonly to: number | null;
  readonly buckets: number;
}

interface Entry {
  coarse: Line | null;
  fine: { line: Line; from: number; to: number } | null;
  /** What the two make together; null when to be made again. */
  joined: Line | null;
  /** Live points since the last answer: with many of them the coarse line is asked for again. */
  added: number;
  asking: boolean;
  failed: string | null;
  watchers: Set<() => void>;
}

export interface SeriesStore {
  /** Tells when there is something new to draw for a metric, until the answer is called. */
  watch(metric: string, onChange: () => void): () => void;
  line(metric: string): Line | null;
  failure(metric: string): string | null;
  /** First and last x of all that is loaded. */
  extent(): [number, number] | null;
  setAxis(x: XAxis): void;
  setZoom(from: number | null, to: number | null): void;
  append(rows: readonly Row[], generation: number, more: boolean): void;
  /** What was loaded no longer holds; what is watched is asked for again. */
  refresh(): void;
  onExtent(listener: () => void): () => void;
  close(): void;
}

const buckets = 600;
const metricsPerAsk = 8;
const maxAdded = 300;
const keptRows = 400;

/** Where a row is on an axis. */
function rowX(row: Row, x: XAxis): number | null {
  if (x === 'step') return row['train/step'] ?? null;
  if (x === 'iteration') return row['train/iteration'] ?? null;
  const seconds = row['time/unix_s'];
  return seconds === null || seconds === undefined ? null : seconds * 1000;
}

export function createSeriesStore(
  fetchSeries: (ask: Ask, signal: AbortSignal) => Promise<SeriesAnswer>,
  /** Runs a task at the next frame. */
  later: (task: () => void) => void,
): SeriesStore {
  const entries = new Map<string, Entry>();
  const extentListeners = new Set<() => void>();
  let x: XAxis = 'step';
  let zoom: [number, number] | null = null;
  let bounds: [number, number] | null = null;
  let recent: Row[] = [];
  let generation = -1;
  let abort = new AbortController();
  let flushing = false;
  let fineTimer: ReturnType<typeof setTimeout> | undefined;
  const changed = new Set<Entry>();
  let extentChanged = false;

  const entryOf = (metric: string): Entry => {
    let entry = entries.get(metric);
    if (entry === undefined) {
      entry = {
        coarse: null,
        fine: null,
        joined: null,
        added: 0,
        asking: false,
        failed: null,
        watchers: new Set(),
      };
      entries.set(metric, entry);
    }
    return entry;
  };

  function widen(line: Line): void {
    if (line.x.length === 0) return;
    const [a, b] = [line.x[0], line.x.at(-1)!];
    if (bounds !== null && bounds[0] <= a && bounds[1] >= b) return;
    bounds = bounds === null ? [a, b] : [Math.min(bounds[0], a), Math.max(bounds[1], b)];
    extentChanged = true;
  }

  function touch(entry: Entry): void {
    entry.joined = null;
    changed.add(entry);
    if (flushing) return;
    flushing = true;
    later(() => {
      flushing = false;
      const now = [...changed];
      changed.clear();
      if (extentChanged) {
        extentChanged = false;
        for (const listener of extentListeners) listener();
      }
      for (const item of now) for (const watcher of item.watchers) watcher();
    });
  }

  let askSoon = false;
  function askMissing(): void {
    if (askSoon) return;
    askSoon = true;
    queueMicrotask(() => {
      askSoon = false;
      const missing = [...entries].filter(([, e]) => e.coarse === null && !e.asking && e.watchers.size > 0);
      for (let i = 0; i < missing.length; i += metricsPerAsk)
        void askCoarse(missing.slice(i, i + metricsPerAsk));
    });
  }

  async function askCoarse(wanted: (readonly [string, Entry])[]): Promise<void> {
    const { signal } = abort;
    const asked = x;
    for (const [, entry] of wanted) entry.asking = true;
    try {
      const ask = { metrics: wanted.map(([metric]) => metric), x, from: null, to: null, buckets };
      const answer = await fetchSeries(ask, signal);
      if (signal.aborted || asked !== x) return;
      generation = Math.max(generation, answer.generation);
      const found = new Map(answer.series.map(envelope => [envelope.metric, envelope]));
      for (const [metric, entry] of wanted) {
        const envelope = found.get(metric);
        entry.coarse =
          envelope === undefined
            ? lineOf({ metric, x: [], min: [], max: [], mean: [], count: [], broken: [] })
            : lineOf(envelope);
        entry.added = 0;
        entry.failed = null;
        for (const row of recent) grow(metric, entry, row);
        widen(entry.coarse);
      }
    } catch (error) {
      if (signal.aborted) return;
      for (const [, entry] of wanted) entry.failed = error instanceof Error ? error.message : String(error);
    } finally {
      for (const [, entry] of wanted) {
        entry.asking = false;
        touch(entry);
      }
    }
    if (zoom !== null) askFineSoon();
  }

  function askFineSoon(): void {
    clearTimeout(fineTimer);
    fineTimer = setTimeout(() => void askFine(), 120);
  }

  /** A margin of half a window on both sides, so that panning finds something there. */
  async function askFine(): Promise<void> {
    if (zoom === null) return;
    const [a, b] = zoom;
    const width = b - a;
    const from = a - width / 2;
    const to = b + width / 2;
    const { signal } = abort;
    const wanted = [...entries].filter(([, e]) => {
      if (e.watchers.size === 0 || e.coarse === null) return false;
      if (e.coarse.count.every(n => n === 1)) return false;
      const f = e.fine;
      return f === null || a < f.from || b > f.to || f.to - f.from > width * 3.2;
    });
    for (let i = 0; i < wanted.length; i += metricsPerAsk) {
      const part = wanted.slice(i, i + metricsPerAsk);
      try {
        const ask = { metrics: part.map(([metric]) => metric), x, from, to, buckets: buckets * 2 };
        const answer = await fetchSeries(ask, signal);
        if (signal.aborted) return;
        const found = new Map(answer.series.map(envelope => [envelope.metric, envelope]));
        for (const [metric, entry] of part) {
          const envelope = found.get(metric);
          if (envelope === undefined) continue;
          entry.fine = { line: lineOf(envelope), from, to };
          touch(entry);
        }
      } catch {
        // The coarse line stays; the next zoom asks again.
        return;
      }
    }
  }

  function grow(metric: string, entry: Entry, row: Row): boolean {
    const value = row[metric];
    const at = rowX(row, x);
    if (value === undefined || at === null || entry.coarse === null) return false;
    if (!appendPoint(entry.coarse, at, value)) return false;
    if (entry.fine !== null && at <= entry.fine.to) appendPoint(entry.fine.line, at, value);
    return true;
  }

  function forget(): void {
    abort.abort();
    abort = new AbortController();
    clearTimeout(fineTimer);
    for (const entry of entries.values())
      Object.assign(entry, { coarse: null, fine: null, joined: null, asking: false });
    bounds = null;
    askMissing();
  }

  return {
    watch(metric, onChange) {
      const entry = entryOf(metric);
      entry.watchers.add(onChange);
      if (entry.coarse === null) askMissing();
      else if (zoom !== null) askFineSoon();
      return () => entry.watchers.delete(onChange);
    },
    line(metric) {
      const entry = entries.get(metric);
      if (entry === undefined || entry.coarse === null) return null;
      entry.joined ??= joinLines(
        entry.coarse,
        entry.fine?.line ?? null,
        entry.fine?.from ?? 0,
        entry.fine?.to ?? 0,
      );
      return entry.joined;
    },
    failure: metric => entries.get(metric)?.failed ?? null,
    extent: () => bounds,
    setAxis(next) {
      if (next === x) return;
      x = next;
      forget();
    },
    setZoom(from, to) {
      zoom = from === null || to === null ? null : [from, to];
      if (zoom !== null) askFineSoon();
    },
    append(rows, rowsGeneration, more) {
      if (rowsGeneration < generation) return;
      if (rowsGeneration > generation && generation >= 0) {
        generation = rowsGeneration;
        recent = [...rows];
        return forget();
      }
      recent = [...recent, ...rows].slice(-keptRows);
      let stale = more;
      for (const [metric, entry] of entries) {
        if (entry.coarse === null) continue;
        let grown = 0;
        for (const row of rows) if (grow(metric, entry, row)) grown++;
        if (grown === 0) continue;
        entry.added += grown;
        if (entry.added > maxAdded) stale = true;
        widen(entry.coarse);
        touch(entry);
      }
      // Too many single points, or some that were not sent: ask again, and draw what there is until then.
      if (stale) {
        const wanted = [...entries].filter(([, e]) => e.coarse !== null && !e.asking && e.watchers.size > 0);
        for (const [, e] of entries) e.added = 0;
        for (const [, e] of entries) if (e.watchers.size === 0) e.coarse = null;
        for (let i = 0; i < wanted.length; i += metricsPerAsk)
          void askCoarse(wanted.slice(i, i + metricsPerAsk));
      }
    },
    refresh: forget,
    onExtent(listener) {
      extentListeners.add(listener);
      return () => extentListeners.delete(listener);
    },
    close() {
      abort.abort();
      clearTimeout(fineTimer);
      entries.clear();
      extentListeners.clear();
    },
  };
}
