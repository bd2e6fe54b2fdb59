/** Whether a fault did harm: what completions are truly worth at the end, against healthy runs of the same task. */
import { round } from '../../measure.ts';
import type { LmRun } from './cache.ts';

type Rows = readonly Readonly<Record<string, number>>[];

/** What completions were truly worth, whatever reward they got, in the last fifth of so many rows. */
export function lastScore(rows: Rows, count = rows.length): number | null {
  const scores = rows
    .slice(Math.floor(count * 0.8), count)
    .map(row => row['also/score'])
    .filter(Number.isFinite);
  return scores.length === 0 ? null : round(scores.reduce((a, b) => a + b, 0) / scores.length, 3);
}

/** How far below the worst healthy run still counts as no harm: batches of 16 prompts are noisy. */
const SLACK = 0.03;

/** The runs with each fault that did no harm marked: one as good as the worst usual run of its task, at the same length. */
export function markHarmless(runs: readonly LmRun[]): LmRun[] {
  return runs.map(run => ({ ...run, label: { ...run.label, harmless: isHarmless(run, runs) } }));
}

function isHarmless({ label, rows }: LmRun, all: readonly LmRun[]): boolean {
  if (label.fault === null || label.error !== null) return false;
  const own = lastScore(rows);
  const healthy = all
    .filter(other => other.label.variant === 'healthy' && other.label.task === label.task)
    .map(other => lastScore(other.rows, rows.length))
    .filter(value => value !== null);
  return own !== null && healthy.length > 0 && own >= Math.min(...healthy) - SLACK;
}
