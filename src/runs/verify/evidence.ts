/** What the checks of a run look at, and how they tell. */
import type { Row } from '../../metrics/row.ts';
import type { StoredEvent } from '../schema.ts';
import type { Run } from '../store.ts';

/** One thing that is wrong with a run. */
export interface RunProblem {
  /** Of the run's directory. */
  readonly file: string;
  /** Where in it: a line, a row, a column. */
  readonly place: string | undefined;
  /** All of it in a line: file, place, what was found, what was expected. */
  readonly text: string;
}

/** Tells of a problem in the file at `path`. */
export type Tell = (path: string, place: string | undefined, text: string) => void;

/** What stands in a line of a file. */
export interface Numbered<T> {
  readonly line: number;
  readonly item: T;
}

/** A run as it was read. */
export interface Evidence {
  readonly run: Run;
  /** Whether it ended by itself; one that did not may end in the middle of anything. */
  readonly isWhole: boolean;
  readonly rows: readonly Numbered<Row>[];
  readonly events: readonly Numbered<StoredEvent>[];
}
