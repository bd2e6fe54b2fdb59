import {
  Cluster,
  defaultReplica,
  emptyWorkload,
  type Hardware,
  hardwareList,
  type Outages,
  type ReplicaSpec,
  type Workload,
} from '../../../src/envs/cluster/index.ts';

export const specsOf = (list: string, changes: Partial<ReplicaSpec> = {}): ReplicaSpec[] =>
  hardwareList(list).map(hardware => ({ ...defaultReplica, hardware, ...changes }));

/** Requests as rows: arrival, prompt, decode. Estimates are the true lengths. */
export function workloadOf(rows: readonly (readonly [number, number, number])[]): Workload {
  const workload = emptyWorkload(rows.length);
  rows.forEach(([at, prompt, decode], i) => {
    workload.arrivalS[i] = at;
    workload.promptTokens[i] = prompt;
    workload.decodeTokens[i] = decode;
    workload.estimatedTokens[i] = decode;
  });
  return workload;
}

/** The same with the gap to the one before in place of the arrival. */
export function workloadOfGaps(rows: readonly (readonly [number, number, number])[]): Workload {
  let at = 0;
  return workloadOf(
    rows.map(([gap, prompt, decode]) => {
      at += gap;
      return [at, prompt, decode] as const;
    }),
  );
}

/** Hardware whose every iteration takes a millisecond, with room for so many tokens. */
export function plainHardware(tokens: number): Hardware {
  return {
    name: 'plain',
    title: 'a plain machine',
    floorMs: 1,
    perTokenMs: 0,
    sharpness: 1,
    kvBytesPerToken: 1,
    attentionFlopsPerPair: 0,
    flops: Number.POSITIVE_INFINITY,
    bandwidth: Number.POSITIVE_INFINITY,
    memoryBytes: tokens / 0.9 + 1e-6,
    weightBytes: 0,
    dollarsPerHour: 1,
  };
}

/** Runs to the end, with `choose` deciding. */
export function finish(
  specs: readonly ReplicaSpec[],
  workload: Workload,
  choose: (cluster: Cluster, id: number) => number,
  outages: Outages = [],
): Cluster {
  const cluster = new Cluster(specs, workload, outages);
  for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision())
    cluster.route(choose(cluster, id));
  return cluster;
}
