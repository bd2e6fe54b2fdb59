/** What Cluster-v0 can be made with; cluster-env.ts says what each means. */
import type { SchedulerKind } from './replica-model.ts';
import type { workloads } from './workloads.ts';

/** Options of Cluster-v0; the definition says what each does. */
export type ClusterOptions = {
  readonly replicas: string;
  readonly scheduler: SchedulerKind;
  readonly workload: keyof typeof workloads;
  readonly load: number;
  readonly loadSpread: number;
  readonly requests: number;
  readonly lengthError: number;
  readonly tail: number;
  readonly sloS: number;
  readonly credit: 'marginal' | 'own';
};
