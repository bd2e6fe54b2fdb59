/** A simulation over time, thinned to so many moments: queues, batches, memory, decisions and latency. */
import type { ClusterTimeline } from '../../view/cluster-timeline.ts';
import type { Cluster } from './simulator.ts';

const DECISIONS = 60;

/** Looks at a cluster at every so-many-th decision. */
export class TimelineRecorder {
  readonly #router: string;
  readonly #every: number;
  #seen = 0;
  #cluster: Cluster | undefined;
  /** Requests that had arrived at each moment. */
  readonly #arrived: number[] = [];
  readonly #timeS: number[] = [];
  readonly #waiting: number[][] = [];
  readonly #running: number[][] = [];
  readonly #memory: number[][] = [];

  constructor(router: string, requests: number, moments = 240) {
    this.#router = router;
    this.#every = Math.max(1, Math.ceil(requests / moments));
  }

  /** Called at each decision. */
  sample(cluster: Cluster): void {
    if (this.#seen++ % this.#every !== 0) return;
    this.#timeS.push(cluster.nowS);
    this.#arrived.push(cluster.arrived);
    cluster.replicas.forEach((replica, r) => {
      this.#waiting[r] ??= [];
      this.#running[r] ??= [];
      this.#memory[r] ??= [];
      this.#waiting[r].push(replica.waiting.length + replica.prefillingCount);
      this.#running[r].push(replica.runningCount);
      this.#memory[r].push(round(replica.usedBlocks / replica.totalBlocks));
    });
  }

  /** Called when all requests are finished. */
  end(cluster: Cluster): void {
    this.#cluster = cluster;
  }

  timeline(): ClusterTimeline {
    const cluster = this.#cluster;
    if (cluster === undefined) throw new Error('the simulation has not ended: call timeline after it');
    const { workload, progress, assigned, replicas } = cluster;
    const latency = (id: number): number => progress.finishS[id] - workload.arrivalS[id];
    const routed = replicas.map(() => new Array<number>(this.#timeS.length).fill(0));
    const latencyMeanS: (number | null)[] = [];
    const latencyMaxS: (number | null)[] = [];
    this.#arrived.forEach((to, moment) => {
      const from = moment === 0 ? 0 : this.#arrived[moment - 1];
      let [sum, max] = [0, 0];
      for (let id = from; id < to; id++) {
        routed[assigned[id]][moment]++;
        sum += latency(id);
        max = Math.max(max, latency(id));
      }
      latencyMeanS.push(to > from ? round(sum / (to - from)) : null);
      latencyMaxS.push(to > from ? round(max) : null);
    });
    const first = Math.max(0, workload.count - DECISIONS);
    return {
      version: 1,
      router: this.#router,
      replicas: replicas.map(({ spec }) => spec.hardware.name),
      timeS: this.#timeS.map(round),
      waiting: this.#waiting,
      running: this.#running,
      memory: this.#memory,
      routed,
      latencyMeanS,
      latencyMaxS,
      decisions: Array.from({ length: workload.count - first }, (_, i) => ({
        atS: round(workload.arrivalS[first + i]),
        promptTokens: workload.promptTokens[first + i],
        estimatedTokens: workload.estimatedTokens[first + i],
        replica: assigned[first + i],
        latencyS: round(latency(first + i)),
      })),
    };
  }
}

/** Four digits after the point: a plot shows no more. */
function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
