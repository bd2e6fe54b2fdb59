/**
 * What an algorithm is.
 *
 * The life of a run (`runs.ts` and `session.ts`: begin, start from weights, resume, fork, iterate, checkpoint, end) is
 * told once. What differs between PPO, GRPO and the two cloners stands behind two interfaces: an `Algorithm` knows its
 * settings and how to open a `Learner`; a learner iterates, and can be saved and restored to the bit.
 *
 * Each has a folder with the same files: `algorithm.ts` (what is here), `learner.ts` (a trainer on what a run learns in),
 * `iteration.ts` (collect, judge, learn, guard, control, report), `graphs.ts`, `control.ts`, `row.ts`, `settings.ts`,
 * `checkpoint.ts`.
 */
import type { Space } from '../envs/spaces.ts';
import type { Checkpoint, CheckpointFile } from '../runs/checkpoint.ts';
import type { EnvironmentSpec, Manifest } from '../runs/schema.ts';
import type { RunWriter } from '../runs/writer.ts';
import type { RunConfig, SettingTable } from '../settings/spec.ts';
import type { RecordingWriter } from './agents/record.ts';
import type { LearnerEvaluation } from './evaluation.ts';
import type { TrainEvent } from './events.ts';
import type { TrainHooks, TrainResult } from './hooks.ts';
import type { Policy } from './policy.ts';
import type { OpenShardPlace } from './ppo/shards/place.ts';
import type { RewardRescale } from './same-task.ts';
import type { Subject } from './subject.ts';

/** Settings by key, as someone wrote them. */
export type Settings = Readonly<Record<string, unknown>>;

/** Where a run stands. `steps` are what the algorithm counts: of environments, completions, demonstrations. */
export interface Progress {
  readonly iteration: number;
  readonly steps: number;
}

/** What one round of training gives back. */
export interface IterationResult {
  /** By registry name. */
  readonly row: Record<string, number>;
  readonly events: TrainEvent[];
}

/** Which checkpoint of a run. */
export type WhichCheckpoint = 'last' | 'best' | number;

/** Where weights to begin from come from; what they are is the algorithm's own business. */
export interface Start {
  /** The run that they come from. */
  readonly parent: { readonly id: string; readonly step: number } | undefined;
  /**
   * Where they are, absolute, and which checkpoint of a run: a run that is killed before its first checkpoint asks for the
   * same again. Without it such a run cannot go on.
   */
  readonly source?: { readonly path: string; readonly step: number | null };
}

/** Where and which it is, if it is a run's. */
export interface StartOptions {
  readonly checkpoint?: WhichCheckpoint | undefined;
  /** Directory of runs. */
  readonly root: string;
}

/** All that a learner is opened with. */
export interface Opening<C extends RunConfig = RunConfig, S extends Start = Start> {
  readonly subject: Subject;
  readonly config: C;
  /** What of the config someone wrote for this session: any of it that would have no effect is refused. */
  readonly written: Settings;
  readonly start?: S | undefined;
  /** Of a run that goes on, or that this one is forked from: where it was left. */
  readonly from?: { readonly manifest: Manifest; readonly checkpoint: Checkpoint | undefined } | undefined;
  /** Opens the place where shards are collected, instead of the one that the config asks for. The learner closes it. */
  readonly shardPlace?: OpenShardPlace | undefined;
}

/** How a checkpoint is taken on. */
export interface Restoring {
  /** Rewards have another scale than the value function has learnt. */
  readonly rescale?: RewardRescale | undefined;
  /** It becomes the beginning of another run, for which these settings were written. */
  readonly forkedWith?: Settings | undefined;
}

