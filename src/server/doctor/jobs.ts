/** What the doctor's thread is asked, and what it answers. All of it can be sent between threads. */
import type { Diagnosis } from '../../doctor/findings.ts';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import type { Said } from '../../doctor/readers/said.ts';
import type { Series } from '../../doctor/series.ts';
import type { KlContract } from '../../metrics/registry.ts';
import type { Setting } from '../runs/flatten.ts';

export type Job =
  /** Finds the logs under some paths. */
  | { readonly type: 'find'; readonly paths: readonly string[]; readonly leaveOut: readonly string[] }
  /** Reads another trainer's log and judges it. */
  | { readonly type: 'read'; readonly candidate: Candidate }
  /** Judges a run of Keel whose rows the server has. */
  | { readonly type: 'judge'; readonly run: JudgedRun }
  /** The doctor's report of a run as a page, or, with `whole`, the interactive one of one or more runs. */
  | { readonly type: 'report'; readonly runs: readonly ReportedRun[]; readonly whole: boolean };

/** A run and how a report names it. */
export interface ReportedRun {
  readonly path: string;
  readonly shown: string;
}

/** A run of Keel as the server knows it: series by row number, from 1. */
export interface JudgedRun extends Said {
  readonly path: string;
  readonly series: readonly (readonly [name: string, series: Series])[];
  /** Rows at which a resume went on. */
  readonly restarts: readonly number[];
  readonly unfinished: boolean;
}

export interface Judgement {
  readonly diagnosis: Diagnosis | null;
  /** Why there is none, as a sentence. */
  readonly reason: string | null;
}

export interface ForeignSeries {
  readonly id: string;
  readonly theirs: string;
  readonly series: Series;
  /** Whether the bands of `kl/step` hold for it. */
  readonly banded: boolean;
}

/** Another trainer's log, read. */
export interface ForeignLog extends Judgement {
  readonly trainer: string;
  readonly unit: string;
  readonly series: readonly ForeignSeries[];
  readonly config: Readonly<Record<string, Setting>>;
  readonly notes: readonly string[];
  /** Those notes that are about lines that could not be read. */
  readonly damage: readonly string[];
  readonly task: string | null;
  readonly totalSteps: number | null;
  readonly klContract: KlContract;
  /** At the start, where it is known. */
  readonly learningRate: number | null;
  readonly objective: string | null;
  /** Positions at which the log began anew. */
  readonly restarts: readonly number[];
  readonly error: string | null;
}

export interface FindAnswer {
  readonly candidates: readonly Candidate[];
  readonly notes: readonly string[];
}
