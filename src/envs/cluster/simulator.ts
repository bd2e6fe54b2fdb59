/**
 * A cluster of replicas in discrete events: arrivals, ends of iterations, failures and recoveries. It stops at every
 * request that needs a replica; whoever drives it says which.
 *
 * Each source of events has at most one that is pending, so the queue of events is one time for each source.
 */
import { fail } from '../errors.ts';
import { checkFits } from './fits.ts';
import { IdQueue } from './id-queue.ts';
import { Replica, type ReplicaState } from './replica.ts';
import type { ReplicaSpec } from './replica-model.ts';
import { checkWorkload, Progress, type Workload } from './requests.ts';

/** When a replica is down: pairs of times in order, down and up again. */
export type Outages = readonly Float64Array[];

export type ClusterState = {
  nowS: number;
  nextArrival: number;
  events: number;
  reroutes: number;
  pending: number[];
  outageAt: number[];
  replicas: ReplicaState[];
  /** Of the requests that have arrived and are not finished, by request. */
  assigned: Int32Array;
  progress: Record<ProgressColumn, Int32Array | Float64Array>;
};

const progressColumns = [
  'generated',
  'joinedAt',
  'prefillNeed',
  'prefillDone',
  'chunk',
  'preemptions',
  'startS',
  'firstTokenS',
  'finishS',
] as const;
type ProgressColumn = (typeof progressColumns)[number];

/** A cluster at one moment, and how it goes on: it stops at every request that needs a replica. */
export class Cluster {
  readonly replicas: readonly Replica[];
  readonly workload: Workload;
  readonly progress: Progress;
  /** (count) The replica that each request is or was on, -1 before. */
  readonly assigned: Int32Array;
  nowS = 0;
  /** Arrivals, ends of iterations, failures and recoveries so far. */
  events = 0;
  /** Requests that had to find another replica because theirs failed. */
  reroutes = 0;
  #nextArrival = 0;
  /** Requests that wait for a decision. */
  readonly #pending = new IdQueue();
  readonly #outages: Outages;
  /** The next entry of each replica's outages. */
  readonly #outageAt: Int32Array;

  constructor(specs: readonly ReplicaSpec[], workload: Workload, outages: Outages = []) {
    if (specs.length === 0)
      fail('option-invalid', 'a cluster needs a replica, this one has none: try h100,2*a100,a40');
    checkWorkload(workload);
    this.workload = workload;
    this.progress = new Progress(workload.count);
    this.replicas = specs.map(spec => new Replica(spec, workload, this.progress));
    this.assigned = new Int32Array(workload.count).fill(-1);
    this.#outages = specs.map((_, r) => outages[r] ?? new Float64Array(0));
    this.#outageAt = new Int32Array(specs.length);
    checkFits(
      this.replicas.map(({ model }) => model),
      workload,
    );
  }

  /** Requests that have arrived and are not finished. */
  get outstanding(): number {
    return this.replicas.reduce((sum, replica) => sum + replica.outstanding, this.#pending.length);
  }

  /** Requests that have arrived. */
  get arrived(): number {
    return this.#nextArrival;
  }

  /** Goes on until a request needs a replica, and returns it; -1 when all have been routed and are finished. */
  nextDecision(): number {
    for (;;) {
      if (this.#pending.length > 0 && this.replicas.some(replica => replica.isUp)) return this.#pending.at(0);
      if (!this.#step(Number.POSITIVE_INFINITY)) return -1;
    }
  }

  /** Goes on until a request needs a replica and returns it; or, once none will arrive, returns -1 with work still to do. */
  nextArrivalDecision(): number {
    while (this.#pending.length === 0 && this.#nextArrival < this.workload.count)
      this.#step(Number.POSITIVE_INFINITY);
    return this.#pending.length > 0 ? this.#pending.at(0) : -1;
  }

  /** Sends the request that `nextDecision` returned to a replica. */
  route(replica: number): void {
    const chosen = this.replicas[replica];
    if (chosen === undefined)
      fail('action-outside', `replica ${replica} is not there: use 0..${this.replicas.length - 1}`);
    if (!chosen.isUp) fail('action-outside', `replica ${replica} is down: choose one that is up`);
    if (this.#pending.length === 0)
      fail('not-reset', 'no request waits for a replica: call nextDecision first');
    const id = this.#pending.shift();
    if (this.assigned[id] !== -1) this.reroutes++;
    this.assigned[id] = replica;
    chosen.add(id, this.nowS);
  }

  save(): ClusterState {
    return {
      nowS: this.nowS,
      nextArrival: this.#nextArrival,
      events: this.events,
      reroutes: this.reroutes,
      pending: this.#pending.toArray(),
      outageAt: [...this.#outageAt],
      replicas: this.replicas.map(replica => replica.save()),
      assigned: this.assigned.slice(0, this.#nextArrival),
      progress: Object.fromEntries(
        progressColumns.map(name => [name, this.progress[name].slice(0, this.#nextArrival)]),
      ) as ClusterState['progress'],
    };
  }

  load(state: ClusterState): void {
    this.nowS = state.nowS;
    this.#nextArrival = state.nextArrival;
    this.events = state.events;
    this.reroutes = state.reroutes;
    this.#pending.clear();
    for (const id of state.pending) this.#pending.push(id);
    this.#outageAt.set(state.outageAt);
    this.assigned.fill(-1);
    this.assigned.set(state.assigned);
    for (const name of progressColumns) this.progress[name].set(state.progress[name]);
    this.replicas.forEach((replica, r) => {
      replica.load(state.replicas[r]);
    });
  }

  /** The next event; false where there is none before the limit. Iterations that end with an arrival end before it. */
  #step(untilS: number): boolean {
    const { replicas } = this;
    let source = -1;
    let atS = Number.POSITIVE_INFINITY;
    for (let r = 0; r < replicas.length; r++) {
      const busyUntilS = replicas[r].busyUntilS;
      if (busyUntilS < atS) {
        atS = busyUntilS;
        source = r;
      }
    }
    const hasWork =
      atS < Number.POSITIVE_INFINITY || this.#nextArrival < this.workload.count || this.#pending.length > 0;
    if (hasWork) {
      for (let r = 0; r < replicas.length; r++) {
        const outageS = this.#outages[r][this.#outageAt[r]];
        if (outageS !== undefined && outageS < atS) {
          atS = outageS;
          source = replicas.length + r;
        }
      }
    }
    const arrivalS = this.workload.arrivalS[this.#nextArrival];
    if (arrivalS !== undefined && arrivalS < atS) {
      if (arrivalS > untilS) return false;
      this.nowS = arrivalS;
      this.#pending.push(this.#nextArrival++);
      this.events++;
      return true;
    }
    if (source === -1 || atS > untilS) return false;
    this.nowS = atS;
    this.events++;
    if (source < replicas.length) replicas[source].advance();
    else this.#outage(source - replicas.length);
    return true;
  }

  /** A replica fails, and its requests wait for another; or it is back. */
  #outage(r: number): void {
    const replica = this.replicas[r];
    if (this.#outageAt[r]++ % 2 === 1) {
      replica.recover();
      return;
    }
    for (const id of replica.breakDown()) this.#pending.push(id);
  }
}
