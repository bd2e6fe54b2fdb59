/** A cluster as an environment's options describe it. */
import { hardwareList } from './hardware.ts';
import type { ClusterOptions } from './options.ts';
import { defaultReplica, type ReplicaSpec } from './replica-model.ts';
import { type ClusterScale, clusterScale } from './scale.ts';
import { type WorkloadSpec, workloads } from './workloads.ts';

/** The replicas of an environment, what arrives there, and what they bear of it. */
export function clusterFor(options: ClusterOptions): {
  readonly specs: readonly ReplicaSpec[];
  readonly workload: WorkloadSpec;
  readonly scale: ClusterScale;
} {
  const specs = hardwareList(options.replicas).map(hardware => ({
    ...defaultReplica,
    scheduler: options.scheduler,
    hardware,
  }));
  const workload = workloads[options.workload];
  return { specs, workload, scale: clusterScale(specs, workload) };
}
