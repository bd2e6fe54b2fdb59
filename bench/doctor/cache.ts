/** Runs of the matrix on disk: `runs.jsonl.gz`, a line for each, from which the bench writes real logs. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { PpoConfig } from '../../src/algos/ppo/settings.ts';
import { writeFileAtomic } from '../../src/base/files.ts';
import type { RootCause } from '../../src/doctor/index.ts';
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

// ---- small: a column for each metric, five digits; what is not finite is text, since JSON has no word for it

type Cell = number | string | null;

interface PackedLog {
  readonly config: PpoConfig;
  readonly columns: Readonly<Record<string, readonly Cell[]>>;
  readonly episodes: readonly {
    readonly inner: readonly Cell[];
    readonly outer?: readonly Cell[];
    readonly lengths: number[];
  }[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

function packed({ config, rows, episodes, events }: CachedLog): PackedLog {
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))].filter(name => !name.startsWith('time/'));
  const columns = Object.fromEntries(names.map(name => [name, rows.map(row => cell(row[name]))]));
  const plain = episodes.map(({ inner, outer, lengths }) =>
    inner.every((value, i) => value === outer[i])
      ? { inner: inner.map(cell), lengths }
      : { inner: inner.map(cell), outer: outer.map(cell), lengths },
  );
  return { config, columns, episodes: plain, events };
}

const finiteOrText = (_: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;

function cell(value: number | undefined): Cell {
  if (value === undefined) return null;
  return Number.isFinite(value) ? Number(value.toPrecision(5)) : String(value);
}

function unpacked({ config, columns, episodes, events }: PackedLog): CachedLog {
  const count = Math.max(0, ...Object.values(columns).map(values => values.length));
  const rows = Array.from({ length: count }, (_, i) =>
    Object.fromEntries(
      Object.entries(columns)
        .filter(([, values]) => values[i] !== null)
        .map(([name, values]) => [name, Number(values[i])]),
    ),
  );
  return {
    config,
    rows,
    events,
    episodes: episodes.map(({ inner, outer, lengths }) => ({
      inner: inner.map(Number),
      outer: (outer ?? inner).map(Number),
      lengths,
    })),
  };
}
