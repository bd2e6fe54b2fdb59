/** Observations of a simulated cluster. */
import { type ObservationScale, type Traffic, writeObservation } from './observation.ts';
import { countsOf, emptyCounts, emptyOutlook } from './outlook.ts';
import { type ReplicaSpec, replicaModel } from './replica-model.ts';
import type { Cluster } from './simulator.ts';

/** Writes what a policy sees when a request waits for its replica. */
export function clusterObserver(
  specs: readonly ReplicaSpec[],
  scale: ObservationScale,
): (cluster: Cluster, request: number, traffic: Traffic, obs: Float32Array) => void {
  const models = specs.map(replicaModel);
  const counts = specs.map(emptyCounts);
  const outlooks = specs.map(emptyOutlook);
  return (cluster, request, traffic, obs) => {
    const { workload, progress, replicas } = cluster;
    for (let r = 0; r < specs.length; r++) countsOf(cluster, replicas[r], counts[r]);
    // A request that lost its replica comes with what it has: that is computed again, and the rest is left.
    const generated = progress.generated[request];
    const promptTokens = workload.promptTokens[request] + generated;
    const estimatedTokens = Math.max(1, workload.estimatedTokens[request] - generated);
    writeObservation({ models, counts, outlooks, promptTokens, estimatedTokens, traffic, scale }, obs);
  };
}
