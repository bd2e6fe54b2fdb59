/**
 * All runs under the roots, as they come, grow and go. Twice a second (four times for those that grow) every run's files
 * are asked for size and time, which is all that two hundred quiet runs cost; what changed is read a portion at a time,
 * so that requests are answered in between.
 */
import { basename, dirname, join } from 'node:path';
import type { Alerts } from '../alerts.ts';
import type { RunList, RunSummary } from '../api.ts';
import type { Doctor } from '../doctor/client.ts';
import type { Hub } from '../stream.ts';
import { createFinder } from './finder.ts';
import { createJudging, type Judged, neverJudged } from './judging.ts';
import { type NotesStore, noNotes } from './notes.ts';
import { idOf, isInside, type Root, staysInside } from './places.ts';
import type { WatchedRun } from './run.ts';

export interface RunIndexOptions {
  readonly roots: readonly Root[];
  readonly hub: Hub;
  readonly doctor: Doctor;
  readonly notes: NotesStore;
  readonly alerts?: Alerts | undefined;
  /** Between two looks at runs that grow. Default 250. */
  readonly pollMs?: number | undefined;
  /** Whether other trainers' logs are looked for. Default true. */
  readonly foreign?: boolean | undefined;
  /** Numbers held in memory over all runs, and of one run. */
  readonly maxCells?: number | undefined;
  /** Further directories of runs: those of studies. */
  readonly places?: (() => readonly { readonly path: string; readonly root: Root }[]) | undefined;
  readonly onProblem?: ((sentence: string) => void) | undefined;
}

export interface RunIndex {
  /** Looks for the first time; the list is complete when it settles, though not yet read. */
  start(): Promise<void>;
  /** Whether the first search for runs and logs is over, waiting for it for some time. */
  searched(waitMs: number): Promise<boolean>;
  list(): RunList;
  get(id: string): WatchedRun | undefined;
  all(): Iterable<WatchedRun>;
  /** A run with its series in memory, or as far as they are after a moment. */
  load(id: string): Promise<WatchedRun | undefined>;
  summary(run: WatchedRun): RunSummary;
  /** Tells everyone of a run that changed by other means, such as a note. */
  touch(run: WatchedRun): void;
  /** Looks for new runs now. */
  refresh(): Promise<void>;
  /** Whether files stay in the roots, all links followed. */
  mayRead(paths: readonly string[]): boolean;
  readonly roots: readonly Root[];
  close(): Promise<void>;
}

const defaultTotalCells = 2 ** 27;
/** Changed within this time: looked at more often. */
const liveMs = 30_000;
const quietPollMs = 1000;
const summaryMs = 500;
const mostLoading = 3;
/** How long a request waits for a run that is still being read; then it gets what there is. */
const patienceMs = 1000;

interface Entry {
  readonly run: WatchedRun;
  reading: Promise<void> | undefined;
  lookAt: number;
  changedAt: number;
  usedAt: number;
  toldAt: number;
  /** Whether the list that everyone has is older than this run. */
  dirty: boolean;
  readonly judged: Judged;
}

/** Whether something is done, waiting for it no longer than some time. */
async function within(work: Promise<void> | undefined, ms: number): Promise<boolean> {
  let timeout: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>(done => {
    timeout = setTimeout(() => done(false), ms);
  });
  try {
    return await Promise.race([Promise.resolve(work).then(() => true), late]);
  } finally {
    clearTimeout(timeout);
  }
}

