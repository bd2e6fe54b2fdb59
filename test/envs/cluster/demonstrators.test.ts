import { describe, expect, it } from 'vitest';
import { clusterDemonstrators } from '../../../src/envs/cluster/demonstrators.ts';
import {
  Cluster,
  clusterObserver,
  clusterScale,
  clusterSpaces,
  defaultReplica,
  drawWorkload,
  hardwareList,
  makeRouter,
  newTraffic,
  workloads,
} from '../../../src/envs/cluster/index.ts';
import { replicaFeatures } from '../../../src/envs/cluster/observation.ts';
import { Rng } from '../../../src/random/index.ts';

describe('demonstrators', () => {
  it('choose from the observation what the rules choose from the cluster', () => {
    const four = hardwareList('h100,2*a100,a40').map(hardware => ({ ...defaultReplica, hardware }));
    const scale = clusterScale(four, workloads.conversation);
    const observe = clusterObserver(four, scale);
    const workload = drawWorkload(
      workloads.conversation,
      { count: 300, ratePerS: scale.capacityPerS },
      new Rng(9),
    );
    const obs = new Float32Array(clusterSpaces(4).observationSpace.flatSize);
    for (const name of ['least-finish', 'least-requests', 'least-added', 'round-robin']) {
      const cluster = new Cluster(four, workload);
      const rule = makeRouter(name, new Rng(0));
      const act = clusterDemonstrators[name].make({} as never, new Rng(0));
      const action = new Float32Array(1);
      let same = 0;
      for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision()) {
        observe(cluster, id, newTraffic(1), obs);
        act(obs, action);
        const chosen = rule.choose(cluster, id);
        if (chosen === action[0]) same++;
        cluster.route(chosen);
      }
      // Two that are alike to single precision may change places.
      expect(same / 300, name).toBeGreaterThan(0.99);
    }
  });

  it('never choose a replica that is down', () => {
    const obs = new Float32Array(clusterSpaces(2).observationSpace.flatSize);
    obs[replicaFeatures.indexOf('up')] = 1;
    const logits = new Float32Array(2);
    for (const name of ['least-finish', 'least-requests', 'least-tokens', 'least-added']) {
      clusterDemonstrators[name].logits!({} as never)(obs, logits);
      expect([...logits], name).toEqual([expect.closeTo(0), -30]);
    }
  });
});
