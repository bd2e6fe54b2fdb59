/** A trained policy as a router of the cluster simulator. */
import type { Score } from '../definition.ts';
import { clusterSpaces, newTraffic, noteArrival } from './observation.ts';
import { clusterObserver } from './observer.ts';
import type { ReplicaSpec } from './replica-model.ts';
import type { Router } from './routers.ts';
import type { ClusterScale } from './scale.ts';

/** What a policy needs to route: how it scores, and the cluster that it looks at. */
export interface PolicyRouterOptions {
  readonly name: string;
  readonly specs: readonly ReplicaSpec[];
  readonly scale: ClusterScale;
  /** The log-odds of each replica: of a policy, `policy.score`. */
  readonly score: Score;
}

/** Sends each request where the policy finds it most likely, of the replicas that are up. */
export function policyRouter({ name, specs, scale, score }: PolicyRouterOptions): Router {
  const observe = clusterObserver(specs, scale);
  const { observationSpace } = clusterSpaces(specs.length);
  const obs = new Float32Array(observationSpace.flatSize);
  const logits = new Float32Array(specs.length);
  let traffic = newTraffic(scale.capacityPerS);
  let lastS = 0;
  return {
    name,
    choose(cluster, id) {
      // Time that goes back is another simulation.
      if (cluster.nowS < lastS) traffic = newTraffic(scale.capacityPerS);
      lastS = cluster.nowS;
      noteArrival(traffic, cluster.nowS);
      observe(cluster, id, traffic, obs);
      score(obs, logits);
      let best = -1;
      for (let r = 0; r < specs.length; r++) {
        if (cluster.replicas[r].isUp && (best === -1 || logits[r] > logits[best])) best = r;
      }
      return best;
    },
  };
}
