/** A run that was found and not read yet. */
import type { Format } from '../raw-run.ts';
import type { StoredRun } from './stored-runs.ts';
import type { EventFiles } from './tensorboard.ts';

/** How a run is read. */
export type Source =
  | { readonly kind: 'keel'; readonly directory: string }
  | { readonly kind: 'mlflow'; readonly directory: string }
  | { readonly kind: 'wandb'; readonly file: string }
  | { readonly kind: 'tensorboard'; readonly groups: readonly EventFiles[] }
  | { readonly kind: 'monitor'; readonly monitors: readonly string[] }
  | { readonly kind: 'scalars'; readonly scalars: readonly string[] }
  /** A database whose runs are not listed yet. */
  | { readonly kind: 'sqlite-file'; readonly file: string }
  | { readonly kind: 'sqlite'; readonly file: string; readonly run: StoredRun }
  /** One run of a table that has several, by name. */
  | { readonly kind: 'long'; readonly file: string; readonly run: string }
  /** One run of charts that were exported with several. */
  | { readonly kind: 'charts'; readonly charts: readonly string[]; readonly run: string }
  /** The first training of a printed log is 0. */
  | { readonly kind: 'console' | 'verl-console'; readonly file: string; readonly training?: number }
  | { readonly kind: 'npz'; readonly file: string }
  /** What is known to be unreadable. */
  | { readonly kind: 'broken'; readonly file: string; readonly why: string }
  | {
      readonly kind: 'csv' | 'jsonl' | 'json-list' | 'json-document' | 'trainer-state';
      readonly file: string;
    };

/** Files that look like the log of one run. */
export interface Candidate {
  /** What a user would call it: the run's directory or file. */
  readonly path: string;
  readonly format: Format;
  /** What is read; `signature` looks at them. */
  readonly files: readonly string[];
  readonly source: Source;
  /** The directory in which files with settings may lie beside the log. */
  readonly directory: string;
  /** Said of the run before it is read: which other files tell of it too. */
  readonly notes: readonly string[];
}

/** The format of a run by how it is read. */
export function formatOf(source: Source): Format {
  switch (source.kind) {
    case 'monitor':
    case 'scalars':
    case 'charts':
    case 'long':
      return 'csv';
    case 'json-list':
    case 'json-document':
    case 'broken':
      return 'jsonl';
    case 'sqlite-file':
      return 'mlflow';
    case 'sqlite':
      return source.run.store;
    default:
      return source.kind;
  }
}
