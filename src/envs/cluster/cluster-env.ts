import { Rng, type RngState } from '../../random/rng.ts';
import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { fail } from '../errors.ts';
import { checkAlike } from '../plain-data.ts';
import { simulation } from '../simulation.ts';
import { CreditMeter } from './credit.ts';
import { clusterDemonstrators } from './demonstrators.ts';
import { clusterFor } from './described.ts';
import { clusterSpaces, newTraffic, noteArrival, type Traffic } from './observation.ts';
import { clusterObserver } from './observer.ts';
import type { ClusterOptions } from './options.ts';
import { clusterRecording } from './recording.ts';
import { defaultReplica } from './replica-model.ts';
import { Cluster, type ClusterState } from './simulator.ts';
import { DEFAULT_LENGTH_ERROR, drawWorkload } from './workloads.ts';

interface Episode {
  /** The randomness that its requests were drawn from, to draw them again. */
  readonly drawnFrom: RngState;
  readonly load: number;
  readonly cluster: Cluster;
  readonly meter: CreditMeter;
  readonly traffic: Traffic;
  /** The request that waits for its replica. */
  request: number;
}

type SavedEpisode = {
  drawnFrom: RngState;
  load: number;
  cluster: ClusterState;
  predictedS: Float64Array;
  traffic: Traffic;
  request: number;
};

/**
 * Cluster-v0: choose a replica for each request that arrives at a cluster that serves a language model.
 *
 * **Actions** `Discrete(replicas)`: the replica.
 *
 * **Observations** `Dict(items: Box(replicas x 21), shared: Box(6))`: a row for each replica about this request there,
 * then numbers for all (observation.ts names them). Answers' lengths are estimates with the error of the option. A
 * policy with the network `set` scores rows with the same weights, so it runs on any number of replicas.
 *
 * **Reward** of a decision: minus the cost of the request's own end-to-end latency, minus what it adds to the costs of the
 * others on its replica, both as they would come true without further arrivals (credit.ts): over an episode they sum to
 * the costs of all requests, each at the decision that caused it. The cost of a latency l, in units of what an average
 * request takes on an idle replica, is l + tail l²/2; with `sloS`, 1 if it is later than that and 0 otherwise. What the
 * same request would cost on idle replicas, which no decision changes, is added back.
 *
 * | term | reward |
 * |---|---|
 * | `own` | minus the request's own cost, plus what it would cost on idle replicas |
 * | `others` | minus what it adds to the others; 0 with `credit: own` |
 *
 * **Start** an empty cluster; the load of the episode is uniform in load ± loadSpread, as a share of what the cluster
 * bears (capacity.ts).
 *
 * **End** truncated after `requests` decisions: the stream goes on.
 *
 * **Versions** v0.
 */
