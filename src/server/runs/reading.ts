/** Small things that reading a run as it grows needs. */
import { statSync } from 'node:fs';
import { openRegular } from '../../base/files.ts';
import type { StoredEvent } from '../../runs/schema.ts';
import type { PageEvent } from '../api.ts';
import type { Column } from '../series/column.ts';
import { envelopeOf } from '../series/envelope.ts';

/** At most 60 means along x. */
export function sparkline(column: Column, x: Float64Array, length: number): (number | null)[] {
  if (length === 0) return [];
  const window = { from: x[0], to: x[length - 1], buckets: 60 };
  return [...envelopeOf('', column, x, length, window).mean];
}

export function pageEvent(event: StoredEvent): Omit<PageEvent, 'sequence'> {
  const time = event['time/unix_s'];
  return {
    type: event.type,
    step: event.step,
    iteration: event.iteration,
    time: typeof time === 'number' ? Math.round(time * 1000) : null,
    message: event.message.slice(0, 500),
  };
}

export const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;

export const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').slice(0, 500);

/** Changes when a file does; '' if there is none. */
export function stamp(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.size}:${stat.mtimeMs}:${stat.ino}`;
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

export function openIfThere(path: string): number | undefined {
  try {
    return openRegular(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
