/** Timing for benchmarks: medians, and ratios of things that are timed in turns, so that a busy moment hits both. */
import { cpus } from 'node:os';
import type { Program, TypedArray } from '../src/engine/index.ts';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Median milliseconds of each task, timed in turns after one unmeasured round. */
export function timeInTurns(rounds: number, tasks: readonly (() => unknown)[]): number[] {
  const times: number[][] = tasks.map(() => []);
  for (let round = -1; round < rounds; round++) {
    tasks.forEach((task, i) => {
      const start = performance.now();
      task();
      if (round >= 0) times[i].push(performance.now() - start);
    });
  }
  return times.map(median);
}

/** A task that runs a program into buffers that it keeps. */
export function runInto(
  program: Program,
  feeds: Record<string, TypedArray>,
): () => Record<string, TypedArray> {
  const into = program.run(feeds);
  return () => program.run(feeds, into);
}

/** The longest run of values in a row of which something holds. */
export function longestStreak<T>(values: readonly T[], holds: (value: T) => boolean): number {
  let [longest, now] = [0, 0];
  for (const value of values) {
    now = holds(value) ? now + 1 : 0;
    longest = Math.max(longest, now);
  }
  return longest;
}

/** One result: a JSON object on a line of its own. */
export function report(result: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

/** What the figures were taken on. */
export function machine(): Record<string, unknown> {
  const [cpu] = cpus();
  return { cpu: cpu?.model.trim(), cores: cpus().length, node: process.version };
}

export const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
