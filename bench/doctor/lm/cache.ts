/** Runs of the language-model matrix on disk: `lm-runs.jsonl.gz`, a line for each, from which the bench writes logs. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { GrpoConfig } from '../../../src/algos/grpo/settings.ts';
import { writeFileAtomic } from '../../../src/base/files.ts';
import { type Columns, columnsOf, finiteOrText, rowsOf } from '../columns.ts';
import type { LmJob } from './plan.ts';

const cacheFile = fileURLToPath(new URL('../lm-runs.jsonl.gz', import.meta.url));
/** The healthy runs differ more between their rows than in the fifth digit. */
const DIGITS = 4;

/** What was done to a run, and what came of it. */
export interface LmLabel extends Omit<LmJob, 'config'> {
  /** The mean of what the completions of the last fifth of the rows were truly worth. */
  readonly lastScore: number | null;
  /** How the run ended if not by itself. */
  readonly error: string | null;
  /** The fault is there and did no harm: as good as healthy runs of the task. `watch` is a right answer too. */
  readonly harmless: boolean;
  /** A seed or task that rules may not be tuned on. */
  readonly heldOut: boolean;
}

export interface LmRun {
  readonly label: LmLabel;
  readonly config: GrpoConfig;
  /** Keel's rows without times, and below `also/` what other trainers log and Keel does not. */
  readonly rows: readonly Readonly<Record<string, number>>[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

/** All runs. */
export function readLmRuns(): LmRun[] {
  if (!existsSync(cacheFile)) return [];
  return gunzipSync(readFileSync(cacheFile))
    .toString('utf8')
    .trimEnd()
    .split('\n')
    .map(line => {
      const { columns, ...run } = JSON.parse(line) as Omit<LmRun, 'rows'> & { readonly columns: Columns };
      return { ...run, rows: rowsOf(columns) };
    });
}

/** Replaces them all; the same runs make the same bytes. */
export function writeLmRuns(runs: readonly LmRun[]): void {
  const lines = [...runs]
    .sort((a, b) => (a.label.name < b.label.name ? -1 : 1))
    .map(
      ({ rows, ...run }) => `${JSON.stringify({ ...run, columns: columnsOf(rows, DIGITS) }, finiteOrText)}\n`,
    );
  writeFileAtomic(cacheFile, gzipSync(lines.join(''), { level: 9 }));
}
