/** All that is known of one open run: what it is, what happened, what the doctor says, its series. */
import type { DiagnosisAnswer, PageEvent, RunDetail, RunSummary } from '../../src/server/api.ts';
import { client, messageOf, statusOf } from './client.ts';
import { connection } from './connection.svelte.ts';
import { runs } from './runs.svelte.ts';
import { createSeriesStore, type SeriesStore } from './series-store.ts';

export interface OpenRun {
  readonly id: string;
  readonly series: SeriesStore;
  /** The newest summary: from the list while the run is in it. */
  readonly run: RunSummary | null;
  readonly detail: RunDetail | null;
  readonly error: string | null;
  /** There is no such run: a stale link, or it was deleted while open. */
  readonly missing: boolean;
  readonly events: readonly PageEvent[];
  readonly eventCounts: Readonly<Record<string, number>>;
  readonly diagnosis: DiagnosisAnswer | null;
  readonly diagnosisError: string | null;
  reload(): void;
  /** The doctor's word again: what can be done, and what was seen, may be another after an act. */
  judgeAgain(): void;
  close(): void;
}

const maxEvents = 20_000;

export function openRun(id: string): OpenRun {
  let detail = $state.raw<RunDetail | null>(null);
  let error = $state<string | null>(null);
  let missing = $state(false);
  let events = $state.raw<readonly PageEvent[]>([]);
  let counts = $state.raw<Readonly<Record<string, number>>>({});
  let diagnosis = $state.raw<DiagnosisAnswer | null>(null);
  let diagnosisError = $state<string | null>(null);
  const summary = $derived(runs.get(id) ?? detail?.run ?? null);
  const gone = $derived(missing || (runs.get(id) === undefined && runs.wasRemoved(id) !== undefined));
  const series = createSeriesStore((ask, signal) => client.series(id, ask, signal), requestAnimationFrame);
  let closed = false;
  let detailTimer: ReturnType<typeof setTimeout> | undefined;
  let diagnosisTimer: ReturnType<typeof setTimeout> | undefined;
  let knownMetrics = new Set<string>();
  let generation = -1;
  let asked = 0;

  async function loadDetail(): Promise<void> {
    try {
      const answer = await client.detail(id);
      if (closed) return;
      detail = answer;
      knownMetrics = new Set(answer.metrics.map(m => m.id));
      error = null;
      missing = false;
      // Its log is still being read: what there is of series comes with the next look.
      if (!answer.run.loaded) detailSoon(700);
    } catch (cause) {
      if (closed) return;
      if (statusOf(cause) === 404) missing = true;
      error = messageOf(cause);
    }
  }

  async function loadEvents(): Promise<void> {
    try {
      const answer = await client.events(id, null);
      if (closed) return;
      events = answer.events;
      counts = answer.counts;
    } catch {
      // The run itself says what is wrong; without events the plots have no pins.
    }
  }

  async function loadDiagnosis(): Promise<void> {
    const ask = ++asked;
    try {
      const answer = await client.diagnosis(id);
      // An older answer may come after a newer one.
      if (closed || ask !== asked) return;
      diagnosis = answer;
      diagnosisError = null;
    } catch (cause) {
      if (!closed && ask === asked) diagnosisError = messageOf(cause);
    }
  }

  function detailSoon(ms: number): void {
    detailTimer ??= setTimeout(() => {
      detailTimer = undefined;
      void loadDetail();
    }, ms);
  }
  function diagnosisSoon(ms: number): void {
    diagnosisTimer ??= setTimeout(() => {
      diagnosisTimer = undefined;
      void loadDiagnosis();
    }, ms);
  }

  function reload(): void {
    series.refresh();
    void loadDetail();
    void loadEvents();
    void loadDiagnosis();
  }

  function addEvents(more: readonly PageEvent[]): void {
    const last = events.at(-1)?.sequence ?? -1;
    const fresh = more.filter(event => event.sequence > last);
    if (fresh.length === 0) return;
    events = [...events, ...fresh].slice(-maxEvents);
    const next: Record<string, number> = { ...counts };
    for (const event of fresh) next[event.type] = (next[event.type] ?? 0) + 1;
    counts = next;
    if (fresh.some(e => e.type === 'act' || e.type === 'rate-change')) detailSoon(300);
    if (fresh.some(e => e.type === 'act')) diagnosisSoon(300);
  }

  const stop = connection.listen(messages => {
    for (const message of messages) {
      if (message.type === 'reset') reload();
      else if (message.type === 'runs') {
        const changed = message.changed.find(run => run.id === id);
        if (changed === undefined) continue;
        if (missing) {
          // A run that came back, or was only now found.
          missing = false;
          reload();
        } else if (generation >= 0 && changed.generation !== generation) reload();
        else if (
          detail !== null &&
          (changed.state !== detail.run.state || changed.loaded !== detail.run.loaded)
        ) {
          detailSoon(200);
          diagnosisSoon(200);
        }
        generation = changed.generation;
      } else if (message.type === 'rows' && message.run === id) {
        series.append(message.rows, message.generation, message.more);
        if (message.rows.some(row => Object.keys(row).some(key => !knownMetrics.has(key)))) detailSoon(1000);
      } else if (message.type === 'events' && message.run === id) addEvents(message.events);
      else if (message.type === 'diagnosis' && message.run === id) diagnosisSoon(50);
    }
  });

  void loadDetail();
  void loadEvents();
  void loadDiagnosis();

  return {
    id,
    series,
    get run() {
      return summary;
    },
    get detail() {
      return detail;
    },
    get error() {
      return error;
    },
    get missing() {
      return gone;
    },
    get events() {
      return events;
    },
    get eventCounts() {
      return counts;
    },
    get diagnosis() {
      return diagnosis;
    },
    get diagnosisError() {
      return diagnosisError;
    },
    reload,
    judgeAgain() {
      detailSoon(50);
      diagnosisSoon(50);
    },
    close() {
      closed = true;
      stop();
      clearTimeout(detailTimer);
      clearTimeout(diagnosisTimer);
      series.close();
    },
  };
}
