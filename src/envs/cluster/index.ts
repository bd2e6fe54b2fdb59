/** A cluster of replicas that serve a language model: its simulation, workloads and routers. */
export type { ClusterDecision, ClusterTimeline } from '../../view/cluster-timeline.ts';
export { type Arrivals, drawOutages } from './arrivals.ts';
export { clusterCapacity, replicaCapacity } from './capacity.ts';
export { checkFits } from './fits.ts';
export { type Hardware, hardwareList, hardwareNamed, hardwareNames, iterationMs } from './hardware.ts';
export type { Lengths } from './lengths.ts';
export type { ClusterReport, ReplicaReport, Spread } from './metrics.ts';
export {
  clusterSpaces,
  newTraffic,
  noteArrival,
  type ObservationScale,
  replicaFeatures,
  sharedFeatures,
  type Traffic,
  writeObservation,
} from './observation.ts';
export { clusterObserver } from './observer.ts';
export { emptyCounts, emptyOutlook, type Outlook, outlookFor, type ReplicaCounts } from './outlook.ts';
export { arrivalsHelp, lengthsHelp, parseArrivals, parseLengths } from './parse.ts';
export { type PolicyRouterOptions, policyRouter } from './policy-router.ts';
export {
  defaultReplica,
  type ReplicaModel,
  type ReplicaSpec,
  replicaModel,
  type SchedulerKind,
} from './replica-model.ts';
export { checkWorkload, emptyWorkload, type Workload } from './requests.ts';
export { makeRouter, type Router, routerKinds } from './routers.ts';
export { type ClusterScale, clusterScale } from './scale.ts';
export { type SimulateOptions, simulate } from './simulate.ts';
export { Cluster, type Outages } from './simulator.ts';
export { TimelineRecorder } from './timeline.ts';
export { atRate, parseTrace, type Trace } from './trace.ts';
export { DEFAULT_LENGTH_ERROR, drawWorkload, estimate, type WorkloadSpec, workloads } from './workloads.ts';
