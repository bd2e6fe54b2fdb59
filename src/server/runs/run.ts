/** What the index and the routes need of a run, whoever wrote it. */

import { findMetric, metricGroups } from '../../metrics/registry.ts';
import type {
  DiagnosisAnswer,
  EventsAnswer,
  MetricInfo,
  Notes,
  PageEvent,
  RunState,
  RunSummary,
  XAxis,
} from '../api.ts';
import type { Column } from '../series/column.ts';

/** A series with where its rows are. */
export interface PlacedColumn {
  readonly info: MetricInfo;
  readonly column: Column;
  readonly length: number;
  /** Ascending; undefined if this axis is not known. */
  readonly x: (axis: XAxis) => Float64Array | undefined;
}

export type Judgement = Pick<DiagnosisAnswer, 'diagnosis' | 'reason'>;
export const notJudged: Judgement = { diagnosis: null, reason: null };

export type Row = Readonly<Record<string, number | null>>;

/** What a look at a run's files found. */
export interface News {
  /** Rows that are new, oldest first, at most 100 of the newest. */
  readonly rows: readonly Row[];
  /** Whether there were others before them. */
  readonly more: boolean;
  readonly events: readonly PageEvent[];
  /** What was known no longer holds. */
  readonly rewound: boolean;
}

export const noNews: News = { rows: [], more: false, events: [], rewound: false };

/** Rows of one message at most. */
export const mostRows = 100;

export interface WatchedRun {
  readonly id: string;
  readonly kind: 'keel' | 'foreign';
  readonly path: string;
  /** Whether its files changed since they were read; cheap, called twice a second. `gone` if there is no run any more. */
  look(now: number): 'same' | 'changed' | 'gone';
  /** Reads what is new. Never throws: what is wrong is in the summary. */
  read(signal: AbortSignal): Promise<News>;
  summary(notes: Notes): RunSummary;
  readonly state: RunState;
  readonly loaded: boolean;
  /** When something of it was last written, in milliseconds since 1970. */
  readonly updatedAt: number;
  readonly generation: number;
  /** How many rows it has. */
  readonly rows: number;
  tracks(): ReadonlyMap<string, PlacedColumn>;
  events(after: number): EventsAnswer;
  /** What the doctor said last; set by who asked it. */
  diagnosis: Judgement;
  readonly config: Readonly<Record<string, string | number | boolean | null>>;
  readonly logNotes: readonly string[];
  readonly unit: string;
  /** Numbers held in memory; forgotten by `unload`, and read again by the next `read`. */
  readonly cells: number;
  unload(): void;
}

const groupIds = new Set(metricGroups.map(({ id }) => id));

/** What the registry knows of a metric, or what can be told from its name. */
export function infoOf(id: string, theirs: string, points: number, last: number | undefined): MetricInfo {
  const metric = findMetric(id);
  const [head = ''] = id.split('/');
  return {
    id,
    theirs,
    group: metric?.group ?? (groupIds.has(head) ? head : 'other'),
    title: metric === undefined || metric.id !== id ? id : metric.title,
    unit: metric?.unit ?? '1',
    doc: metric?.doc ?? '',
    healthy: metric?.healthy ?? null,
    points,
    last: last === undefined || !Number.isFinite(last) ? null : last,
  };
}
