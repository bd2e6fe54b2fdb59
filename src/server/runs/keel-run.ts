/** A run of Keel as it grows: its manifest, its rows into columns, its events; never read twice. */
import { existsSync, statSync } from 'node:fs';
import { readNames } from '../../base/directories.ts';
import { objectives } from '../../metrics/objectives.ts';
import { contractOf, isAtRest, klBand } from '../../metrics/registry.ts';
import { type Adjustment, adjustedAt, adjustmentsPath, readAdjustments } from '../../runs/inbox.ts';
import { runPaths } from '../../runs/layout.ts';
import { remainsOfRun } from '../../runs/looks-like-run.ts';
import { readManifest } from '../../runs/manifest.ts';
import { isDrawn } from '../../runs/replays.ts';
import type { Manifest } from '../../runs/schema.ts';
import { statusOf } from '../../runs/store.ts';
import type { EventsAnswer, Notes, RunState, RunSummary } from '../api.ts';
import { rounded } from '../series/envelope.ts';
import { defaultMaxCells, type Table } from '../series/table.ts';
import { EventsFile } from './events-file.ts';
import { flatten } from './flatten.ts';
import { groupOf } from './group.ts';
import { MetricsFile } from './metrics-file.ts';
import { idOf, nameUnder, type Root } from './places.ts';
import { numberOf, oneLine, sparkline, stamp } from './reading.ts';
import {
  infoOf,
  type Judgement,
  mostRows,
  type News,
  noNews,
  notJudged,
  type PlacedColumn,
  type Row,
  type WatchedRun,
} from './run.ts';

/** How often a run that says it is running is asked whether its process lives. */
const statusEveryMs = 2000;

export interface KeelRunOptions {
  readonly maxCells?: number | undefined;
}

interface Seen {
  readonly metrics: string;
  readonly events: string;
  readonly manifest: string;
  readonly adjustments: string;
  readonly replays: string;
  readonly completions: string;
  readonly cluster: string;
}

