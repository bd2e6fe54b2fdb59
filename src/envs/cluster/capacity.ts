/** How many requests a second a cluster can bear, which is what a load is a share of. */
import { Rng } from '../../random/index.ts';
import type { ReplicaSpec } from './replica.ts';
import { Cluster } from './simulator.ts';
import { drawWorkload, type WorkloadSpec } from './workloads.ts';

/** Enough that the answer moves by less than 2 % with the seed. */
const REQUESTS = 2000;

/** Requests a second that one replica finishes when it always has more to do, past the start and before the end. */
export function replicaCapacity(spec: ReplicaSpec, workload: WorkloadSpec, seed = 0): number {
  // All arrive within the first moment.
  const drawn = drawWorkload(workload, { count: REQUESTS, ratePerS: 1e9, lengthError: 0 }, new Rng(seed));
  const cluster = new Cluster([spec], drawn);
  while (cluster.nextDecision() !== -1) cluster.route(0);
  const finishes = cluster.progress.finishS.slice().sort();
  const [from, to] = [Math.floor(REQUESTS * 0.1), Math.floor(REQUESTS * 0.9)];
  return (to - from) / (finishes[to]! - finishes[from]!);
}

/** The sum over replicas. Replicas that are alike are measured once. */
export function clusterCapacity(specs: readonly ReplicaSpec[], workload: WorkloadSpec): number {
  const known = new Map<string, number>();
  let sum = 0;
  for (const spec of specs) {
    const key = JSON.stringify(spec);
    const capacity = known.get(key) ?? replicaCapacity(spec, workload);
    known.set(key, capacity);
    sum += capacity;
  }
  return sum;
}