export const clusterDefinition = defineEnv<ClusterOptions>({
  id: 'Cluster-v0',
  description: 'Route requests to the replicas of a cluster that serves a language model.',
  options: {
    replicas: { default: 'h100,2*a100,a40', doc: 'hardware of each replica, as in keel simulate cluster' },
    scheduler: { default: 'vllm', doc: "the replicas' own scheduler", oneOf: ['vllm', 'sarathi'] },
    workload: { default: 'conversation', doc: 'what arrives', oneOf: ['conversation', 'code'] },
    load: { default: 0.8, doc: 'mean arrivals as a share of what the cluster bears', min: 0.01, max: 5 },
    loadSpread: { default: 0.15, doc: 'how far the load of an episode may be off that', min: 0, max: 2 },
    requests: { default: 2000, doc: 'decisions of an episode', min: 1, max: 1_000_000, integer: true },
    lengthError: {
      default: DEFAULT_LENGTH_ERROR,
      doc: 'how far off the estimates of answers are: std of their logarithm',
      min: 0,
      max: 3,
    },
    tail: { default: 0.5, doc: 'weight of the square of a latency in its cost', min: 0, max: 100 },
    sloS: { default: 0, doc: 'a deadline in seconds: its misses are the cost; 0 for none', min: 0, max: 1e6 },
    credit: { default: 'marginal', doc: 'whether the delay of others counts', oneOf: ['marginal', 'own'] },
  },
  maxEpisodeSteps: null,
  demonstrators: clusterDemonstrators,
  // Episodes have loads of their own, so the best return is the lightest load's: the last policy is the best trained.
  checkpoint: 'last',
  recording: clusterRecording,
  make: options => {
    if (options.load - options.loadSpread <= 0)
      fail(
        'option-invalid',
        `load ${options.load} less loadSpread ${options.loadSpread} leaves no arrivals: use a smaller loadSpread`,
      );
    const { specs, workload, scale } = clusterFor(options);
    const { capacityPerS, referenceS, idleS } = scale;
    const { tail, sloS } = options;
    const cost =
      sloS > 0
        ? (latencyS: number): number => (latencyS > sloS ? 1 : 0)
        : (latencyS: number): number => {
            const relative = latencyS / referenceS;
            return relative + 0.5 * tail * relative * relative;
          };
    const observe = clusterObserver(specs, scale);

    const begin = (drawnFrom: RngState, load: number): Episode => {
      const ratePerS = load * capacityPerS;
      const drawn = drawWorkload(
        workload,
        { count: options.requests + 1, ratePerS, lengthError: options.lengthError },
        Rng.fromState(drawnFrom),
      );
      const cluster = new Cluster(specs, drawn);
      return {
        drawnFrom,
        load,
        cluster,
        meter: new CreditMeter(specs, drawn, cost),
        traffic: newTraffic(ratePerS),
        request: -1,
      };
    };
    const arrive = (episode: Episode): void => {
      episode.request = episode.cluster.nextArrivalDecision();
      noteArrival(episode.traffic, episode.cluster.nowS);
    };
    const start = (rng: Rng): Episode => {
      const load = options.load + options.loadSpread * (2 * rng.uniform() - 1);
      const episode = begin(rng.split(1)[0].state(), load);
      arrive(episode);
      return episode;
    };
    const save = ({ drawnFrom, load, cluster, meter, traffic, request }: Episode): SavedEpisode => {
      const saved = cluster.save();
      return {
        drawnFrom,
        load,
        cluster: saved,
        predictedS: meter.predictedS.slice(0, saved.nextArrival),
        traffic: { ...traffic },
        request,
      };
    };
    return simulation<Episode>({
      ...clusterSpaces(specs.length),
      rewardTerms: ['own', 'others'],
      start,
      observe({ cluster, request, traffic }, obs) {
        observe(cluster, request, traffic, obs);
        return undefined;
      },
      step(episode, action, result) {
        const { cluster, meter, request } = episode;
        const chosen = action[0];
        cluster.route(chosen);
        meter.charge(cluster, chosen, request);
        const { promptTokens, decodeTokens } = cluster.workload;
        result.rewardTerms[0] = cost(idleS(promptTokens[request], decodeTokens[request])) - meter.own;
        result.rewardTerms[1] = options.credit === 'marginal' ? 0 - meter.others : 0;
        arrive(episode);
        result.truncated = cluster.arrived > options.requests;
      },
      save,
      load(saved) {
        checkAlike(saved, save(start(new Rng(0))), 'state');
        const fields = saved as SavedEpisode;
        checkSaved(fields, specs.length, options.requests);
        const episode = begin(fields.drawnFrom, fields.load);
        episode.cluster.load(fields.cluster);
        episode.meter.predictedS.set(fields.predictedS);
        Object.assign(episode.traffic, fields.traffic);
        episode.request = fields.request;
        return episode;
      },
    });
  },
});

/** {@link clusterDefinition} */
export function cluster(options: MakeOptions<ClusterOptions> = {}): MadeEnv {
  return createEnv(clusterDefinition, options);
}

/** Refuses numbers of a file that would reach outside of the columns. */
function checkSaved({ cluster, request }: SavedEpisode, replicas: number, requests: number): void {
  const { nextArrival, replicas: states } = cluster;
  const refuse = (what: string): never =>
    fail('state-invalid', `state.${what}: the state is of other options, or damaged`);
  if (!(Number.isInteger(nextArrival) && nextArrival >= 1 && nextArrival <= requests + 1))
    refuse(`cluster.nextArrival is ${nextArrival}, not in 1..${requests + 1}`);
  if (states.length !== replicas) refuse(`cluster.replicas has ${states.length} replicas, not ${replicas}`);
  const arrived = (id: number): boolean => Number.isInteger(id) && id >= 0 && id < nextArrival;
  if (!arrived(request)) refuse(`request is ${request}, which has not arrived`);
  for (const { waiting, prefilling, running } of states) {
    if (![...waiting, ...prefilling, ...running, ...cluster.pending].every(arrived))
      refuse('cluster.replicas holds requests that have not arrived');
    if (Math.max(prefilling.length, running.length) > defaultReplica.maxBatch)
      refuse('cluster.replicas holds more requests than a batch');
  }
}
