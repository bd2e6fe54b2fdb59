/**
 * What the server and the page say to each other: paths and the JSON of each answer. Both sides take their types from
 * here; nothing here may import a Node module. Numbers that are not finite travel as null.
 *
 * | method | path | answer |
 * |---|---|---|
 * | GET | `/api/hello` | {@link Hello} |
 * | GET | `/api/runs` | {@link RunList} |
 * | GET | `/api/settings` | {@link AllSettings} |
 * | GET | `/api/runs/:id` | {@link RunDetail} |
 * | GET | `/api/runs/:id/series?metrics=a,b&x=step&from=&to=&buckets=600` | {@link SeriesAnswer} |
 * | GET | `/api/runs/:id/events?after=<sequence>` | {@link EventsAnswer} |
 * | GET | `/api/runs/:id/diagnosis` | {@link DiagnosisAnswer} |
 * | GET | `/api/runs/:id/output` | {@link OutputAnswer} |
 * | GET | `/api/runs/:id/settings` | {@link SettingsAnswer} |
 * | GET | `/api/runs/:id/checkpoints` | {@link CheckpointsAnswer} |
 * | POST | `/api/runs/:id/checkpoints/:step/evaluate` | {@link EvaluationAnswer} |
 * | GET | `/api/runs/:id/completions?groups=20&before=<iteration>` | {@link CompletionsAnswer} |
 * | GET | `/api/runs/:id/replays` | {@link ReplaysAnswer} |
 * | GET | `/api/runs/:id/replays/:name[?v=<version>]` | a replay's file, see `src/runs/replay-format.ts` |
 * | GET | `/api/runs/:id/cluster` | {@link ClusterAnswer} |
 * | GET | `/api/runs/:id/policy.onnx[?checkpoint=<step>]`, `/api/runs/:id/metrics.csv`, `/api/runs/:id/report.html`, `/api/report.html?run=<id>&run=<id>` | files |
 * | PATCH | `/api/runs/:id/notes` ({@link Notes}, any part) | {@link Notes} |
 * | POST | `/api/runs/:id/actions` ({@link Action}) | {@link ActionAnswer} |
 * | GET | `/api/studies` | {@link StudyList} |
 * | GET | `/api/studies/:id[?version=<version>]` | {@link StudyAnswer} |
 * | GET | `/api/stream` (server-sent events, `Last-Event-ID`) | {@link StreamMessage} |
 *
 * An error is `{ error: { code, message } }` with a fitting status; the message is a sentence for people. `:id` is what
 * `/api/runs` gave, and nothing else: no path is ever taken from a request. An id is made from the run's path, so a link
 * to a run holds when the server is started again.
 *
 * POST and PATCH need `Content-Type: application/json`. Where the server asks for a token it is in the address that it
 * prints (`/?token=…`): the page is loaded once with it, and from then on a cookie carries it, for the stream too.
 * `metrics=` may be left out for all of a run's series; each name in it is percent-encoded before they are joined.
 */
import type { Diagnosis, RootCause, Verdict } from '../doctor/findings.ts';
import type { KlBandName, KlContract } from '../metrics/registry.ts';
import type { ClusterTimeline } from '../view/cluster-timeline.ts';
import type { StudyOverview } from './api-studies.ts';

export type * from './api-studies.ts';

export interface Hello {
  readonly version: string;
  /** Directories that are watched, as a user would name them. */
  readonly roots: readonly string[];
  /** False where all actions are refused: the server was started read-only. */
  readonly canAct: boolean;
  /** When this server was started: another value after a lost connection means that it is another one. */
  readonly startedAt: number;
  /** To be typed as they are, in the directory in which this server was started. */
  readonly commands: {
    /** Starts it again at this address, so that an open page goes on. */
    readonly again: string;
    /** Starts a first run. */
    readonly train: string;
    /** Follows another trainer's log, whose directory is still to be said. */
    readonly watch: string;
  };
}

/** Where a run is in its life; `quiet` is another trainer's log that nothing was written to lately. */
export type RunState = 'running' | 'finished' | 'stopped' | 'failed' | 'killed' | 'quiet' | 'unreadable';

