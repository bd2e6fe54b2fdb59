/** What a simulation says of a router, with Vidur's measures. */
import type { Cluster } from './simulator.ts';

/** Of one measure over requests. */
export interface Spread {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** What one replica did in a simulation. */
export interface ReplicaReport {
  readonly hardware: string;
  readonly requests: number;
  /** Share of the time that it was computing. */
  readonly utilisation: number;
  /** Share of its blocks in use, on average over the time. */
  readonly memory: number;
  readonly preemptions: number;
}

/** What came of a simulation. */
export interface ClusterReport {
  /** Requests that were measured: those after the warm-up. */
  readonly requests: number;
  /** From the first arrival to the last token, of all requests. */
  readonly seconds: number;
  /** Seconds to the first token. */
  readonly timeToFirstToken: Spread;
  /** Seconds between two tokens, averaged over each request of at least two. */
  readonly timeBetweenTokens: Spread;
  /** Seconds from arrival to the last token. */
  readonly endToEnd: Spread;
  /** The same for each generated token. */
  readonly normalised: Spread;
  /** Seconds from arrival to the first iteration that works on it. */
  readonly schedulingDelay: Spread;
  readonly requestsPerSecond: number;
  readonly tokensPerSecond: number;
  readonly preemptions: number;
  readonly reroutes: number;
  readonly utilisation: number;
  readonly dollars: number;
  readonly dollarsPerThousandRequests: number;
  /** Outstanding requests, on average over arrivals, in the second and in the last quarter of them. */
  readonly backlog: { readonly early: number; readonly late: number; readonly isGrowing: boolean };
  readonly events: number;
  readonly replicas: readonly ReplicaReport[];
}

/** Mean and percentiles (nearest rank). NaN where there is nothing. */
function spreadOf(values: Float64Array): Spread {
  const sorted = values.slice().sort();
  const at = (share: number): number =>
    sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  let sum = 0;
  for (const value of sorted) sum += value;
  return { mean: sum / sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/** Measures a cluster whose requests are all finished; `outstandingAt` is the number there at each arrival. */
export function reportOf(cluster: Cluster, outstandingAt: Int32Array, warmupShare: number): ClusterReport {
  const { workload, progress, replicas, assigned } = cluster;
  const { count, arrivalS } = workload;
  const from = Math.min(count - 1, Math.floor(count * warmupShare));
  const measured = count - from;
  const column = (of: (id: number) => number): Float64Array =>
    Float64Array.from({ length: measured }, (_, i) => of(from + i));
  const lived = (id: number): number => progress.finishS[id] - arrivalS[id];
  const between: number[] = [];
  for (let id = from; id < count; id++) {
    const tokens = workload.decodeTokens[id];
    if (tokens > 1) between.push((progress.finishS[id] - progress.firstTokenS[id]) / (tokens - 1));
  }
  let endS = 0;
  let tokens = 0;
  for (let id = 0; id < count; id++) {
    endS = Math.max(endS, progress.finishS[id]);
    tokens += workload.decodeTokens[id];
  }
  const seconds = endS - arrivalS[0];
  const routed = new Int32Array(replicas.length);
  for (let id = 0; id < count; id++) routed[assigned[id]]++;
  const dollars = replicas.reduce(
    (sum, { spec }) => sum + (spec.hardware.dollarsPerHour * seconds) / 3600,
    0,
  );
  const each = replicas.map((replica, r) => ({
    hardware: replica.spec.hardware.name,
    requests: routed[r],
    utilisation: replica.busySeconds / seconds,
    memory: replica.blockSeconds / (replica.totalBlocks * seconds),
    preemptions: replica.preemptions,
  }));
  return {
    requests: measured,
    seconds,
    timeToFirstToken: spreadOf(column(id => progress.firstTokenS[id] - arrivalS[id])),
    timeBetweenTokens: spreadOf(Float64Array.from(between)),
    endToEnd: spreadOf(column(lived)),
    normalised: spreadOf(column(id => lived(id) / workload.decodeTokens[id])),
    schedulingDelay: spreadOf(column(id => progress.startS[id] - arrivalS[id])),
    requestsPerSecond: count / seconds,
    tokensPerSecond: tokens / seconds,
    preemptions: each.reduce((sum, { preemptions }) => sum + preemptions, 0),
    reroutes: cluster.reroutes,
    utilisation: each.reduce((sum, { utilisation }) => sum + utilisation, 0) / each.length,
    dollars,
    dollarsPerThousandRequests: (1000 * dollars) / count,
    backlog: backlogOf(outstandingAt, replicas.length),
    events: cluster.events,
    replicas: each,
  };
}

/** Whether requests pile up: a cluster that bears its load has as many there at the end as in the middle. */
function backlogOf(outstandingAt: Int32Array, replicas: number): ClusterReport['backlog'] {
  const quarter = Math.floor(outstandingAt.length / 4);
  const mean = (from: number): number => {
    let sum = 0;
    for (let i = from; i < from + quarter; i++) sum += outstandingAt[i];
    return quarter === 0 ? 0 : sum / quarter;
  };
  const [early, late] = [mean(quarter), mean(3 * quarter)];
  return { early, late, isGrowing: late > 1.5 * early + 10 * replicas };
}
