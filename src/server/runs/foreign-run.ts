/** Another trainer's log, read by the doctor's readers whenever it changed. */
import { statSync } from 'node:fs';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import { signature } from '../../doctor/readers/find.ts';
import type { Series } from '../../doctor/series.ts';
import { isAtRest, klBand } from '../../metrics/registry.ts';
import type { EventsAnswer, Notes, PageEvent, RunState, RunSummary } from '../api.ts';
import type { Doctor } from '../doctor/client.ts';
import type { ForeignLog } from '../doctor/jobs.ts';
import { Column } from '../series/column.ts';
import { firstAt, rounded } from '../series/envelope.ts';
import { EventStore } from './events.ts';
import type { Setting } from './flatten.ts';
import { groupOf } from './group.ts';
import { idOf, nameUnder, type Root } from './places.ts';
import { oneLine, sparkline } from './reading.ts';
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

/** Nothing written for so long: the run has ended, or rests. */
const quietAfterMs = 120_000;
/** A log that takes long to read is read less often. */
const restFactor = 4;
const fewestMs = 400;

export class ForeignRun implements WatchedRun {
  readonly kind = 'foreign';
  readonly id: string;
  readonly path: string;
  state: RunState = 'quiet';
  loaded = false;
  updatedAt: number;
  generation = 0;
  rows = 0;
  diagnosis: Judgement = notJudged;
  readonly #root: Root;
  readonly #doctor: Doctor;
  #candidate: Candidate;
  #signature = '';
  #log: Omit<ForeignLog, 'series'> | undefined;
  #tracks = new Map<string, PlacedColumn>();
  #problem: string | null = null;
  #events = new EventStore();
  /** Its columns were forgotten to save memory: they are read again when asked for, or when there is more. */
  #resting = false;
  #everLoaded = false;
  #notBefore = 0;
  #lastX = Number.NEGATIVE_INFINITY;
  /** Where each series ended when it was last told of: they need not end together. */
  #ends: ReadonlyMap<string, number> = new Map();
  #restarts = 0;
  #group: string | null = null;
  /** Of its first and its last row, by the log's own clock. */
  #times: { readonly first: number; readonly last: number } | null = null;
  #startMs: number | undefined;
  #shown: Pick<
    RunSummary,
    'step' | 'sparkline' | 'lastReturn' | 'lastKl' | 'klBand' | 'klContract' | 'atRest'
  > = {
    step: 0,
    sparkline: [],
    lastReturn: null,
    lastKl: null,
    klBand: null,
    klContract: {},
    atRest: false,
  };

  constructor(candidate: Candidate, root: Root, doctor: Doctor) {
    this.id = idOf(candidate.path);
    this.path = candidate.path;
    this.#candidate = candidate;
    this.#root = root;
    this.#doctor = doctor;
    this.updatedAt = newest(candidate.files);
  }

  /** The same run as a later search found it: it may have more files. */
  set candidate(candidate: Candidate) {
    this.#candidate = candidate;
  }