/** One line of the overview. */
export interface RunSummary {
  readonly id: string;
  /** The run's name as a user would call it: its directory. */
  readonly name: string;
  readonly root: string;
  /** `keel`, or the foreign trainer that the doctor recognised. */
  readonly trainer: string;
  readonly state: RunState;
  /** Why it failed or was stopped, as a sentence. */
  readonly reason: string | null;
  readonly environment: string | null;
  readonly algorithm: string | null;
  readonly seed: number | null;
  readonly step: number;
  readonly totalSteps: number | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number | null;
  readonly updatedAt: number;
  /** When another trainer's last row was written, by its log's own clock: the file itself may be a later copy. */
  readonly lastRowAt?: number;
  readonly stepsPerSecond: number | null;
  /** At most 60 points of the return (or reward), oldest first. */
  readonly sparkline: readonly (number | null)[];
  readonly lastReturn: number | null;
  readonly lastKl: number | null;
  /** The name of its band, if the KL is one that bands hold for. */
  readonly klBand: KlBandName | null;
  /** What its updates are held to: where the bands lie. */
  readonly klContract: KlContract;
  /** Whether a schedule has taken its learning rate down to nothing, so that a KL of 0 is meant. */
  readonly atRest: boolean;
  readonly verdict: Verdict | null;
  readonly rootCause: RootCause | null;
  /** The name of the run that it went on from, or in whose place it was begun anew. */
  readonly parent: string | null;
  /** That run's id, if it is among the runs here. */
  readonly parentId: string | null;
  /** The step of its checkpoint from which this one goes on; null of one that was begun anew. */
  readonly parentStep: number | null;
  /** The same for runs that differ in nothing but their seed; null where nothing is known of the settings or the seed. */
  readonly group: string | null;
  readonly notes: Notes;
  /** What is wrong with reading it, as a sentence. */
  readonly problem: string | null;
  /**
   * Goes up when what was read of the run no longer holds: it was resumed from an earlier checkpoint, or its log was
   * replaced. Series and events are to be asked for again.
   */
  readonly generation: number;
  /** False while its log is being read for the first time: series and sparkline come later. */
  readonly loaded: boolean;
  /** When its replays last changed; null where there are none. */
  readonly replaysAt: number | null;
  /** Whether its replays are drawn in two dimensions, as a board is. */
  readonly drawn: boolean;
  /** When its completions last changed; null where it writes none. */
  readonly completionsAt: number | null;
  /** When the recording of its routing last changed; null where there is none. */
  readonly clusterAt: number | null;
}

export interface RunList {
  readonly runs: readonly RunSummary[];
  /** Goes up with every change of the list. */
  readonly version: number;
}

export interface Notes {
  readonly tags: readonly string[];
  readonly note: string;
  readonly archived: boolean;
  /** The name of the run in whose place the page began this one anew, with what the doctor would change. */
  readonly insteadOf?: string | undefined;
}

/** One metric that a run has. */
export interface MetricInfo {
  /** The registry's id where it has one, else the log's own name. */
  readonly id: string;
  /** The name in the log. */
  readonly theirs: string;
  readonly group: string;
  readonly title: string;
  readonly unit: string;
  readonly doc: string;
  readonly healthy: string | null;
  readonly points: number;
  readonly last: number | null;
}

/** Of every run its settings, for a search in them. */
export interface AllSettings {
  /** What runs have in common is said once: of each run, which of these it has. */
  readonly settings: readonly string[];
  readonly runs: Readonly<Record<string, readonly number[]>>;
}

/** What is known of a run's settings beside their values; of Keel's own runs. */
export interface SettingsAnswer {
  readonly settings: Readonly<
    Record<string, { readonly doc: string; readonly fallback: string | number | boolean | null }>
  >;
}

/** What a run's process said, as plain text. */
export interface OutputAnswer {
  readonly parts: readonly {
    readonly title: string;
    readonly text: string;
    /** Whether there is more before it. */
    readonly cut: boolean;
  }[];
}

