/** What is usual for a workload on a cluster: the units of observations and costs. */
import { Rng } from '../../random/rng.ts';
import { capacityRequests, replicaCapacity } from './capacity.ts';
import { checkFits } from './fits.ts';
import type { ObservationScale } from './observation.ts';
import { type ReplicaSpec, replicaModel } from './replica-model.ts';
import { drawWorkload, type WorkloadSpec } from './workloads.ts';

/** What is usual for a workload on a cluster. */
export interface ClusterScale extends ObservationScale {
  /** Seconds that a request of these lengths takes on idle replicas, averaged as they would share all requests. */
  idleS(promptTokens: number, decodeTokens: number): number;
}

/** Measures it: how many requests the replicas bear, and how long a request takes when they are idle. */
export function clusterScale(specs: readonly ReplicaSpec[], workload: WorkloadSpec): ClusterScale {
  const models = specs.map(replicaModel);
  // Before they are measured one by one, where nobody would know of the others.
  checkFits(models, capacityRequests(workload));
  const capacities = specs.map(spec => replicaCapacity(spec, workload));
  const capacityPerS = capacities.reduce((a, b) => a + b, 0);
  const idleS = (promptTokens: number, decodeTokens: number): number => {
    let mean = 0;
    for (let r = 0; r < models.length; r++) {
      const { seconds, secondsPerContextToken, prefillAttentionS } = models[r];
      const prefillS = seconds(promptTokens) + prefillAttentionS(0, promptTokens);
      const tokenS = seconds(1) + (promptTokens + 0.5 * decodeTokens) * secondsPerContextToken;
      mean += (capacities[r] / capacityPerS) * (prefillS + (decodeTokens - 1) * tokenS);
    }
    return mean;
  };
  return { capacityPerS, idleS, referenceS: idleS(...meanLengths(workload)) };
}

/** Mean lengths of a workload's requests, as whole numbers. */
function meanLengths(workload: WorkloadSpec): [number, number] {
  const drawn = drawWorkload(workload, { count: 2000, ratePerS: 1 }, new Rng(0));
  const mean = (tokens: Int32Array): number => Math.round(tokens.reduce((a, b) => a + b, 0) / tokens.length);
  return [mean(drawn.promptTokens), mean(drawn.decodeTokens)];
}
