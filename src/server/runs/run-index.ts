/**
 * All runs under the roots, as they come, grow and go. Twice a second (four times for those that grow) every run's files
 * are asked for size and time, which is all that two hundred quiet runs cost; what changed is read a portion at a time,
 * so that requests are answered in between.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Verdict } from '../../doctor/findings.ts';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import { isRunId, runPaths } from '../../runs/layout.ts';
import { looksLikeRun } from '../../runs/manifest.ts';
import { type Alerts, changeOf } from '../alerts.ts';
import type { RunList, RunSummary } from '../api.ts';
import type { Doctor } from '../doctor/client.ts';
import { judgedRun } from '../doctor/judged-run.ts';
import type { Hub } from '../stream.ts';
import { ForeignRun } from './foreign-run.ts';
import { KeelRun } from './keel-run.ts';
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
  readonly onProblem?: ((sentence: string) => void) | undefined;
}

export interface RunIndex {
  /** Looks for the first time; the list is complete when it settles, though not yet read. */
  start(): Promise<void>;
  list(): RunList;
  get(id: string): WatchedRun | undefined;
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
const scanMs = 1000;
const foreignScanMs = 4000;
const summaryMs = 500;
const judgeMs = 5000;
const judgeSoonMs = 1000;
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
  judgedRows: number;
  judgedAt: number;
  judgedState: string;
  judging: boolean;
  verdict: Verdict | null;
}

