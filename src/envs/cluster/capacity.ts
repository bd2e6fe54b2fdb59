/** How many requests a second a cluster can bear, which is what a load is a share of. */
import { Rng } from '../../random/rng.ts';
import type { ReplicaSpec } from './replica-model.ts';
import type { Workload } from './requests.ts';
import { Cluster } from './simulator.ts';
import { drawWorkload, type WorkloadSpec } from './workloads.ts';

/** Enough that the answer moves by less than 2 % with the seed. */
const REQUESTS = 2000;

/** Measured once in a thread: environments ask for it whenever they are made. */
const measured = new Map<string, number>();

/** Requests a second that one replica finishes when it always has more to do, past the start and before the end. */
export function replicaCapacity(spec: ReplicaSpec, workload: WorkloadSpec): number {
  const key = JSON.stringify([spec, workload.prompt, workload.decode]);
  let capacity = measured.get(key);
  if (capacity === undefined) {
    capacity = measure(spec, workload);
    measured.set(key, capacity);
  }
  return capacity;
}

/** What capacities are measured with: all arrive within the first moment. */
export function capacityRequests(workload: WorkloadSpec): Workload {
  return drawWorkload(
    { ...workload, arrivals: { kind: 'poisson' } },
    { count: REQUESTS, ratePerS: 1e9, lengthError: 0 },
    new Rng(0),
  );
}

function measure(spec: ReplicaSpec, workload: WorkloadSpec): number {
  const cluster = new Cluster([spec], capacityRequests(workload));
  while (cluster.nextDecision() !== -1) cluster.route(0);
  const finishes = cluster.progress.finishS.slice().sort();
  const [from, to] = [Math.floor(REQUESTS * 0.1), Math.floor(REQUESTS * 0.9)];
  return (to - from) / (finishes[to] - finishes[from]);
}

/** The sum over replicas. */
export function clusterCapacity(specs: readonly ReplicaSpec[], workload: WorkloadSpec): number {
  return specs.reduce((sum, spec) => sum + replicaCapacity(spec, workload), 0);
}