export interface RunDetail {
  readonly run: RunSummary;
  readonly metrics: readonly MetricInfo[];
  /** Flat, names joined with `.`; compared and grouped by on the page. */
  readonly config: Readonly<Record<string, string | number | boolean | null>>;
  /** What can be done with it in a terminal, to be typed as it is where this server was started. */
  readonly commands: { readonly record: string; readonly render: string; readonly route: string };
  /** What the reader should know of the log itself. */
  readonly logNotes: readonly string[];
  /** Which settings may be changed now, with their current values; empty where nothing can. */
  readonly adjustable: Readonly<Record<string, number | null>>;
  /** What `x=step` counts, and `from` and `to` of a finding: `steps`, `iterations`, `updates`, `rows` … */
  readonly unit: string;
  /** Whether `x=time` can be asked for. */
  readonly hasTime: boolean;
}

/** `time` is in milliseconds since 1970, as every time in this file; the page shows it since the first point. */
export type XAxis = 'step' | 'iteration' | 'time';

/** Buckets of equal width along x; those without a point are left out. */
export interface Envelope {
  readonly metric: string;
  /** Of each bucket: the x of its last point, smallest, largest and mean value, and how many points. */
  readonly x: readonly number[];
  readonly min: readonly (number | null)[];
  readonly max: readonly (number | null)[];
  readonly mean: readonly (number | null)[];
  readonly count: readonly number[];
  /** How many values were not finite, by bucket index; only those above 0. */
  readonly broken: readonly (readonly [bucket: number, count: number])[];
}

export interface SeriesAnswer {
  readonly x: XAxis;
  readonly from: number | null;
  readonly to: number | null;
  readonly series: readonly Envelope[];
  /** As in {@link RunSummary}, and how many rows the run has: those that the stream tells with a larger `total` are new. */
  readonly generation: number;
  readonly rows: number;
}

export interface PageEvent {
  /** Ascending within the run. */
  readonly sequence: number;
  readonly type: string;
  readonly step: number;
  readonly iteration: number | null;
  readonly time: number | null;
  readonly message: string;
}

export interface EventsAnswer {
  readonly events: readonly PageEvent[];
  /** How many of each type there are in all, which may be more than were sent. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface DiagnosisAnswer {
  /** null while the run is too short to be judged. */
  readonly diagnosis: Diagnosis | null;
  readonly reason: string | null;
  /** What could be done at once on a live run, in the order to be tried. */
  readonly actions: readonly { readonly action: Action; readonly label: string; readonly why: string }[];
  /** Why something that would help is not among them, as a sentence. */
  readonly note?: string | null;
  /** All changes at once, to be typed; null where there is no setting of Keel to change. */
  readonly remedy?: Remedy | null;
}

/** What the doctor advises, as commands that are typed where the server was started. */
export interface Remedy {
  readonly set: Readonly<Record<string, number>>;
  /** Goes on from the newest checkpoint from before the fault; null where there is none. */
  readonly fork: { readonly checkpoint: number; readonly command: string } | null;
  /** Begins again, with the run's own settings, steps and seed otherwise. */
  readonly anew: string | null;
}

export interface CheckpointSummary {
  readonly step: number;
  readonly iteration: number;
  readonly savedAt: number | null;
  readonly score: number | null;
  readonly isBest: boolean;
  readonly isLast: boolean;
  /** Before anything that the doctor calls critical. */
  readonly healthy: boolean;
  readonly bytes: number;
}

export interface CheckpointsAnswer {
  readonly checkpoints: readonly CheckpointSummary[];
  /** What forks the run, to be typed with a step behind it; null of what cannot be forked. */
  readonly fork: string | null;
}

/** An episode that was recorded. */
export interface ReplaySummary {
  readonly name: string;
  readonly step: number;
  readonly iteration: number;
  readonly recordedAt: number;
  readonly seconds: number;
  readonly episodeReturn: number;
  /** `cut`: it went on, but no more was recorded. */
  readonly end: 'terminated' | 'truncated' | 'cut';
  /** The highest return of all. */
  readonly isBest: boolean;
  readonly bytes: number;
  /** Another value when the file is another one. */
  readonly version: string;
}

