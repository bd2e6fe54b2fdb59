/** Runs of the matrix on disk: `runs/<name>/label.json` and `log.json.gz`, from which the bench writes real logs. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { TrainConfig } from '../../src/algos/index.ts';
import type { RootCause } from '../../src/doctor/index.ts';
import type { EnvId, Job } from './plan.ts';
import type { Episodes, Tampering } from './tamper.ts';

export const cacheDir = new URL('./runs/', import.meta.url).pathname;

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
  readonly config: TrainConfig;
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

export function isCached(name: string): boolean {
  return existsSync(join(cacheDir, name, 'log.json.gz'));
}

export function writeCached({ label, log }: CachedRun): void {
  const directory = join(cacheDir, label.name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'log.json.gz'), gzipSync(packed(log), { level: 9 }));
  writeLabel(label);
}

export function writeLabel(label: Label): void {
  writeFileSync(join(cacheDir, label.name, 'label.json'), `${JSON.stringify(label, null, 2)}\n`);
}

export function readCached(): CachedRun[] {
  if (!existsSync(cacheDir)) return [];
  return readdirSync(cacheDir)
    .sort()
    .filter(isCached)
    .map(name => ({
      label: JSON.parse(readFileSync(join(cacheDir, name, 'label.json'), 'utf8')) as Label,
      log: unpacked(gunzipSync(readFileSync(join(cacheDir, name, 'log.json.gz'))).toString('utf8')),
    }));
}

// ---- small: a column for each metric, five digits; what is not finite is text, since JSON has no word for it

type Cell = number | string | null;

function packed({ config, rows, episodes, events }: CachedLog): string {
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))].filter(name => !name.startsWith('time/'));
  const columns = Object.fromEntries(names.map(name => [name, rows.map(row => cell(row[name]))]));
  const plain = episodes.map(({ inner, outer, lengths }) =>
    inner.every((value, i) => value === outer[i])
      ? { inner: inner.map(cell), lengths }
      : { inner: inner.map(cell), outer: outer.map(cell), lengths },
  );
  return JSON.stringify({ config, columns, episodes: plain, events }, (_, value) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
}

function cell(value: number | undefined): Cell {
  if (value === undefined) return null;
  return Number.isFinite(value) ? Number(value.toPrecision(5)) : String(value);
}

function unpacked(text: string): CachedLog {
  const { config, columns, episodes, events } = JSON.parse(text) as {
    config: TrainConfig;
    columns: Record<string, Cell[]>;
    episodes: { inner: Cell[]; outer?: Cell[]; lengths: number[] }[];
    events: Record<string, unknown>[];
  };
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
