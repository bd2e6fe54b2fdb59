/**
 * `completions.jsonl`: some groups of each iteration with everything a person wants to see of them, a line a group.
 *
 * The file is bounded: when it has twice the groups that are kept, the older half goes. A resumed run drops what its
 * checkpoint does not have, as with rows and events, and writes the same lines again.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { writeFileAtomic } from '../base/files.ts';
import { jsonOf } from '../base/json.ts';
import { runPaths } from './layout.ts';

/** One completion of a group. */
export interface CompletionRecord {
  readonly text: string;
  /** `end`, `stop`, `length` or `kl`. */
  readonly ended: string;
  readonly parsed: boolean;
  /** Null where it could not be graded. */
  readonly reward: number | null;
  readonly parts: Readonly<Record<string, number>>;
  /** Null where one does not apply. */
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly advantage: number;
  /** The text of each token, as it was drawn. */
  readonly tokens: readonly string[];
  /** Log-probability of each token when it was drawn: after temperature and truncation. */
  readonly logProbs: readonly number[];
  /** KL to the reference at each token: exact, or k3 of the token; none without a reference. */
  readonly klRef?: readonly number[];
  readonly problem?: string;
}

/** One group: a line of the file. */
export interface GroupRecord {
  readonly iteration: number;
  readonly step: number;
  readonly prompt: string;
  readonly klRefEstimator?: 'exact' | 'k3';
  readonly completions: readonly CompletionRecord[];
}

/** Groups that stay at least. */
const KEPT_GROUPS = 500;

/** Adds an iteration's groups to a run's file. */
export class CompletionLog {
  readonly #path: string;
  #groups: number;

  /** Lines after `iteration` are dropped: they are of a run that was killed. */
  constructor(runDir: string, iteration: number) {
    this.#path = runPaths(runDir).completions;
    const lines = this.#lines();
    const kept = lines.filter(line => (iterationOf(line) ?? Number.POSITIVE_INFINITY) <= iteration);
    if (kept.length < lines.length) this.#rewrite(kept);
    this.#groups = kept.length;
  }

  add(records: readonly GroupRecord[]): void {
    if (records.length === 0) return;
    appendFileSync(this.#path, records.map(record => `${JSON.stringify(record)}\n`).join(''));
    this.#groups += records.length;
    if (this.#groups < 2 * KEPT_GROUPS) return;
    const kept = this.#lines().slice(-KEPT_GROUPS);
    this.#rewrite(kept);
    this.#groups = kept.length;
  }

  #lines(): string[] {
    if (!existsSync(this.#path)) return [];
    return readFileSync(this.#path, 'utf8')
      .split('\n')
      .filter(line => line !== '');
  }

  #rewrite(lines: readonly string[]): void {
    writeFileAtomic(this.#path, lines.map(line => `${line}\n`).join(''));
  }
}

/** The iteration of a line; undefined for one that was cut off by a kill. */
function iterationOf(line: string): number | undefined {
  try {
    const { iteration } = jsonOf(line) as { iteration?: unknown };
    return typeof iteration === 'number' ? iteration : undefined;
  } catch {
    return undefined;
  }
}
