/** A run of Keel as it grows: its manifest, its rows into columns, its events; never read twice. */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { klBand } from '../../metrics/registry.ts';
import { adjustedAt, adjustmentsPath, readAdjustments } from '../../runs/inbox.ts';
import { runPaths } from '../../runs/layout.ts';
import { readEvents } from '../../runs/log.ts';
import { readManifest } from '../../runs/manifest.ts';
import type { Manifest } from '../../runs/schema.ts';
import { statusOf } from '../../runs/store.ts';
import type { DiagnosisAnswer, EventsAnswer, Notes, PageEvent, RunState, RunSummary } from '../api.ts';
import { rounded } from '../series/envelope.ts';
import { longestLine, RowScanner } from '../series/row-scanner.ts';
import { defaultMaxCells, Table } from '../series/table.ts';
import { EventStore } from './events.ts';
import { flatten } from './flatten.ts';
import { idOf, nameUnder, type Root } from './places.ts';
import { numberOf, oneLine, openIfThere, pageEvent, sizeOf, sparkline, stamp } from './reading.ts';
import { infoOf, mostRows, type News, noNews, type Row, type Track, type WatchedRun } from './run.ts';

const chunkBytes = 2 ** 20;
/** How long reading may hold the thread before requests have their turn. */
const turnMs = 12;
/** How often a run that says it is running is asked whether its process lives. */
const statusEveryMs = 2000;
/** Metrics that an overview shows as the return, the first that a run has. */
const objectives = ['episode/return', 'reward/mean', 'eval/return', 'return/mean'];

export interface KeelRunOptions {
  readonly maxCells?: number | undefined;
}

interface Seen {
  readonly metrics: string;
  readonly events: string;
  readonly manifest: string;
  readonly adjustments: string;
}

export class KeelRun implements WatchedRun {
  readonly kind = 'keel';
  readonly id: string;
  readonly path: string;
  readonly #root: Root;
  readonly #maxCells: number;
  #manifest: Manifest | undefined;
  #adjusted: Readonly<Record<string, number | null>> = {};
  #problem: string | null = null;
  #status: RunState = 'stopped';
  #statusAt = Number.NEGATIVE_INFINITY;
  #seen: Seen | undefined;
  #table: Table;
  #scanner: RowScanner;
  #offset = 0;
  #updatedAt = 0;
  #broken = 0;
  #brokenReason: string | undefined;
  #events = new EventStore();
  #eventsEnd = 0;
  /** Rows at which a resume went on, for the doctor. */
  #resumedAt: number[] = [];
  #generation = 0;
  #loaded = false;
  /** Its columns were forgotten to save memory: they are read again when asked for, or when there is more. */
  #resting = false;
  #everLoaded = false;
  #diagnosis: Pick<DiagnosisAnswer, 'diagnosis' | 'reason'> = { diagnosis: null, reason: null };
  /** What the overview shows, kept when the columns are forgotten. */
  #shown: Pick<RunSummary, 'step' | 'stepsPerSecond' | 'sparkline' | 'lastReturn' | 'lastKl' | 'klBand'> =
    emptyShown;
  #rowsShown = 0;

  constructor(path: string, root: Root, { maxCells = defaultMaxCells }: KeelRunOptions = {}) {
    this.id = idOf(path);
    this.path = path;
    this.#root = root;
    this.#maxCells = maxCells;
    this.#table = new Table(maxCells);
    this.#scanner = new RowScanner(this.#table);
    this.#readManifest();
  }

  get manifest(): Manifest | undefined {
    return this.#manifest;
  }

