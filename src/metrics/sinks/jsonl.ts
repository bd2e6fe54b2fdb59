import { AppendFile } from '../../base/files.ts';
import { endOfLastLine } from '../lines.ts';
import { encodeEvent, encodeRow } from '../row.ts';
import type { Sink } from './sink.ts';

/**
 * The truth: a line of JSON for each row, and for each event in a second file. Append only; half a line that a kill
 * left at the end of an existing file is cut off.
 */
export function jsonlSink(paths: { readonly metrics: string; readonly events: string }): Sink {
  const metrics = new AppendFile(paths.metrics, endOfLastLine);
  let events: AppendFile;
  try {
    events = new AppendFile(paths.events, endOfLastLine);
  } catch (error) {
    metrics.close();
    throw error;
  }
  let closed = false;
  const flush = (): void => {
    metrics.sync();
    events.sync();
  };
  return {
    requireThere() {
      metrics.requireThere();
      events.requireThere();
    },
    write(row) {
      metrics.append(`${encodeRow(row)}\n`);
    },
    event(event) {
      events.requireThere();
      events.append(`${encodeEvent(event)}\n`);
    },
    flush,
    close() {
      if (closed) return;
      closed = true;
      try {
        flush();
      } finally {
        metrics.close();
        events.close();
      }
    },
  };
}