export class KeelRun implements WatchedRun {
  readonly kind = 'keel';
  readonly id: string;
  readonly path: string;
  state: RunState = 'stopped';
  loaded = false;
  updatedAt = 0;
  generation = 0;
  diagnosis: Judgement = notJudged;
  readonly #root: Root;
  readonly #metrics: MetricsFile;
  readonly #events: EventsFile;
  #manifest: Manifest | undefined;
  #changes: readonly Adjustment[] = [];
  #problem: string | null = null;
  #replaysAt: number | null = null;
  #drawn = false;
  readonly #changedAt: { completions: number | null; cluster: number | null } = {
    completions: null,
    cluster: null,
  };
  #statusAt = Number.NEGATIVE_INFINITY;
  #seen: Seen | undefined;
  /** Its columns were forgotten to save memory: they are read again when asked for, or when there is more. */
  #resting = false;
  #everLoaded = false;
  /** What the overview shows, kept when the columns are forgotten. */
  #shown: Pick<RunSummary, 'step' | 'stepsPerSecond' | 'sparkline' | 'lastReturn' | 'lastKl'> & {
    readonly lastRate: number | null;
    readonly lastLeft: number | null;
  } = emptyShown;
  #rowsShown = 0;
  #groupKept: { readonly key: string | null } | undefined;

  constructor(path: string, root: Root, { maxCells = defaultMaxCells }: KeelRunOptions = {}) {
    this.id = idOf(path);
    this.path = path;
    this.#root = root;
    this.#metrics = new MetricsFile(runPaths(path).metrics, maxCells);
    this.#events = new EventsFile(path);
    this.#readManifest();
  }

  get manifest(): Manifest | undefined {
    return this.#manifest;
  }

  /** Of its settings, which seldom change, so it is not made anew for each summary. */
  get #group(): string | null {
    this.#groupKept ??= { key: this.#groupNow() };
    return this.#groupKept.key;
  }

  #groupNow(): string | null {
    const manifest = this.#manifest;
    if (manifest === undefined) return null;
    const { algorithm, environment, seed, parent, beginning } = manifest;
    return groupOf({
      trainer: `keel ${algorithm}`,
      environment: environment.id,
      seed,
      beginning: [parent, beginning?.path, beginning?.step],
      settings: flatten({ ...this.settings, environment }),
    });
  }

  get rows(): number {
    return this.loaded ? this.table.total : Math.max(this.#rowsShown, this.table.total);
  }

  get cells(): number {
    return this.table.cells;
  }

  get table(): Table {
    return this.#metrics.table;
  }

  /** Steps at which a resume went on, for the doctor. */
  get resumedAt(): readonly number[] {
    return this.#events.resumedAt;
  }

  look(now: number): 'same' | 'changed' | 'gone' {
    const { metrics, events, manifest, replays, completions, cluster } = runPaths(this.path);
    const seen = {
      metrics: stamp(metrics),
      events: stamp(events),
      manifest: stamp(manifest),
      adjustments: stamp(adjustmentsPath(this.path)),
      replays: stamp(replays),
      completions: stamp(completions),
      cluster: stamp(cluster),
    };
    if (seen.manifest === '' && !remainsOfRun(this.path)) return 'gone';
    let changed = !this.loaded && !this.#resting;
    if (seen.manifest !== this.#seen?.manifest) {
      this.#readManifest();
      this.#statusAt = Number.NEGATIVE_INFINITY;
      changed = true;
    }
    if (seen.adjustments !== (this.#seen?.adjustments ?? '')) {
      this.#readAdjustments();
      changed = true;
    }
    for (const [name, path] of [
      ['completions', completions],
      ['cluster', cluster],
    ] as const) {
      if (seen[name] === (this.#seen?.[name] ?? '')) continue;
      this.#changedAt[name] = seen[name] === '' ? null : changedAt(path);
      changed = true;
    }
    if (seen.replays !== (this.#seen?.replays ?? '')) {
      this.#replaysAt = lastChangeOf(replays);
      this.#drawn = isDrawn(this.path);
      changed = true;
    }
    if (now - this.#statusAt >= statusEveryMs && this.#manifest !== undefined) {
      this.#statusAt = now;
      const before = this.state;
      try {
        this.state = statusOf(this.path, this.#manifest);
      } catch {
        // The lock was just released or the directory is going: the next look tells.
      }
      if (before !== this.state) changed = true;
    }
    if (seen.metrics !== this.#seen?.metrics || seen.events !== this.#seen?.events) changed = true;
    this.#seen = seen;
    return changed ? 'changed' : 'same';
  }

  async read(signal: AbortSignal): Promise<News> {
    if (this.#manifest === undefined) {
      this.loaded = true;
      return noNews;
    }
    try {
      const before = this.generation;
      const tell = this.loaded;
      const rows: Row[] = [];
      let count = 0;
      if (this.#metrics.rewindIfCut()) this.generation++;
      await this.#metrics.read(signal, () => {
        if (!tell) return;
        count++;
        rows.push(this.#metrics.lastRow());
        if (rows.length > 2 * mostRows) rows.splice(0, rows.length - mostRows);
      });
      this.table.settle();
      this.updatedAt = Math.max(this.updatedAt, this.#metrics.modifiedAt);
      const { fresh: events, rewritten } = this.#events.read();
      if (rewritten) this.generation++;
      this.loaded = true;
      this.#everLoaded = true;
      this.#resting = false;
      this.#refresh();
      const rewound = this.generation !== before;
      const told = rows.slice(-mostRows);
      return { rows: told, more: count > told.length, events: tell && !rewound ? events : [], rewound };
    } catch (error) {
      if (signal.aborted) return noNews;
      this.#problem = `its log cannot be read: ${oneLine(error)}`;
      this.loaded = true;
      return noNews;
    }
  }

  summary(notes: Notes): RunSummary {
    const manifest = this.#manifest;
    const settings = this.settings;
    const { lastRate, lastLeft, ...shown } = this.#shown;
    const klContract = contractOf(settings);
    return {
      id: this.id,
      name: nameUnder(this.path, this.#root),
      root: this.#root.shown,
      trainer: 'keel',
      state: manifest === undefined ? 'unreadable' : this.state,
      reason: manifest?.reason ?? null,
      environment: manifest?.environment.id ?? null,
      algorithm: manifest?.algorithm ?? null,
      seed: manifest?.seed ?? null,
      totalSteps: numberOf(manifest?.config.steps),
      startedAt: manifest === undefined ? null : Date.parse(manifest.startedAt),
      updatedAt: Math.round(this.updatedAt),
      ...shown,
      klBand: shown.lastKl === null ? null : klBand(shown.lastKl, klContract).name,
      klContract,
      atRest: isAtRest(lastRate, numberOf(settings.learningRate), lastLeft),
      step: Math.max(this.#shown.step, this.#everLoaded ? 0 : (manifest?.step ?? 0)),
      verdict: this.diagnosis.diagnosis?.verdict ?? null,
      rootCause: this.diagnosis.diagnosis?.rootCause ?? null,
      parent: manifest?.parent?.id ?? null,
      parentId: null,
      parentStep: manifest?.parent?.step ?? null,
      group: this.#group,
      notes,
      problem: this.#problem ?? this.#metrics.brokenNote,
      generation: this.generation,
      loaded: this.#everLoaded || this.loaded,
      replaysAt: this.#replaysAt,
      drawn: this.#drawn,
      completionsAt: this.#changedAt.completions,
      clusterAt: this.#changedAt.cluster,
    };
  }

  tracks(): ReadonlyMap<string, PlacedColumn> {
    const { axes } = this.table;
    const x: PlacedColumn['x'] = axis => axes[axis];
    const tracks = new Map<string, PlacedColumn>();
    for (const [name, column] of this.table.columns) {
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
    return this.settingsAt(Number.POSITIVE_INFINITY);
  }

  /** The settings as they were at an iteration, which is where a new run from its checkpoint begins. */
  settingsAt(iteration: number): Readonly<Record<string, unknown>> {
    return { ...this.#manifest?.config, ...adjustedAt(this.#changes, iteration) };
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

  get logNotes(): readonly string[] {
    const notes: string[] = [];
    const broken = this.#metrics.brokenNote;
    if (broken !== null) notes.push(broken);
    const manifest = this.#manifest;
    if (manifest?.reason) notes.push(`${manifest.status}: ${manifest.reason}`);
    if ((manifest?.resumes ?? 0) > 0)
      notes.push(`resumed ${manifest!.resumes === 1 ? 'once' : `${manifest!.resumes} times`}`);
    if (this.table.isMerged) {
      notes.push(
        `${this.table.total} rows: neighbours are merged for the plots, keeping mean, smallest and largest`,
      );
    }
    return notes;
  }

  readonly unit = 'steps';

  unload(): void {
    this.#rowsShown = this.table.total;
    this.#metrics.clear();
    this.loaded = false;
    this.#resting = true;
  }

  #readManifest(): void {
    this.#groupKept = undefined;
    try {
      this.#manifest = readManifest(this.path);
      this.#problem = null;
      this.updatedAt = Math.max(this.updatedAt, Date.parse(this.#manifest.updatedAt));
      if (this.#manifest.status !== 'running') this.state = this.#manifest.status;
    } catch (error) {
      this.#manifest = undefined;
      this.state = 'unreadable';
      this.#problem = existsSync(runPaths(this.path).manifest)
        ? `its ${oneLine(error).replace(runPaths(this.path).manifest, 'manifest.json')}`
        : 'its manifest.json is missing, which says what the run is: put a copy of it back, or delete the directory';
      if (this.updatedAt === 0) this.updatedAt = changedAt(this.path) ?? 0;
    }
  }

  #readAdjustments(): void {
    this.#groupKept = undefined;
    try {
      this.#changes = readAdjustments(this.path);
    } catch {
      this.#changes = []; // half written or damaged: a resume says so
    }
  }

  #refresh(): void {
    const table = this.table;
    const { axes } = table;
    const last = (name: string): number | null => {
      const column = table.columns.get(name);
      const value = column?.at(column.lastBefore(axes.length));
      return value === undefined ? null : rounded(value);
    };
    const objective = objectives.find(name => table.columns.has(name));
    this.#shown = {
      step: table.lastStep,
      stepsPerSecond: last('time/steps_per_second'),
      sparkline:
        objective === undefined ? [] : sparkline(table.columns.get(objective)!, axes.step, axes.length),
      lastReturn: objective === undefined ? null : last(objective),
      lastKl: last('kl/step'),
      lastRate: last('train/lr'),
      lastLeft: last('guard/rate'),
    };
  }
}

/** When a file last changed; null if it is gone. */
function changedAt(path: string): number | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : Math.round(found.mtimeMs);
}

/** When something in a directory of replays last changed; null if there is no replay in it. */
function lastChangeOf(directory: string): number | null {
  try {
    const any = readNames(directory).some(name => name.endsWith('.replay'));
    return any ? Math.round(statSync(directory).mtimeMs) : null;
  } catch {
    return null; // gone, or not a directory
  }
}

const emptyShown = {
  step: 0,
  stepsPerSecond: null,
  sparkline: [],
  lastReturn: null,
  lastKl: null,
  lastRate: null,
  lastLeft: null,
};