  get cells(): number {
    let cells = 0;
    for (const { column } of this.#tracks.values()) cells += 4 * column.length;
    return cells;
  }

  look(now: number): 'same' | 'changed' | 'gone' {
    const before = this.state;
    const { files } = this.#candidate;
    const alive = files.some(file => statSync(file, { throwIfNoEntry: false }) !== undefined);
    if (!alive) return 'gone';
    const changed = signature(this.#candidate) !== this.#signature || (!this.loaded && !this.#resting);
    if (changed) this.updatedAt = Math.max(this.updatedAt, newest(files));
    this.state =
      this.#problem !== null && this.#tracks.size === 0
        ? 'unreadable'
        : now - this.updatedAt < quietAfterMs
          ? 'running'
          : 'quiet';
    if (changed) return now >= this.#notBefore ? 'changed' : 'same';
    return before === this.state ? 'same' : 'changed';
  }

  async read(_: AbortSignal): Promise<News> {
    const now = signature(this.#candidate);
    if (this.loaded && now === this.#signature) return noNews;
    const started = performance.now();
    try {
      const log = await this.#doctor.read(this.#candidate);
      this.#signature = now;
      return this.#take(log);
    } catch (error) {
      this.#signature = now;
      this.#problem = oneLine(error);
      if (this.#tracks.size === 0) this.state = 'unreadable';
      return noNews;
    } finally {
      this.loaded = true;
      this.#everLoaded = true;
      this.#resting = false;
      this.#notBefore = Date.now() + Math.max(fewestMs, restFactor * (performance.now() - started));
    }
  }

  summary(notes: Notes): RunSummary {
    const log = this.#log;
    const task = log?.task ?? null;
    const seed = log?.config.seed;
    return {
      id: this.id,
      name: nameUnder(this.path, this.#root),
      root: this.#root.shown,
      trainer: log?.trainer ?? 'unknown',
      state: this.state,
      reason: null,
      environment: task,
      algorithm: null,
      seed: typeof seed === 'number' ? seed : null,
      totalSteps: log?.totalSteps ?? null,
      startedAt: this.#times?.first ?? null,
      ...(this.#times === null ? {} : { lastRowAt: this.#times.last }),
      updatedAt: Math.round(this.updatedAt),
      stepsPerSecond: lastOf(this.#tracks.get('time/steps_per_second')),
      ...this.#shown,
      verdict: this.diagnosis.diagnosis?.verdict ?? null,
      rootCause: this.diagnosis.diagnosis?.rootCause ?? null,
      parent: null,
      parentId: null,
      parentStep: null,
      group: this.#group,
      notes,
      problem: this.#problem,
      generation: this.generation,
      loaded: this.#everLoaded,
      replaysAt: null,
      drawn: false,
      completionsAt: null,
      clusterAt: null,
    };
  }

  tracks(): ReadonlyMap<string, PlacedColumn> {
    return this.#tracks;
  }

  events(after: number): EventsAnswer {
    return this.#events.answer(after);
  }

  get config(): Readonly<Record<string, Setting>> {
    return this.#log?.config ?? {};
  }

  get logNotes(): readonly string[] {
    return this.#log?.notes ?? [];
  }

  get unit(): string {
    return this.#log?.unit ?? 'steps';
  }

  unload(): void {
    this.#tracks = new Map();
    this.loaded = false;
    this.#resting = true;
  }

  #take(log: ForeignLog): News {
    const { series, ...rest } = log;
    const [grownFrom, endsBefore] = [this.#lastX, this.#ends];
    const told = this.rows > 0;
    const tracks = new Map<string, PlacedColumn>();
    const ends = new Map<string, number>();
    const timeAt = this.#clockOf(series);
    let [rows, lastX] = [0, Number.NEGATIVE_INFINITY];
    for (const { id, theirs, series: points } of series) {
      if (points.length === 0) continue;
      tracks.set(id, trackOf(id, theirs, points, timeAt));
      rows = Math.max(rows, points.count);
      const end = points.x[points.length - 1];
      ends.set(id, end);
      lastX = Math.max(lastX, end);
    }
    const movedBack = [...ends].some(([id, end]) => end < (endsBefore.get(id) ?? Number.NEGATIVE_INFINITY));
    const rewound = told && (rows < this.rows || lastX < grownFrom || movedBack);
    this.#log = rest;
    this.#tracks = tracks;
    const [damage] = rest.damage;
    this.#problem =
      rest.error !== null
        ? `the log ends with an error: ${oneLine(rest.error)}`
        : damage !== undefined
          ? oneLine(damage)
          : null;
    const { seed } = rest.config;
    this.#group = groupOf({
      trainer: rest.trainer,
      environment: rest.task,
      seed: typeof seed === 'number' ? seed : null,
      beginning: null,
      settings: rest.config,
    });
    this.#times = endsOfTime(tracks);
    this.rows = rows;
    this.#lastX = lastX;
    this.#ends = ends;
    this.diagnosis = { diagnosis: rest.diagnosis, reason: rest.reason };
    if (rewound) this.generation++;
    const kl = tracks.get('kl/step');
    const lastKl = lastOf(kl);
    const banded = series.find(({ id }) => id === 'kl/step')?.banded === true;
    const objective = tracks.get(rest.objective ?? 'episode/return');
    this.#shown = {
      step: Number.isFinite(lastX) ? lastX : 0,
      sparkline:
        objective === undefined ? [] : sparkline(objective.column, objective.x('step')!, objective.length),
      lastReturn: lastOf(objective),
      lastKl,
      klBand: lastKl !== null && banded ? klBand(lastKl, rest.klContract).name : null,
      klContract: rest.klContract,
      atRest: isAtRest(lastOf(tracks.get('train/lr')), rest.learningRate),
    };
    const events = this.#noteRestarts(rest.restarts, rewound);
    const fresh = told && !rewound ? rowsAfter(tracks, endsBefore) : { rows: [], more: false };
    return { ...fresh, events: told && !rewound ? events : [], rewound };
  }

  /** Where no value has a time, the seconds since the start that some trainers log, as times in milliseconds. */
  #clockOf(series: ForeignLog['series']): TimeAt | undefined {
    if (series.some(({ series: { wallTime } }) => wallTime.some(time => !Number.isNaN(time))))
      return undefined;
    const elapsed = series.find(({ id }) => id === 'time/elapsed_s')?.series;
    if (elapsed === undefined || elapsed.length === 0) return undefined;
    const last = elapsed.values[elapsed.length - 1];
    // About when it started; found out once, so that times do not move while the log grows.
    this.#startMs ??= Math.round(newest(this.#candidate.files) - (Number.isFinite(last) ? 1000 * last : 0));
    return timesOf(elapsed, this.#startMs);
  }

  #noteRestarts(restarts: readonly number[], rewound: boolean): PageEvent[] {
    if (rewound || restarts.length < this.#restarts) {
      this.#events.clear();
      this.#restarts = 0;
    }
    const fresh = restarts.slice(this.#restarts).map(step =>
      this.#events.add({
        type: 'resumed',
        step,
        iteration: null,
        time: null,
        message: 'the log was taken up again here',
      }),
    );
    this.#restarts = restarts.length;
    return fresh;
  }
}

type TimeAt = (x: number) => number;

/** The time at any place: that of the newest known one up to it. Whole seconds are kept apart by a millisecond a row. */
function timesOf({ length, x, values }: Series, startMs: number): TimeAt {
  const times = new Float64Array(length);
  let [before, offset, last] = [0, 0, startMs - 1];
  for (let i = 0; i < length; i++) {
    const seconds = values[i];
    if (Number.isFinite(seconds)) {
      if (seconds < before) offset += before; // taken up again: its clock began anew
      before = seconds;
    }
    last = Math.max(last + 1, startMs + 1000 * (offset + before));
    times[i] = last;
  }
  return at => times[Math.max(0, firstAt(x, length, at, true) - 1)];
}

function trackOf(id: string, theirs: string, points: Series, timeAt: TimeAt | undefined): PlacedColumn {
  const { length, count, x, values, min, max, broken, wallTime } = points;
  // Merged points all stand for as many values, but for the last.
  const merged = count > length;
  let column: Column;
  if (merged) {
    const each = 2 ** Math.ceil(Math.log2(count / length));
    const counts = new Uint32Array(length).fill(each);
    counts[length - 1] = Math.max(1, count - each * (length - 1));
    for (let i = 0; i < length; i++) counts[i] = Math.max(counts[i], broken[i]);
    const [low, high, sum] = [new Float64Array(length), new Float64Array(length), new Float64Array(length)];
    for (let i = 0; i < length; i++) {
      const finite = Number.isFinite(values[i]);
      low[i] = finite ? min[i] : Number.POSITIVE_INFINITY;
      high[i] = finite ? max[i] : Number.NEGATIVE_INFINITY;
      if (!finite) counts[i] = broken[i];
      sum[i] = finite ? values[i] * (counts[i] - broken[i]) : 0;
    }
    column = Column.from({ length, values, counts, min: low, max: high, sum, broken });
  } else column = Column.from({ length, values });
  const info = infoOf(id, theirs, count, values[length - 1]);
  const iteration = Float64Array.from({ length }, (_, i) => ((i + 1) * count) / length);
  const time = timeAt === undefined ? ascending(wallTime) : Float64Array.from(x.subarray(0, length), timeAt);
  return {
    info,
    column,
    length,
    x: axis => (axis === 'step' ? x : axis === 'iteration' ? iteration : time),
  };
}

/** Seconds as milliseconds that never go back; undefined if none is known. */
function ascending(seconds: Float64Array): Float64Array | undefined {
  const out = new Float64Array(seconds.length);
  let last = Number.NaN;
  for (let i = 0; i < seconds.length; i++) {
    const ms = seconds[i] * 1000;
    if (!(ms <= last) && !Number.isNaN(ms)) last = ms;
    out[i] = last;
  }
  return Number.isNaN(last) ? undefined : out;
}

const lastOf = (track: PlacedColumn | undefined): number | null =>
  track?.info.last === undefined || track.info.last === null ? null : rounded(track.info.last);

/**
 * The points beyond where each series ended, as rows, the newest few. Points at one place are one row only if they agree
 * on all axes, so that every series has its points where a fresh read would put them.
 */
function rowsAfter(
  tracks: ReadonlyMap<string, PlacedColumn>,
  ends: ReadonlyMap<string, number>,
): { readonly rows: Row[]; readonly more: boolean } {
  const rows = new Map<string, { readonly at: number; readonly row: Record<string, number | null> }>();
  for (const [id, { column, length, x }] of tracks) {
    const [xs, iterations, times] = [x('step')!, x('iteration')!, x('time')];
    const after = ends.get(id) ?? Number.NEGATIVE_INFINITY;
    for (let i = length - 1, left = mostRows; i >= 0 && left > 0 && xs[i] > after; i--, left--) {
      const [at, iteration, ms] = [xs[i], iterations[i], times?.[i] ?? Number.NaN];
      const key = `${at} ${iteration} ${ms}`;
      let entry = rows.get(key);
      if (entry === undefined) {
        entry = { at, row: { 'train/step': at, 'train/iteration': iteration } };
        if (!Number.isNaN(ms)) entry.row['time/unix_s'] = ms / 1000;
        rows.set(key, entry);
      }
      const value = column.at(i);
      if (value !== undefined) entry.row[id] = Number.isFinite(value) ? value : null;
    }
  }
  const ordered = [...rows.values()].sort((a, b) => a.at - b.at).map(({ row }) => row);
  return { rows: ordered.slice(-mostRows), more: ordered.length >= mostRows };
}

function newest(files: readonly string[]): number {
  let time = 0;
  for (const file of files) time = Math.max(time, statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return time;
}

/** When the first and the last value were written, as far as the log tells. */
function endsOfTime(tracks: ReadonlyMap<string, PlacedColumn>): { first: number; last: number } | null {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { x, length } of tracks.values()) {
    const times = length === 0 ? undefined : x('time');
    const at = times?.findIndex(time => !Number.isNaN(time)) ?? -1;
    if (at < 0) continue;
    first = Math.min(first, times![at]);
    let end = length - 1;
    while (end > at && Number.isNaN(times![end])) end--;
    last = Math.max(last, times![end]);
  }
  return Number.isFinite(first) ? { first: Math.round(first), last: Math.round(last) } : null;
}
