/** What was trained for the bench of cures, a line each: `cures.jsonl`, and what else is kept beside it. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { From } from './remedy.ts';

const file = (name: string): string => fileURLToPath(new URL(`./${name}.jsonl`, import.meta.url));

/** A run that was trained with a fix. */
export interface CureRecord {
  /** The run of the matrix. */
  readonly run: string;
  readonly from: From;
  /** The iteration that it went on from. */
  readonly iteration: number;
  /** What differs: settings by key, and what else was undone. */
  readonly written: Readonly<Record<string, unknown>>;
  readonly undone: string | null;
  /** Mean true return of its last fifth. */
  readonly lastReturn: number | null;
  /** Why it did not come to its end. */
  readonly error: string | null;
}

/** Two of the same need one training. */
export const keyOf = (
  record: Pick<CureRecord, 'run' | 'from' | 'iteration' | 'written' | 'undone'>,
): string =>
  JSON.stringify([record.run, record.iteration, Object.entries(record.written).sort(), record.undone]);

/** The records of a file, as many as there are. */
export function readLines<T>(name: string): T[] {
  const path = file(name);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter(line => line !== '').map(line => JSON.parse(line) as T);
}

/** One more; a kill leaves those before it. */
export function addRecord(name: string, record: object): void {
  appendFileSync(file(name), `${JSON.stringify(record)}\n`);
}
