/** A run that was found and not read yet. */
import type { Format } from '../raw-run.ts';
import type { Kind } from './detect.ts';
import type { EventFiles } from './tensorboard.ts';

/** How a run is read. */
export type Source =
  | { readonly kind: 'keel'; readonly directory: string }
  | { readonly kind: 'mlflow'; readonly directory: string }
  | { readonly kind: 'wandb'; readonly file: string }
  | { readonly kind: 'tensorboard'; readonly groups: readonly EventFiles[] }
  | { readonly kind: 'monitor'; readonly monitors: readonly string[] }
  | { readonly kind: 'scalars'; readonly scalars: readonly string[] }
  | {
      readonly kind: Exclude<Kind, 'tensorboard' | 'wandb' | 'monitor' | 'scalars'>;
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

/** The format of a run by the kind of its file. */
export function formatOf(kind: Source['kind']): Format {
  switch (kind) {
    case 'monitor':
    case 'scalars':
      return 'csv';
    case 'json-list':
    case 'json-document':
      return 'jsonl';
    default:
      return kind;
  }
}