/** A way to learn, as the life of a run knows it. */
export interface Algorithm<C extends RunConfig = RunConfig, S extends Start = Start> {
  /** As manifests have it. */
  readonly name: string;
  /** The command that begins a run of it. */
  readonly verb: 'train' | 'clone';
  /** What it learns in. */
  readonly learnsIn: Subject['kind'];
  /** What its steps are, for people: `steps`, `completions`, `demonstrations`. */
  readonly unit: string;
  readonly settings: SettingTable<C>;
  /** Settings that suit a subject, by its id, below what a user sets. */
  preset(subject: string): Settings;
  /** What such a preset becomes where a run begins from weights. */
  startPreset?(preset: Settings, written: Settings, start: S): Settings;
  /** The weights that `from` names: a run, a file, a directory. Without it a run cannot begin from any. */
  start?(from: string, options: StartOptions): S;
  /** Whether the beginning is saved before the first iteration, because a kill must not need what it came from. */
  readonly savesBeginning?: boolean;
  /** Compiles everything for one run. Whoever opened it closes it. */
  open(opening: Opening<C, S>): Promise<Learner>;
  /** What was learnt, to hold: of a run's checkpoint. */
  openPolicy?(opening: PolicyOpening<C>): Promise<Policy>;
  /** The same of weights that no run of the subject has made. */
  openStart?(start: S, subject: Subject): Promise<Policy>;
  /** What someone who begins or resumes such a run may not expect; `started` says that it began from weights. */
  remark?(run: {
    readonly config: C;
    readonly step: number;
    readonly started: boolean;
    /** What it learns in, as one types it: a file by its path. */
    readonly subject: string;
  }): string | undefined;
  /** One tiny batch through every part, in seconds; gives a report of each. */
  preflight?(options: PreflightOptions<C, S>): Promise<PartReport[]>;
}

/** All that a policy is opened with. */
export interface PolicyOpening<C extends RunConfig = RunConfig> {
  readonly run: { readonly id: string; readonly dir: string; readonly manifest: Manifest };
  readonly subject: Subject;
  readonly config: C;
  readonly checkpoint: Checkpoint;
  /** Other than the environment's own. */
  readonly spaces?: { readonly observationSpace: Space; readonly actionSpace: Space } | undefined;
}

/** What came of one part. */
export interface PartReport {
  readonly part: string;
  readonly status: 'passed' | 'failed' | 'not reached';
  /** What was seen, or what went wrong and what to do about it. */
  readonly detail: string;
  readonly seconds: number;
  readonly warnings: readonly string[];
}

/** What is tried, and the life of a run to try it with. */
export interface PreflightOptions<C extends RunConfig = RunConfig, S extends Start = Start>
  extends Omit<Opening<C, S>, 'from'> {
  readonly onPart?: ((report: PartReport) => void) | undefined;
  /** A whole run of a config, in a directory that is gone afterwards; and one that goes on. */
  train(config: C, hooks?: TrainHooks): Promise<TrainResult>;
  resume(dir: string): Promise<TrainResult>;
  /** What it has learnt at its end, which need not be its best. */
  openPolicy(dir: string): Promise<Policy>;
}

/** A trainer on what a run learns in, as the session drives it. */
export interface Learner {
  /** Settings as they are now, by key. */
  readonly config: object;
  readonly counters: Progress;
  /** Steps of the whole run. */
  readonly totalSteps: number;
  readonly environment: EnvironmentSpec;
  /** What the manifest's config says beside the settings: where the run and its labels come from. */
  notes?(): Record<string, unknown>;
  /** At the beginning of a run; a restored one does not need it. */
  begin(): Promise<void>;
  restore(checkpoint: Checkpoint, how: Restoring): Promise<void>;
  iterate(): Promise<IterationResult>;
  /**
   * Tries what was learnt so far where training never is: on `evaluateEpisodes` episodes or prompts, the same ones each
   * time. Changes nothing that training depends on. Without it a run cannot have `evaluateEvery`.
   */
  evaluate?(): Promise<LearnerEvaluation>;
  /** Other values from now on; throws a `TrainError` where one cannot change. */
  adjust(changes: Readonly<Record<string, number | null>>): void;
  /** All that a checkpoint holds. */
  save(): Promise<{
    files: Readonly<Record<string, CheckpointFile>>;
    state: Readonly<Record<string, unknown>>;
  }>;
  /** After a checkpoint is on the disk. */
  saved?(writer: RunWriter): Promise<void>;
  /** What writes recordings of it to look at; undefined where there is nothing to see. */
  recorder?(runDir: string): Promise<RecordingWriter | undefined>;
  /** Begins to write beside the log of a run that has done so many iterations; what is returned writes the newest. */
  besideLog?(runDir: string, iteration: number): () => void;
  /** What the run found out, for its result. */
  results?(): Record<string, unknown>;
  close(): Promise<void>;
}
