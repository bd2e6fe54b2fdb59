/** A run as its files tell it: the names, numbers and texts of whoever wrote them. Readers make it, dialects read it. */
import type { Series } from './series.ts';

/** The formats that are recognised, by content. */
export const formats = [
  'keel',
  'tensorboard',
  'csv',
  'jsonl',
  'trainer-state',
  'verl-console',
  'console',
  'wandb',
  'mlflow',
  'trackio',
  'npz',
] as const;
export type Format = (typeof formats)[number];

/** The empty end of a column. */
export interface Blank {
  /** The first row without a value, and how many there are. */
  readonly from: number;
  readonly rows: number;
  /** Written as `null`, which JSON has for what is not a number, or as nothing at all. */
  readonly kind: 'null' | 'empty';
}

/** One run. A table (CSV, JSON lines …) has the row's number as x, an event file the step that it states. */
export interface RawRun {
  /** What a user would call it: the run's directory or file. */
  readonly path: string;
  readonly format: Format;
  readonly files: readonly string[];
  readonly axis: 'row' | 'step';
  /** By the name in the log. Nested names are joined with `/`. */
  readonly series: ReadonlyMap<string, Series>;
  /**
   * Hyper-parameters and other settings found in or beside the log, flat, names joined with `/`: TensorBoard's text
   * tags (CleanRL's table split up, hparams), W&B's config, RLlib's `config`, `params.json`, `args.json`, MLflow's
   * params, Keel's manifest.
   */
  readonly config: ReadonlyMap<string, string | number | boolean | null>;
  /** Other texts, shortened: TensorBoard's text tags that are no table, a first header line, log lines of errors. */
  readonly texts: ReadonlyMap<string, string>;
  /**
   * Of a table: series whose cells are there and empty (`null`, nothing between two commas) from some row to the end. A
   * value that is missing now and then is not told.
   */
  readonly blanks?: ReadonlyMap<string, Blank>;
  /** Positions (on the axis) at which the log began anew: a restart, a second file, a step that went back. */
  readonly restarts: readonly number[];
  /** What the user should know of the reading: lines dropped and why, records with a wrong checksum, points merged. */
  readonly notes: readonly string[];
  /** Those of the notes that are about lines or records which could not be read. */
  readonly damage?: readonly string[];
  /** True when the file ends in half a record or line, as a live one does. */
  readonly unfinished: boolean;
}