export function createRunIndex(options: RunIndexOptions): RunIndex {
  const { roots, hub, doctor, notes, alerts, pollMs = 250, foreign = true } = options;
  const totalCells = options.maxCells ?? defaultTotalCells;
  const entries = new Map<string, Entry>();
  const stop = new AbortController();
  let version = 0;
  let loading = 0;
  let queue: Entry[] = [];
  let timer: NodeJS.Timeout | undefined;
  let firstSearch: Promise<void> | undefined;

  /** Ids of runs by the name of their directory, which is what a run says of its parent. */
  const named = new Map<string, Set<string>>();

  const summary = (run: WatchedRun): RunSummary => {
    let kept = noNotes;
    try {
      kept = notes.get(run);
    } catch {
      // Without them.
    }
    const said = run.summary(kept);
    const parent = said.parent ?? kept.insteadOf ?? null;
    return parent === null ? said : { ...said, parent, parentId: parentOf(run, parent) };
  };

  /** The run of that name: beside this one, or anywhere here. */
  function parentOf(run: WatchedRun, name: string): string | null {
    const beside = idOf(join(dirname(run.path), name));
    if (entries.has(beside)) return beside;
    const [first = null] = named.get(name) ?? [];
    return first;
  }

  function add(run: WatchedRun): void {
    const changedAt = Date.now();
    const name = basename(run.path);
    named.set(name, (named.get(name) ?? new Set()).add(run.id));
    entries.set(run.id, {
      run,
      reading: undefined,
      lookAt: 0,
      changedAt,
      usedAt: 0,
      toldAt: 0,
      dirty: true,
      judged: neverJudged(),
    });
    version++;
  }

  function remove(entry: Entry): void {
    entries.delete(entry.run.id);
    named.get(basename(entry.run.path))?.delete(entry.run.id);
    version++;
    hub.publish({ type: 'runs', changed: [], removed: [entry.run.id] });
  }

  const { signal } = stop;
  const finder = createFinder({
    roots,
    doctor,
    foreign,
    maxCells: Math.min(2 ** 26, totalCells),
    known: id => entries.get(id)?.run,
    places: options.places,
    add,
    signal,
    onProblem: options.onProblem,
  });
  const judging = createJudging({
    hub,
    doctor,
    alerts,
    nameOf: run => summary(run).name,
    onChange: run => {
      const entry = entries.get(run.id);
      if (entry !== undefined) entry.dirty = true;
    },
    signal,
  });

  // ---- reading ------------------------------------------------------------------------------------------------

  function read(entry: Entry): Promise<void> {
    entry.reading ??= readNow(entry).finally(() => {
      entry.reading = undefined;
    });
    return entry.reading;
  }

  /** Whole logs are read a few at a time, those that were written to last before the others. */
  function readFirst(unread: readonly Entry[]): void {
    queue = [...unread].sort((a, b) => a.run.updatedAt - b.run.updatedAt);
    readNext();
  }

  function readNext(): void {
    while (loading < mostLoading) {
      const entry = queue.pop();
      if (entry === undefined) return;
      if (entry.run.loaded || entry.reading !== undefined || entries.get(entry.run.id) !== entry) continue;
      loading++;
      void read(entry).finally(() => {
        loading--;
        readNext();
      });
    }
  }

  async function readNow(entry: Entry): Promise<void> {
    const { run } = entry;
    const news = await run.read(stop.signal);
    if (stop.signal.aborted || entries.get(run.id) !== entry) return;
    entry.dirty = true;
    if (news.rewound) {
      entry.judged.rows = 0;
      tell([entry]); // before anything of the new beginning
    }
    if (news.rows.length > 0) {
      const { 'train/step': step } = news.rows.at(-1)!;
      hub.publish({
        type: 'rows',
        run: run.id,
        generation: run.generation,
        step: step ?? 0,
        total: run.rows,
        more: news.more,
        rows: news.rows,
      });
    }
    if (news.events.length > 0) hub.publish({ type: 'events', run: run.id, events: news.events });
    if (run.kind === 'foreign') judging.tellJudgement(run, entry.judged);
    unloadOthers(entry);
  }

  /** Forgets the columns of runs that nobody looked at for longest. */
  function unloadOthers(keep: Entry): void {
    let cells = 0;
    for (const { run } of entries.values()) cells += run.cells;
    if (cells <= totalCells) return;
    const others = [...entries.values()]
      .filter(entry => entry !== keep && entry.run.loaded && !entry.reading && entry.run.cells > 0)
      .sort((a, b) => Math.max(a.usedAt, a.changedAt) - Math.max(b.usedAt, b.changedAt));
    for (const entry of others) {
      if (cells <= totalCells) return;
      cells -= entry.run.cells;
      entry.run.unload();
    }
  }

  // ---- telling ------------------------------------------------------------------------------------------------

  function tell(which: readonly Entry[]): void {
    if (which.length === 0) return;
    const now = Date.now();
    for (const entry of which) {
      entry.dirty = false;
      entry.toldAt = now;
    }
    version++;
    for (let i = 0; i < which.length; i += 50) {
      const changed = which.slice(i, i + 50).map(({ run }) => summary(run));
      hub.publish({ type: 'runs', changed, removed: [] });
    }
  }

  function tick(): void {
    const now = Date.now();
    const unread: Entry[] = [];
    finder.scan(now);
    for (const entry of entries.values()) {
      if (now < entry.lookAt) continue;
      let found: ReturnType<WatchedRun['look']>;
      try {
        found = entry.run.look(now);
      } catch {
        found = 'same';
      }
      if (found === 'gone' || !isStillHere(entry, now)) {
        remove(entry);
        continue;
      }
      if (found === 'changed') {
        entry.changedAt = now;
        if (entry.run.loaded) void read(entry);
        else if (entry.reading === undefined) unread.push(entry);
      }
      const live = entry.run.state === 'running' && now - entry.changedAt < liveMs;
      entry.lookAt = now + (live || !entry.run.loaded ? 0 : quietPollMs) - 5;
      judging.judgeIfDue(entry.run, entry.judged, now);
    }
    readFirst(unread);
    tell([...entries.values()].filter(entry => entry.dirty && now - entry.toldAt >= summaryMs));
    const spent = Date.now() - now;
    if (!stop.signal.aborted) {
      timer = setTimeout(tick, Math.max(pollMs, 5 * spent));
      timer.unref();
    }
  }

  /** A directory may be replaced by a link to elsewhere; asked now and then, because it costs more than a look. */
  const checkedAt = new WeakMap<Entry, number>();
  function isStillHere(entry: Entry, now: number): boolean {
    if (now - (checkedAt.get(entry) ?? 0) < 10_000) return true;
    checkedAt.set(entry, now);
    return isInside(entry.run.path, roots);
  }

  return {
    roots,
    async start() {
      tick(); // which begins to look
      firstSearch = finder.searching;
      await within(firstSearch, patienceMs);
    },
    searched: waitMs => within(firstSearch, waitMs),
    list() {
      const runs = [...entries.values()].map(({ run }) => summary(run));
      return {
        runs: runs.sort((a, b) => (b.startedAt ?? b.updatedAt) - (a.startedAt ?? a.updatedAt)),
        version,
      };
    },
    get: id => entries.get(id)?.run,
    *all() {
      for (const { run } of entries.values()) yield run;
    },
    async load(id) {
      const entry = entries.get(id);
      if (entry === undefined) return undefined;
      entry.usedAt = Date.now();
      if (!entry.run.loaded) {
        await within(read(entry), patienceMs);
      }
      return entry.run;
    },
    summary,
    touch(run) {
      const entry = entries.get(run.id);
      if (entry !== undefined) tell([entry]);
    },
    async refresh() {
      finder.scanKeel();
      for (const entry of entries.values()) entry.lookAt = 0;
    },
    mayRead: paths => staysInside(paths, roots),
    async close() {
      stop.abort();
      clearTimeout(timer);
      await Promise.allSettled([...entries.values()].map(({ reading }) => reading));
    },
  };
}
