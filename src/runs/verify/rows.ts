import { findMetric } from '../../metrics/registry.ts';
import { runPaths } from '../layout.ts';
import { boundsByMetric, boundsOf } from './bounds.ts';
import type { Evidence, Tell } from './evidence.ts';

/** Rows are complete and in order, their names are known, and each is within the bound that held for it. */
export function verifyRows({ run, isWhole, rows, events }: Evidence, tell: Tell): void {
  const { metrics, manifest } = runPaths(run.dir);
  const bounds = Object.entries(boundsByMetric).map(
    ([metric, key]) => ({ metric, key, at: boundsOf(run.manifest, events, key) }) as const,
  );
  const unknown = new Set<string>();
  // Another trainer has names of its own.
  const isOurs = run.manifest.controls === undefined;
  let [iteration, step] = [
    0,
    run.manifest.parent === null || !run.manifest.beginning?.forked ? 0 : run.manifest.parent.step,
  ];
  for (const { line, item: row } of rows) {
    const place = `line ${line}`;
    const { 'train/iteration': now, 'train/step': steps } = row;
    if (now !== iteration + 1) tell(metrics, place, `train/iteration is ${now}, expected ${iteration + 1}`);
    if (steps <= step) tell(metrics, place, `train/step is ${steps}, expected more than ${step}`);
    [iteration, step] = [now, steps];
    for (const { metric, key, at } of bounds) {
      const [kl, bound] = [row[metric], at(now)];
      if (!isWithin(kl, bound))
        tell(metrics, place, `${metric} is ${kl}, expected at most the bound of ${bound} (${key})`);
    }
    for (const name of Object.keys(row)) {
      if (!isOurs || unknown.has(name) || findMetric(name) !== undefined) continue;
      unknown.add(name);
      tell(metrics, place, `${name} is not in the registry, expected a metric that this version knows`);
    }
  }
  if (!isWhole) return;
  const { iteration: saidIteration, step: saidStep } = run.manifest;
  if (saidIteration !== iteration && (iteration > 0 || saidIteration > 0))
    tell(manifest, 'iteration', `${saidIteration}, expected ${iteration}, as the last row says`);
  if (rows.length > 0 && saidStep !== step)
    tell(manifest, 'step', `${saidStep}, expected ${step}, as the last row says`);
}

/**
 * Without any tolerance: the guard holds its bound with a margin of a ten-thousandth and 5e-8 for the rounding of single
 * precision (src/kl/guard.ts), so that what it wrote is never above it.
 */
const isWithin = (kl: number | undefined, bound: number | null): boolean =>
  bound === null || kl === undefined || kl <= bound;
