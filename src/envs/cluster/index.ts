/** A cluster of replicas that serve a language model: its simulation, workloads and routers. */
export { type Arrivals, drawOutages } from './arrivals.ts';
export { clusterCapacity, replicaCapacity } from './capacity.ts';
export { type Hardware, hardwareList, hardwareNamed, hardwareNames, iterationMs } from './hardware.ts';
export type { Lengths } from './lengths.ts';
export type { ClusterReport, ReplicaReport, Spread } from './metrics.ts';
export { arrivalsHelp, lengthsHelp, parseArrivals, parseLengths } from './parse.ts';
export { defaultReplica, type ReplicaSpec, type SchedulerKind } from './replica.ts';
export { checkWorkload, emptyWorkload, type Workload } from './requests.ts';
export { makeRouter, type Router, routerKinds } from './routers.ts';
export { type SimulateOptions, simulate } from './simulate.ts';
export { Cluster, type Outages } from './simulator.ts';
export { type Timeline, type TimelineDecision, TimelineRecorder } from './timeline.ts';
export { atRate, parseTrace } from './trace.ts';
export { DEFAULT_LENGTH_ERROR, drawWorkload, estimate, type WorkloadSpec, workloads } from './workloads.ts';