  get state(): RunState {
    return this.#status;
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  get updatedAt(): number {
    return this.#updatedAt;
  }

  get generation(): number {
    return this.#generation;
  }

  get rows(): number {
    return this.#loaded ? this.#table.total : Math.max(this.#rowsShown, this.#table.total);
  }

  get cells(): number {
    return this.#table.cells;
  }

  get table(): Table {
    return this.#table;
  }

  get resumedAt(): readonly number[] {
    return this.#resumedAt;
  }

  get diagnosis(): Pick<DiagnosisAnswer, 'diagnosis' | 'reason'> {
    return this.#diagnosis;
  }

  setDiagnosis(diagnosis: Pick<DiagnosisAnswer, 'diagnosis' | 'reason'>): void {
    this.#diagnosis = diagnosis;
  }

  look(now: number): 'same' | 'changed' | 'gone' {
    const { metrics, events, manifest } = runPaths(this.path);
    const seen = {
      metrics: stamp(metrics),
      events: stamp(events),
      manifest: stamp(manifest),
      adjustments: stamp(adjustmentsPath(this.path)),
    };
    if (seen.manifest === '') return 'gone';
    let changed = !this.#loaded && !this.#resting;
    if (seen.manifest !== this.#seen?.manifest) {
      this.#readManifest();
      this.#statusAt = Number.NEGATIVE_INFINITY;
      changed = true;
    }
    if (seen.adjustments !== (this.#seen?.adjustments ?? '')) {
      this.#readAdjustments();
      changed = true;
    }
    if (now - this.#statusAt >= statusEveryMs && this.#manifest !== undefined) {
      this.#statusAt = now;
      const before = this.#status;
      try {
        this.#status = statusOf(this.path, this.#manifest);
      } catch {
        // The lock was just released or the directory is going: the next look tells.
      }
      if (before !== this.#status) changed = true;
    }
    if (seen.metrics !== this.#seen?.metrics || seen.events !== this.#seen?.events) changed = true;
    this.#seen = seen;
    return changed ? 'changed' : 'same';
  }

  async read(signal: AbortSignal): Promise<News> {
    if (this.#manifest === undefined) {
      this.#loaded = true;
      return noNews;
    }
    try {
      const before = this.#generation;
      const tell = this.#loaded;
      const rows: Row[] = [];
      let count = 0;
      this.#rewindIfCut();
      await this.#readRows(signal, () => {
        if (!tell) return;
        count++;
        rows.push(this.#scanner.lastRow());
        if (rows.length > 2 * mostRows) rows.splice(0, rows.length - mostRows);
      });
      this.#table.settle();
      const events = this.#readEvents();
      this.#loaded = true;
      this.#everLoaded = true;
      this.#resting = false;
      this.#refresh();
      const rewound = this.#generation !== before;
      const told = rows.slice(-mostRows);
      return { rows: told, more: count > told.length, events: tell && !rewound ? events : [], rewound };
    } catch (error) {
      if (signal.aborted) return noNews;
      this.#problem = `its log cannot be read: ${oneLine(error)}`;
      this.#loaded = true;
      return noNews;
    }
  }

  summary(notes: Notes): RunSummary {
    const manifest = this.#manifest;
    return {
      id: this.id,
      name: nameUnder(this.path, this.#root),
      root: this.#root.shown,
      trainer: 'keel',
      state: manifest === undefined ? 'unreadable' : this.#status,
      environment: manifest?.environment.id ?? null,
      algorithm: manifest?.algorithm ?? null,
      seed: manifest?.seed ?? null,
      totalSteps: numberOf(manifest?.config.steps),
      startedAt: manifest === undefined ? null : Date.parse(manifest.startedAt),
      updatedAt: Math.round(this.#updatedAt),
      ...this.#shown,
      step: Math.max(this.#shown.step, this.#everLoaded ? 0 : (manifest?.step ?? 0)),
      verdict: this.#diagnosis.diagnosis?.verdict ?? null,
      rootCause: this.#diagnosis.diagnosis?.rootCause ?? null,
      parent: manifest?.parent?.id ?? null,
      notes,
      problem: this.#problem ?? this.#brokenNote(),
      generation: this.#generation,
      loaded: this.#everLoaded || this.#loaded,
    };
  }

  tracks(): ReadonlyMap<string, Track> {
    const { axes } = this.#table;
    const x: Track['x'] = axis => axes[axis];
    const tracks = new Map<string, Track>();
    for (const [name, column] of this.#table.columns) {
      const last = column.at(column.lastBefore(axes.length));
      tracks.set(name, {
        info: infoOf(name, name, column.points, last),
        column,
        length: axes.length,
        x,
      });
    }
    return tracks;
  }

  events(after: number): EventsAnswer {
    return this.#events.answer(after);
  }

  /** The settings as they are now, with what was changed by hand. */
  get settings(): Readonly<Record<string, unknown>> {
    return { ...this.#manifest?.config, ...this.#adjusted };
  }

  get config(): Readonly<Record<string, string | number | boolean | null>> {
    const manifest = this.#manifest;
    if (manifest === undefined) return {};
    const { environment, seed, algorithm, versions } = manifest;
    return {
      ...flatten(this.settings),
      ...flatten({ environment, versions }),
      algorithm,
      seed,
    };
  }

  get lines(): { readonly targetKl: number | null; readonly guard: number | null } {
    const config = this.settings;
    return { targetKl: numberOf(config.targetKl), guard: numberOf(config.guard) };
  }

  get logNotes(): readonly string[] {
    const notes: string[] = [];
    const broken = this.#brokenNote();
    if (broken !== null) notes.push(broken);
    const manifest = this.#manifest;
    if (manifest?.reason) notes.push(`${manifest.status}: ${manifest.reason}`);
    if ((manifest?.resumes ?? 0) > 0)
      notes.push(`resumed ${manifest!.resumes === 1 ? 'once' : `${manifest!.resumes} times`}`);
    if (this.#table.isMerged) {
      notes.push(
        `${this.#table.total} rows: neighbours are merged for the plots, keeping mean, smallest and largest`,
      );
    }
    return notes;
  }

  readonly unit = 'steps';

  unload(): void {
    this.#rowsShown = this.#table.total;
    this.#table = new Table(this.#maxCells);
    this.#scanner = new RowScanner(this.#table);
    this.#offset = 0;
    this.#broken = 0;
    this.#loaded = false;
    this.#resting = true;
  }

  #brokenNote(): string | null {
    if (this.#broken === 0) return null;
    const lines = this.#broken === 1 ? 'one line is' : `${this.#broken} lines are`;
    return `metrics.jsonl: ${lines} damaged and left out (${this.#brokenReason ?? ''})`;
  }

  #readManifest(): void {
    try {
      this.#manifest = readManifest(this.path);
      this.#problem = null;
      this.#updatedAt = Math.max(this.#updatedAt, Date.parse(this.#manifest.updatedAt));
      if (this.#manifest.status !== 'running') this.#status = this.#manifest.status;
    } catch (error) {
      this.#manifest = undefined;
      this.#status = 'unreadable';
      this.#problem = oneLine(error);
    }
  }

  #readAdjustments(): void {
    try {
      this.#adjusted = adjustedAt(readAdjustments(this.path), Number.POSITIVE_INFINITY);
    } catch {
      this.#adjusted = {}; // half written or damaged: a resume says so
    }
  }

  /** After a resume the file is another from some row on: the rows before it stay. */
  #rewindIfCut(): void {
    const table = this.#table;
    if (table.rows === 0) {
      // Nothing was understood yet: begin again if the file is shorter than what was passed over.
      if (this.#offset > 0 && sizeOf(runPaths(this.path).metrics) < this.#offset) this.#startAgain();
      return;
    }
    const fd = openIfThere(runPaths(this.path).metrics);
    if (fd === undefined) {
      this.#startAgain();
      return;
    }
    try {
      const { size } = fstatSync(fd);
      if (size >= this.#offset && this.#isRow(fd, table.rows - 1)) return;
      this.#generation++;
      if (table.isMerged) {
        this.#startAgain(false);
        return;
      }
      // Rows are as they were up to the cut, and differ after it at least in their time.
      let [low, high] = [0, table.rows];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (table.endOf(middle) <= size && this.#isRow(fd, middle)) low = middle + 1;
        else high = middle;
      }
      table.cut(low);
      this.#scanner.reset();
      this.#offset = table.endOf(low - 1);
      this.#broken = 0;
    } finally {
      closeSync(fd);
    }
  }

  #startAgain(counts = true): void {
    if (counts) this.#generation++;
    this.#table = new Table(this.#maxCells);
    this.#scanner = new RowScanner(this.#table);
    this.#offset = 0;
    this.#broken = 0;
  }

  /** Whether the file still has this row where it was read, by its iteration and time. */
  #isRow(fd: number, row: number): boolean {
    const table = this.#table;
    const end = table.endOf(row);
    // Of a merged row, or after a broken line, the one before ends further up: the last line counts.
    const start = Math.max(row === 0 ? 0 : table.endOf(row - 1), end - 2 ** 16);
    const bytes = Buffer.alloc(end - start);
    if (readSync(fd, bytes, 0, bytes.length, start) < bytes.length) return false;
    const text = bytes.toString('utf8');
    if (!text.endsWith('\n')) return false;
    try {
      const line = JSON.parse(text.slice(text.lastIndexOf('\n', text.length - 2) + 1)) as Record<
        string,
        unknown
      >;
      const { axes } = table;
      const time = line['time/unix_s'];
      return (
        line['train/iteration'] === axes.iteration[row] &&
        line['train/step'] === axes.step[row] &&
        (typeof time !== 'number' || !(Math.abs(time * 1000 - axes.time[row]!) > 0.01))
      );
    } catch {
      return false;
    }
  }

  async #readRows(signal: AbortSignal, onRow: () => void): Promise<void> {
    const path = runPaths(this.path).metrics;
    const fd = openIfThere(path);
    if (fd === undefined) return;
    try {
      const stat = fstatSync(fd);
      this.#updatedAt = Math.max(this.#updatedAt, stat.mtimeMs);
      let buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(4096, stat.size - this.#offset + 4096)));
      let have = 0;
      let turn = performance.now();
      for (;;) {
        const count = readSync(fd, buffer, have, buffer.length - have, this.#offset + have);
        if (count === 0) return;
        have += count;
        const { consumed, broken, reason } = this.#scanner.scan(buffer, have, this.#offset, onRow);
        this.#broken += broken;
        this.#brokenReason = reason ?? this.#brokenReason;
        this.#offset += consumed;
        buffer.copyWithin(0, consumed, have);
        have -= consumed;
        if (have === buffer.length) {
          if (have >= longestLine) {
            this.#offset += have;
            have = 0;
            this.#broken++;
            this.#brokenReason = 'the line is far too long to be ours';
          } else {
            const larger = Buffer.allocUnsafe(2 * buffer.length);
            buffer.copy(larger, 0, 0, have);
            buffer = larger;
          }
        }
        if (performance.now() - turn > turnMs) {
          this.#table.settle();
          await nextTurn();
          signal.throwIfAborted();
          turn = performance.now();
        }
      }
    } finally {
      closeSync(fd);
    }
  }

  #readEvents(): PageEvent[] {
    const path = runPaths(this.path).events;
    const size = sizeOf(path);
    if (size === this.#eventsEnd) return [];
    let part = size < this.#eventsEnd ? undefined : readEvents(this.path, this.#eventsEnd);
    // A resume writes the file anew: what was the middle of a line now is its beginning, or it names itself.
    const resumed = part?.items.some(({ type }) => type === 'resumed') ?? false;
    if (part === undefined || (this.#eventsEnd > 0 && (resumed || part.broken.length > 0))) {
      this.#generation++;
      this.#events.clear();
      this.#resumedAt = [];
      part = readEvents(this.path, 0);
    }
    this.#eventsEnd = part.end;
    const fresh = part.items.map(event => this.#events.add(pageEvent(event)));
    for (const event of part.items) {
      if (event.type !== 'resumed') continue;
      const from = typeof event.checkpoint === 'number' ? event.checkpoint : 0;
      this.#resumedAt.push(from);
    }
    return fresh.slice(-mostRows);
  }

  #refresh(): void {
    const table = this.#table;
    const { axes } = table;
    const last = (name: string): number | null => {
      const column = table.columns.get(name);
      const value = column?.at(column.lastBefore(axes.length));
      return value === undefined ? null : rounded(value);
    };
    const objective = objectives.find(name => table.columns.has(name));
    const lastKl = last('kl/step');
    this.#shown = {
      step: table.lastStep,
      stepsPerSecond: last('time/steps_per_second'),
      sparkline:
        objective === undefined ? [] : sparkline(table.columns.get(objective)!, axes.step, axes.length),
      lastReturn: objective === undefined ? null : last(objective),
      lastKl,
      klBand: lastKl === null ? null : klBand(lastKl).name,
    };
  }
}

const emptyShown = {
  step: 0,
  stepsPerSecond: null,
  sparkline: [],
  lastReturn: null,
  lastKl: null,
  klBand: null,
};