export interface ReplaysAnswer {
  /** Oldest policy first. */
  readonly replays: readonly ReplaySummary[];
}

/** What a policy that routes requests did when it was last recorded in training, or simulated (`keel simulate cluster --router <run>`). */
export interface ClusterAnswer {
  readonly timeline: ClusterTimeline | null;
  /** What is wrong with the recording, as a sentence. */
  readonly problem: string | null;
}

export interface EvaluationAnswer {
  readonly step: number;
  readonly episodes: number;
  readonly mean: number;
  readonly std: number;
  /** Of the mean; null of one episode. */
  readonly standardError: number | null;
  readonly deterministic: boolean;
  /** With actions drawn as in training, where that differs by more than the standard error; null where it does not. */
  readonly drawn: { readonly mean: number; readonly standardError: number | null } | null;
}

/** What a button does. */
export type Action =
  | { readonly type: 'set'; readonly key: string; readonly value: number }
  | { readonly type: 'stop' }
  /** Stops the run, and starts a new one from a checkpoint of it with other settings. */
  | { readonly type: 'restart'; readonly checkpoint: number; readonly set: Readonly<Record<string, number>> }
  /** Stops the run, and begins one like it again, from its first step, with other settings. */
  | { readonly type: 'anew'; readonly set: Readonly<Record<string, number>> };

export interface ActionAnswer {
  readonly done: boolean;
  readonly message: string;
  /** Of the new run, after `restart` and `anew`. */
  readonly newRun: string | null;
}

/**
 * What the stream tells; each message has an ascending id, and a client that comes back with `Last-Event-ID` gets what
 * it missed, or `reset` if that is no longer known.
 */
export type StreamMessage =
  | { readonly type: 'reset' }
  | { readonly type: 'runs'; readonly changed: readonly RunSummary[]; readonly removed: readonly string[] }
  /**
   * A run has new rows, oldest first: values by the metric's id (as in {@link MetricInfo}). Where known, each row has
   * its place on all axes as `train/step`, `train/iteration` and `time/unix_s` (seconds), also for other trainers' logs.
   * `step` is that of the last row. At most 100 of the newest are sent; `more` says that others came before them, which
   * only a new `series` tells. `total` is how many rows the run has after these.
   */
  | {
      readonly type: 'rows';
      readonly run: string;
      readonly generation: number;
      readonly step: number;
      readonly total: number;
      readonly more: boolean;
      readonly rows: readonly Readonly<Record<string, number | null>>[];
    }
  | { readonly type: 'events'; readonly run: string; readonly events: readonly PageEvent[] }
  | {
      readonly type: 'diagnosis';
      readonly run: string;
      readonly verdict: Verdict;
      readonly rootCause: RootCause | null;
    }
  /** Who shows one of them asks for it again. */
  | {
      readonly type: 'studies';
      readonly changed: readonly StudyOverview[];
      readonly removed: readonly string[];
    };

/** Groups of completions, newest first. */
export interface CompletionsAnswer {
  readonly groups: readonly CompletionGroup[];
  /** Whether there are groups of earlier iterations. */
  readonly older: boolean;
}

/** Completions of one prompt. */
export interface CompletionGroup {
  readonly iteration: number;
  readonly step: number;
  readonly prompt: string;
  /** How the KL of tokens is measured; null where there is no reference. */
  readonly klEstimator: 'exact' | 'k3' | null;
  readonly completions: readonly Completion[];
}

export interface Completion {
  readonly text: string;
  readonly tokens: readonly string[];
  /** Of each token, as it was drawn. */
  readonly logProbs: readonly (number | null)[];
  /** KL to the reference at each token; null without one. */
  readonly kl: readonly (number | null)[] | null;
  /** Null where it could not be graded. */
  readonly reward: number | null;
  readonly advantage: number | null;
  readonly parsed: boolean;
  /** `end`, `stop`, `length` or `kl`. */
  readonly ended: string;
  readonly parts: Readonly<Record<string, number | null>>;
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly problem: string | null;
}
