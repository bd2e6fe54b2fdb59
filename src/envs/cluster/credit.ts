/**
 * What a decision costs, to the one that made it.
 *
 * A replica without further arrivals is certain: it can be simulated to its end. So at each decision the chosen replica's
 * copy is, and gives the finish of every request on it; the cost of the decision is the cost of the new request and the
 * difference that it makes to the others. Until the replica's next request nothing changes these finishes, so over an
 * episode the costs of all decisions sum to the costs of all requests, each charged to the decision that caused it.
 */
import { Replica } from './replica.ts';
import type { ReplicaSpec } from './replica-model.ts';
import { Progress, type Workload } from './requests.ts';
import type { Cluster } from './simulator.ts';

/** The cost of a request that took so long. */
export type Cost = (latencyS: number) => number;

export class CreditMeter {
  readonly #scratch: readonly Replica[];
  readonly #progress: Progress;
  readonly #cost: Cost;
  /** (count) The finish that each request had when its replica last got one; for those that are not finished. */
  readonly predictedS: Float64Array;
  /** Of the last decision: the new request's own cost, and what it added to the others'. */
  own = 0;
  others = 0;

  constructor(specs: readonly ReplicaSpec[], workload: Workload, cost: Cost) {
    this.#progress = new Progress(workload.count);
    this.#scratch = specs.map(spec => new Replica(spec, workload, this.#progress));
    this.#cost = cost;
    this.predictedS = new Float64Array(workload.count).fill(Number.NaN);
  }

  /** Charges the decision that sent request `id` to a replica; to be called right after it. */
  charge(cluster: Cluster, chosen: number, id: number): void {
    const scratch = this.#scratch[chosen];
    const { arrivalS } = cluster.workload;
    scratch.copyFrom(cluster.replicas[chosen]);
    scratch.drain();
    const { finishS } = this.#progress;
    this.own = this.#cost(finishS[id] - arrivalS[id]);
    let others = 0;
    const look = (other: number): void => {
      const [newS, atS] = [finishS[other], arrivalS[other]];
      if (other !== id) others += this.#cost(newS - atS) - this.#cost(this.predictedS[other] - atS);
      this.predictedS[other] = newS;
    };
    const replica = cluster.replicas[chosen];
    for (let i = 0; i < replica.runningCount; i++) look(replica.running[i]);
    for (let i = 0; i < replica.prefillingCount; i++) look(replica.prefilling[i]);
    for (let i = 0; i < replica.waiting.length; i++) look(replica.waiting.at(i));
    this.others = others;
  }
}
