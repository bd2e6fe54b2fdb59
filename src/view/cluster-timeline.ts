/** A simulation of a cluster over time: the simulator writes it beside a run, the server checks it, the page draws it. */

/** Times are seconds. */
export interface ClusterTimeline {
  readonly version: 1;
  readonly router: string;
  /** Decisions that the policy had been trained for, where a training run recorded it. */
  readonly step?: number;
  /** Hardware of each replica. */
  readonly replicas: readonly string[];
  /** (moments) When each was looked at. */
  readonly timeS: readonly number[];
  /** (replicas, moments) */
  readonly waiting: readonly (readonly number[])[];
  readonly running: readonly (readonly number[])[];
  /** Share of the blocks in use. */
  readonly memory: readonly (readonly number[])[];
  /** Requests that were sent to each replica since the moment before. */
  readonly routed: readonly (readonly number[])[];
  /** (moments) End-to-end seconds of the requests that arrived since the moment before; null where none did. */
  readonly latencyMeanS: readonly (number | null)[];
  readonly latencyMaxS: readonly (number | null)[];
  /** The last requests, one by one. */
  readonly decisions: readonly ClusterDecision[];
}

/** Where one request was sent, and how long it took. */
export interface ClusterDecision {
  readonly atS: number;
  readonly promptTokens: number;
  readonly estimatedTokens: number;
  readonly replica: number;
  readonly latencyS: number;
}