export function createRunIndex(options: RunIndexOptions): RunIndex {
  const { roots, hub, doctor, notes, alerts, pollMs = 250, foreign = true } = options;
  const totalCells = options.maxCells ?? defaultTotalCells;
  const perRun = Math.min(2 ** 26, totalCells);
  const entries = new Map<string, Entry>();
  const stop = new AbortController();
  let version = 0;
  let loading = 0;
  let queue: Entry[] = [];
  let timer: NodeJS.Timeout | undefined;
  let scannedAt = Number.NEGATIVE_INFINITY;
  let foreignAt = Number.NEGATIVE_INFINITY;
  let scanning: Promise<void> | undefined;

  const summary = (run: WatchedRun): RunSummary => {
    try {
      return run.summary(notes.get(run));
    } catch {
      return run.summary(noNotes);
    }
  };

  function add(run: WatchedRun): void {
    const changedAt = Date.now();
    entries.set(run.id, {
      run,
      reading: undefined,
      lookAt: 0,
      changedAt,
      usedAt: 0,
      toldAt: 0,
      dirty: true,
      judgedRows: 0,
      judgedAt: Number.NEGATIVE_INFINITY,
      judgedState: '',
      judging: false,
      verdict: null,
    });
    version++;
  }

  function remove(entry: Entry): void {
    entries.delete(entry.run.id);
    version++;
    hub.publish({ type: 'runs', changed: [], removed: [entry.run.id] });
  }

  // ---- finding ------------------------------------------------------------------------------------------------

  /** Runs of Keel that are a root, or directly in one. */
  function scanKeel(): void {
    for (const root of roots) {
      const places = new Map<string, string>();
      if (statSync(root.path, { throwIfNoEntry: false })?.isDirectory() !== true) continue;
      if (existsSync(runPaths(root.path).manifest)) places.set(root.path, root.path);
      else {
        let names: string[];
        try {
          names = readdirSync(root.path);
        } catch {
          continue;
        }
        for (const name of names) {
          if (!isRunId(name)) continue;
          const path = join(root.path, name);
          if (!entries.has(idOf(path)) && existsSync(runPaths(path).manifest)) places.set(path, path);
        }
      }
      for (const path of places.keys()) addKeel(path, root);
    }
  }

  function addKeel(path: string, root: Root): void {
    if (entries.has(idOf(path)) || !looksLikeRun(path)) return;
    const { manifest, metrics, events, checkpoints } = runPaths(path);
    if (!staysInside([path, manifest, metrics, events, checkpoints], roots)) return;
    add(new KeelRun(path, root, { maxCells: perRun }));
  }

  async function scanForeign(): Promise<void> {
    for (const root of roots) {
      if (statSync(root.path, { throwIfNoEntry: false }) === undefined) continue;
      const { candidates } = await doctor.find([root.path]);
      if (stop.signal.aborted) return;
      for (const candidate of candidates) take(candidate, root);
    }
  }

  function take(candidate: Candidate, root: Root): void {
    const path = resolve(candidate.path);
    if (candidate.format === 'keel') {
      addKeel(path, root);
      return;
    }
    const known = entries.get(idOf(path))?.run;
    if (!staysInside([path, ...candidate.files], roots)) return;
    if (known instanceof ForeignRun) known.candidate = candidate;
    else if (known === undefined) add(new ForeignRun({ ...candidate, path }, root, doctor));
  }

  function scan(now: number): void {
    if (now - scannedAt >= scanMs) {
      scannedAt = now;
      scanKeel();
    }
    if (foreign && scanning === undefined && now - foreignAt >= foreignScanMs) {
      const started = performance.now();
      scanning = scanForeign()
        .catch(error => {
          if (!stop.signal.aborted) options.onProblem?.(`looking for logs: ${(error as Error).message}`);
        })
        .finally(() => {
          scanning = undefined;
          // A tree that takes long to search is searched less often.
          foreignAt = Date.now() + 20 * (performance.now() - started);
        });
    }
  }

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
      entry.judgedRows = 0;
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
    if (run.kind === 'foreign') verdictOf(entry, true);
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

  // ---- judging ------------------------------------------------------------------------------------------------

  function verdictOf(entry: Entry, isNew: boolean): void {
    const { diagnosis } = entry.run.diagnosis;
    if (diagnosis === null) return;
    const before = entry.verdict;
    if (before === diagnosis.verdict && !isNew) return;
    const live = entry.run.state === 'running';
    const changed = before !== diagnosis.verdict;
    entry.verdict = diagnosis.verdict;
    entry.dirty = true;
    if (!changed) return;
    hub.publish({
      type: 'diagnosis',
      run: entry.run.id,
      verdict: diagnosis.verdict,
      rootCause: diagnosis.rootCause,
    });
    // What was over before the server came is no news; nor is it that a run begins well.
    if (live && !(before === null && diagnosis.verdict === 'healthy'))
      alerts?.tell(changeOf(summary(entry.run).name, entry.run.path, before, diagnosis));
  }

  function judgeIfDue(entry: Entry, now: number): void {
    const { run } = entry;
    if (!(run instanceof KeelRun) || entry.judging || !run.loaded || run.rows === 0) return;
    const state = run.state;
    if (run.rows === entry.judgedRows && state === entry.judgedState) return;
    const since = now - entry.judgedAt;
    const grew = run.rows > entry.judgedRows * 1.05 || run.rows < entry.judgedRows;
    if (since < (grew || state !== entry.judgedState ? judgeSoonMs : judgeMs)) return;
    entry.judging = true;
    entry.judgedAt = now;
    entry.judgedRows = run.rows;
    entry.judgedState = state;
    const job = judgedRun(run);
    if (job === undefined) {
      entry.judging = false;
      return;
    }
    doctor
      .judge(job)
      .then(judgement => {
        run.setDiagnosis(judgement);
        verdictOf(entry, false);
        entry.dirty = true;
      })
      .catch(error => {
        if (stop.signal.aborted) return;
        run.setDiagnosis({ diagnosis: null, reason: `it could not be judged: ${(error as Error).message}` });
      })
      .finally(() => {
        entry.judging = false;
      });
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
    scan(now);
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
      judgeIfDue(entry, now);
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
      scannedAt = Date.now();
      scanKeel();
      tick(); // which begins to look for other logs too
      let timeout: NodeJS.Timeout | undefined;
      const patience = new Promise<void>(done => {
        timeout = setTimeout(done, patienceMs);
      });
      await Promise.race([scanning, patience]);
      clearTimeout(timeout);
    },
    list() {
      const runs = [...entries.values()].map(({ run }) => summary(run));
      return {
        runs: runs.sort((a, b) => (b.startedAt ?? b.updatedAt) - (a.startedAt ?? a.updatedAt)),
        version,
      };
    },
    get: id => entries.get(id)?.run,
    async load(id) {
      const entry = entries.get(id);
      if (entry === undefined) return undefined;
      entry.usedAt = Date.now();
      if (!entry.run.loaded) {
        let timeout: NodeJS.Timeout | undefined;
        const patience = new Promise<void>(done => {
          timeout = setTimeout(done, patienceMs);
        });
        await Promise.race([read(entry), patience]);
        clearTimeout(timeout);
      }
      return entry.run;
    },
    summary,
    touch(run) {
      const entry = entries.get(run.id);
      if (entry !== undefined) tell([entry]);
    },
    async refresh() {
      scanKeel();
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
