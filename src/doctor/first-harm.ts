/** Where harm begins: what came before may be gone on from. Runs in a browser. */
import type { Diagnosis } from './findings.ts';

/** The step at which the first critical finding begins; Infinity if there is none. */
export function firstHarm(diagnosis: Pick<Diagnosis, 'findings'> | null): number {
  let first = Number.POSITIVE_INFINITY;
  for (const { severity, firstSeen } of diagnosis?.findings ?? [])
    if (severity === 'critical') first = Math.min(first, firstSeen);
  return first;
}
