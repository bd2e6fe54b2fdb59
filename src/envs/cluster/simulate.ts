/** A whole simulation: a cluster, a workload and a router. */
import { type ClusterReport, reportOf } from './metrics.ts';
import type { ReplicaSpec } from './replica-model.ts';
import type { Workload } from './requests.ts';
import type { Router } from './routers.ts';
import { Cluster, type Outages } from './simulator.ts';
import type { TimelineRecorder } from './timeline.ts';

/** What is simulated, and who routes. */
export interface SimulateOptions {
  readonly replicas: readonly ReplicaSpec[];
  readonly workload: Workload;
  readonly router: Router;
  readonly outages?: Outages;
  /** Share of the requests, the first ones, that are not measured: the cluster begins empty. */
  readonly warmupShare?: number;
  /** Watches while it goes on. */
  readonly timeline?: TimelineRecorder;
}

/** Routes every request and goes on until all are finished. */
export function simulate(options: SimulateOptions): ClusterReport {
  const { router, workload, timeline } = options;
  const cluster = new Cluster(options.replicas, workload, options.outages);
  const outstandingAt = new Int32Array(workload.count);
  for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision()) {
    outstandingAt[id] = cluster.outstanding;
    timeline?.sample(cluster);
    cluster.route(router.choose(cluster, id));
  }
  timeline?.end(cluster);
  return reportOf(cluster, outstandingAt, options.warmupShare ?? 0.1);
}
