import type { LogEvent, Row } from '../row.ts';

/**
 * Where rows and events go. Synchronous, so that what was written survives a kill in the next instruction. Errors are
 * `RunError`s of one line; after one, what was written before it is still there and the sink can be closed.
 */
export interface Sink {
  /** One iteration's row. Rows come in the order of their iterations. */
  write(row: Row): void;
  /** Something that happened. Sinks of numbers ignore it. */
  event(event: LogEvent): void;
  /** Fails if what was written is no longer where it was; where that is not looked at, there is no such method. */
  requireThere?(): void;
  /** Returns when everything is on the disk, and not only in the system's memory. */
  flush(): void;
  /** Flushes and lets go. May be called twice. */
  close(): void;
}
