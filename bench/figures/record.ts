/** What was seen: one line a finished run, in a file that is part of the project. Tables and pictures are made from it. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Seen } from './seeds.ts';
import type { FigureTask } from './tasks.ts';

/** One run, trained to its end and judged. */
export interface RunRecord extends Seen {
  /** What was tried: see tasks.ts. */
  readonly task: string;
  /** Settings beside the preset's. */
  readonly changes: Readonly<Record<string, unknown>>;
  readonly steps: number;
  /** The mean return of episodes of its own with the most likely actions, after the last step. */
  readonly evaluated: number;
  readonly episodes: number;
  /** The mean return of the last 100 episodes of training, noise in the actions included. */
  readonly trained: number;
  readonly guard: number | null;
  readonly klLargest: number;
  /** What the largest update was before the guard. */
  readonly klLargestRaw: number;
  readonly klMedian: number;
  /** Rows in a row with `kl/step` above .03, at most. */
  readonly klLongest: number;
  readonly updates: number;
  /** Updates that the guard has changed. */
  readonly guarded: number;
  readonly verdict: string;
  readonly findings: readonly string[];
  readonly minutes: number;
  readonly commit: string;
  /** Steps and mean returns of training, some forty points. */
  readonly curve: readonly (readonly [step: number, trained: number])[];
  /** Legged robots: of the evaluated episodes. */
  readonly walks?: WalkRecord;
}

export interface WalkRecord {
  readonly walked: number;
  readonly steady: number;
  readonly whole: number;
  readonly speedMean: number;
  readonly speedLeast: number;
  readonly speedMost: number;
}

const RECORDS = fileURLToPath(new URL('records.jsonl', import.meta.url));
const BEFORE = fileURLToPath(new URL('seen-before.json', import.meta.url));

/** All that were written; a half line that a kill left is passed over. Of a run that was done twice the newer one stands. */
export function readRecords(path = RECORDS): RunRecord[] {
  if (!existsSync(path)) return [];
  const found = new Map<string, RunRecord>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    try {
      const record = JSON.parse(line) as RunRecord;
      found.set(keyOf(record), record);
    } catch {
      // The end of a line that was never finished.
    }
  }
  return [...found.values()];
}

export const keyOf = ({ task, preset, seed }: Pick<RunRecord, 'task' | 'preset' | 'seed'>): string =>
  `${task} ${preset} ${seed}`;

/** Whether it is of a task as that is now: its settings beside the preset's, and how many episodes judge it. */
export const isOfTask = (record: RunRecord, task: Pick<FigureTask, 'id' | 'changes' | 'episodes'>): boolean =>
  record.task === task.id &&
  record.episodes === task.episodes &&
  JSON.stringify(record.changes) === JSON.stringify(task.changes);

/** On a line of its own, also where a kill left half of one before it. */
export function addRecord(record: RunRecord, path = RECORDS): void {
  const broken = existsSync(path) && !/(^|\n)$/.test(readFileSync(path, 'utf8'));
  appendFileSync(path, `${broken ? '\n' : ''}${JSON.stringify(record)}\n`);
}

/** Seeds that presets were seen with before there were records: environment, preset's hash, first and last seed. */
export function seenBefore(): Seen[] {
  const blocks = JSON.parse(readFileSync(BEFORE, 'utf8')) as {
    readonly env: string;
    readonly preset: string;
    readonly seeds: readonly [first: number, last: number];
  }[];
  return blocks.flatMap(({ env, preset, seeds: [first, last] }) =>
    Array.from({ length: last - first + 1 }, (_, i) => ({ env, preset, seed: first + i })),
  );
}
