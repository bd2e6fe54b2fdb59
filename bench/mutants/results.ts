/** What became of mutants, kept beside other programs' temporary files, so that a bench that was killed goes on. */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mutant } from './mutant.ts';

export type Outcome = 'killed' | 'timeout' | 'survived';

/** A line of the report. */
export interface Result {
  readonly mutant: string;
  readonly folder: string;
  readonly why: string;
  readonly from: string;
  readonly to: string;
  readonly outcome: Outcome;
  readonly seconds: number;
}

export interface Results {
  /** Changes with anything that the result depends on, but for what the tests import besides. */
  keyOf(mutant: Mutant, texts: readonly string[]): string;
  get(key: string): Result | undefined;
  add(key: string, result: Result): void;
}

/** Opens what earlier runs found; `fresh` looks at none of it. */
export function openResults(fresh: boolean): Results {
  const dir = join(tmpdir(), 'keel-mutants-results');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, 'results.jsonl');
  const lines = fresh || !existsSync(file) ? [] : readFileSync(file, 'utf8').split('\n');
  const known = new Map(
    lines.flatMap(line => {
      try {
        const { key, ...result } = JSON.parse(line) as Result & { key: string };
        return [[key, result] as const];
      } catch {
        // Half a line that a kill left.
        return [];
      }
    }),
  );
  return {
    keyOf: ({ from, to, tests }, texts) =>
      createHash('sha256')
        .update(JSON.stringify([from, to, tests, texts]))
        .digest('hex'),
    get: key => known.get(key),
    add: (key, result) => appendFileSync(file, `\n${JSON.stringify({ key, ...result })}`),
  };
}
