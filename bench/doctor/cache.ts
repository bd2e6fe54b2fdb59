/** Runs of the matrix on disk: `runs.jsonl.gz`, a line for each, from which the bench writes real logs. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { PpoConfig } from '../../src/algos/ppo/settings.ts';
import { writeFileAtomic } from '../../src/base/files.ts';
import type { RootCause } from '../../src/doctor/index.ts';
import { type Cell, type Columns, cell, columnsOf, finiteOrText, rowsOf } from './columns.ts';
import type { EnvId, Job } from './plan.ts';
import type { Episodes, Tampering } from './tamper.ts';

const cacheFile = fileURLToPath(new URL('./runs.jsonl.gz', import.meta.url));

/** What was done to a run, and what came of it. */
export interface Label {
  readonly name: string;
  readonly env: EnvId;
  readonly seed: number;
  readonly fault: RootCause | null;
  readonly variant: string;
  readonly tampering: Tampering | null;
  readonly rescale: Job['rescale'];
  /** Mean true return of the last fifth of the rows. */
  readonly lastReturn: number | null;
  /** How the run ended if not by itself. */
  readonly error: string | null;
  /** The fault is there and did no harm: as good as healthy runs of the same length. `watch` is a right answer too. */
  readonly harmless: boolean;
  /** Seeds that rules may not be tuned on. */
  readonly heldOut: boolean;
}

export interface CachedLog {
  readonly config: PpoConfig;
  /** Keel's own rows, without times. */
  readonly rows: readonly Readonly<Record<string, number>>[];
  /** The episodes of each row. */
  readonly episodes: readonly Episodes[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

export interface CachedRun {
  readonly label: Label;
  readonly log: CachedLog;
}

/** All runs, by name. */
export function readCached(): CachedRun[] {
  if (!existsSync(cacheFile)) return [];
  const lines = gunzipSync(readFileSync(cacheFile)).toString('utf8').trimEnd().split('\n');
  return lines.map(line => {
    const { label, log } = JSON.parse(line) as { label: Label; log: PackedLog };
    return { label, log: unpacked(log) };
  });
}

/** Replaces them all. The same runs make the same bytes: they are sorted, and the time in gzip's header is Node's zero. */
export function writeCached(runs: readonly CachedRun[]): void {
  const lines = [...runs]
    .sort((a, b) => (a.label.name < b.label.name ? -1 : 1))
    .map(({ label, log }) => `${JSON.stringify({ label, log: packed(log) }, finiteOrText)}\n`);
  writeFileAtomic(cacheFile, gzipSync(lines.join(''), { level: 9 }));
}

// ---- small

interface PackedLog {
  readonly config: PpoConfig;
  readonly columns: Columns;
  readonly episodes: readonly {
    readonly inner: readonly Cell[];
    readonly outer?: readonly Cell[];
    readonly lengths: number[];
  }[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

function packed({ config, rows, episodes, events }: CachedLog): PackedLog {
  const plain = episodes.map(({ inner, outer, lengths }) =>
    inner.every((value, i) => value === outer[i])
      ? { inner: inner.map(short), lengths }
      : { inner: inner.map(short), outer: outer.map(short), lengths },
  );
  return { config, columns: columnsOf(rows), episodes: plain, events };
}

const short = (value: number): Cell => cell(value);

function unpacked({ config, columns, episodes, events }: PackedLog): CachedLog {
  return {
    config,
    rows: rowsOf(columns),
    events,
    episodes: episodes.map(({ inner, outer, lengths }) => ({
      inner: inner.map(Number),
      outer: (outer ?? inner).map(Number),
      lengths,
    })),
  };
}
