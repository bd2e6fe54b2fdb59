/** A trained policy as a router of the cluster simulator. */
import { compile, Graph } from '../engine/index.ts';
import {
  type ClusterScale,
  clusterObserver,
  clusterSpaces,
  newTraffic,
  noteArrival,
  type ReplicaSpec,
  type Router,
} from '../envs/cluster/index.ts';
import { clusterDefinition } from '../envs/index.ts';
import { ObservationNormaliser } from '../rollout/normalise.ts';
import { openRun } from '../runs/index.ts';
import type { ActorCritic } from './actor-critic.ts';
import { networkFor } from './network.ts';
import { TrainError } from './train-error.ts';
import { trainSchema } from './train-schema.ts';
import { readWeights, requireSameScale } from './warm-start.ts';

export interface PolicyRouterOptions {
  readonly name: string;
  /** Made for as many replicas as there are specs. */
  readonly model: ActorCritic;
  readonly params: Float32Array;
  /** Where it was trained with one. */
  readonly normaliser?: ObservationNormaliser | undefined;
  readonly specs: readonly ReplicaSpec[];
  readonly scale: ClusterScale;
}

export interface PolicyRouter extends Router {
  /** Other parameters of the same network, from the next decision on. */
  use(params: Float32Array): void;
  dispose(): void;
}

/** Sends each request where the policy finds it most likely, of the replicas that are up. */
export async function policyRouter(options: PolicyRouterOptions): Promise<PolicyRouter> {
  const { model, specs, scale, normaliser } = options;
  let { params } = options;
  const g = new Graph();
  const input = g.input('observation', [1, model.observationSize]);
  const weights = model.layout.tensors(g.input('params', [model.layout.size]));
  g.output('logits', model.policy(weights, input));
  const program = await compile(g, { checkFeeds: false });
  const observe = clusterObserver(specs, scale);
  const obs = new Float32Array(model.observationSize);
  const logits = new Float32Array(specs.length);
  let traffic = newTraffic(scale.capacityPerS);
  let lastS = 0;
  return {
    name: options.name,
    choose(cluster, id) {
      // Time that goes back is another simulation.
      if (cluster.nowS < lastS) traffic = newTraffic(scale.capacityPerS);
      lastS = cluster.nowS;
      noteArrival(traffic, cluster.nowS);
      observe(cluster, id, traffic, obs);
      normaliser?.apply(obs, obs);
      program.run({ params, observation: obs }, { logits });
      let best = -1;
      for (let r = 0; r < specs.length; r++) {
        if (cluster.replicas[r]!.isUp && (best === -1 || logits[r]! > logits[best]!)) best = r;
      }
      return best;
    },
    use(others) {
      params = others;
    },
    dispose: () => program.dispose(),
  };
}

/** The policy of a run as a router, for any number of replicas that its network can score. */
export async function routerOfRun(
  dir: string,
  {
    specs,
    scale,
    checkpoint,
  }: Pick<PolicyRouterOptions, 'specs' | 'scale'> & { checkpoint?: 'last' | 'best' | number },
): Promise<PolicyRouter> {
  const { id, manifest } = openRun(dir);
  if (manifest.environment.id !== clusterDefinition.id)
    throw new TrainError(
      `${id} was trained in ${manifest.environment.id}, which routes nothing: use a run of ${clusterDefinition.id}`,
    );
  const { env: _, ...settings } = manifest.config as Record<string, unknown>;
  const spaces = clusterSpaces(specs.length);
  const config = trainSchema.parse(settings);
  const model = networkFor(config, spaces.observationSpace, spaces.actionSpace);
  const weights = readWeights(dir, checkpoint);
  const params = weights.fit(model.layout);
  requireSameScale(weights, dir, config.normaliseObservations, model.observationSize);
  let normaliser: ObservationNormaliser | undefined;
  if (weights.observationMoments) {
    normaliser = new ObservationNormaliser(model.observationSize);
    normaliser.moments.restore(weights.observationMoments);
  }
  return policyRouter({ name: id, model, params, normaliser, specs, scale });
}
