import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import '../../property-seed.ts';
import { drawOutages } from '../../../src/envs/cluster/arrivals.ts';
import { Cluster, type ReplicaSpec, type Workload } from '../../../src/envs/cluster/index.ts';
import { Replica } from '../../../src/envs/cluster/replica.ts';
import { Progress } from '../../../src/envs/cluster/requests.ts';
import { Rng } from '../../../src/random/index.ts';
import { plainHardware, specsOf, workloadOfGaps } from './support.ts';

/** Small memories, so that requests wait and are evicted; real hardware among them. */
const spec = fc.record({
  hardware: fc.oneof(
    fc.integer({ min: 700, max: 3000 }).map(plainHardware),
    fc.constantFrom('h100', 'a100', 'a40').map(name => specsOf(name)[0].hardware),
  ),
  scheduler: fc.constantFrom('vllm' as const, 'sarathi' as const),
  maxBatch: fc.integer({ min: 1, max: 40 }),
  maxBatchTokens: fc.integer({ min: 50, max: 4096 }),
  chunkTokens: fc.integer({ min: 41, max: 512 }),
  watermark: fc.constantFrom(0, 0.01, 0.05),
});

const request = fc.tuple(
  fc.double({ min: 0, max: 0.1, noNaN: true }),
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 1, max: 200 }),
);

const task = fc.record({
  specs: fc.array(spec, { minLength: 1, maxLength: 4 }),
  gaps: fc.array(request, { minLength: 1, maxLength: 60 }),
  seed: fc.integer({ min: 0, max: 1000 }),
  fails: fc.boolean(),
});

/** Recounts a replica's memory from its lists. */
function checkMemory(cluster: Cluster, workload: Workload): void {
  for (const replica of cluster.replicas) {
    let [blocks, tokens] = [0, 0];
    for (let i = 0; i < replica.runningCount; i++) {
      const id = replica.running[i];
      const context = workload.promptTokens[id] + replica.generatedOf(id) - 1;
      tokens += context;
      blocks += Math.ceil(context / 16);
    }
    for (let i = 0; i < replica.prefillingCount; i++)
      blocks += Math.ceil(cluster.progress.prefillNeed[replica.prefilling[i]] / 16);
    expect(replica.kvTokens).toBe(tokens);
    // While an iteration is under way, the blocks that its tokens begin are taken already.
    expect(replica.usedBlocks).toBeGreaterThanOrEqual(blocks);
    expect(replica.usedBlocks - blocks).toBeLessThanOrEqual(replica.runningCount);
    expect(replica.usedBlocks).toBeLessThanOrEqual(replica.totalBlocks);
    expect(replica.runningCount + replica.prefillingCount).toBeLessThanOrEqual(replica.spec.maxBatch);
  }
}

function runAndCheck(
  specs: readonly ReplicaSpec[],
  workload: Workload,
  seed: number,
  fails: boolean,
): Cluster {
  const outages = fails
    ? drawOutages(specs.length, { meanUpS: 0.5, meanDownS: 0.2 }, 1000, new Rng(seed))
    : [];
  const cluster = new Cluster(specs, workload, outages);
  const rng = new Rng(seed);
  let nowS = 0;
  for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision()) {
    expect(cluster.nowS).toBeGreaterThanOrEqual(nowS);
    nowS = cluster.nowS;
    checkMemory(cluster, workload);
    const up = cluster.replicas.flatMap((replica, r) => (replica.isUp ? [r] : []));
    cluster.route(up[rng.integer(up.length)]);
  }
  return cluster;
}

describe('conservation', () => {
  it('every request is finished once, with all its tokens, in order; memory is never exceeded and is empty at the end', () => {
    fc.assert(
      fc.property(task, ({ specs, gaps, seed, fails }) => {
        const workload = workloadOfGaps(gaps);
        const cluster = runAndCheck(specs, workload, seed, fails);
        const { progress, replicas } = cluster;
        expect(replicas.reduce((sum, { finished }) => sum + finished, 0)).toBe(workload.count);
        for (let id = 0; id < workload.count; id++) {
          expect(progress.generated[id]).toBe(workload.decodeTokens[id]);
          expect(progress.startS[id]).toBeGreaterThanOrEqual(workload.arrivalS[id]);
          expect(progress.firstTokenS[id]).toBeGreaterThan(progress.startS[id]);
          expect(progress.finishS[id]).toBeGreaterThanOrEqual(progress.firstTokenS[id]);
        }
        for (const replica of replicas) {
          expect([replica.outstanding, replica.kvTokens, replica.usedBlocks]).toEqual([0, 0, 0]);
          expect(replica.busyUntilS).toBe(Number.POSITIVE_INFINITY);
        }
        expect(cluster.outstanding).toBe(0);
      }),
      { numRuns: 150 },
    );
  });

  it('a drained copy finishes each request when the same replica does, iteration by iteration', () => {
    fc.assert(
      fc.property(task, ({ specs, gaps, seed }) => {
        const workload = workloadOfGaps(gaps);
        const cluster = new Cluster(specs, workload);
        const rng = new Rng(seed);
        for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision()) {
          const chosen = rng.integer(specs.length);
          cluster.route(chosen);
          const [stepped, skipped] = [new Progress(workload.count), new Progress(workload.count)];
          const [slow, fast] = [stepped, skipped].map(
            progress => new Replica(specs[chosen], workload, progress),
          );
          slow.copyFrom(cluster.replicas[chosen]);
          fast.copyFrom(cluster.replicas[chosen]);
          while (slow.busyUntilS < Number.POSITIVE_INFINITY) slow.advance();
          fast.drain();
          expect(skipped.preemptions).toEqual(stepped.preemptions);
          for (let other = 0; other <= id; other++) {
            const [expected, got] = [stepped.finishS[other], skipped.finishS[other]];
            if (!Number.isNaN(expected)) expect(Math.abs(got - expected)).toBeLessThan(1e-9 * expected);
            else expect(got).toBeNaN();
          }
          expect([fast.outstanding, fast.kvTokens, fast.usedBlocks]).toEqual([0, 0, 0]);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('the same seed gives the same bits, and a saved cluster goes on to them', () => {
    fc.assert(
      fc.property(task, fc.integer({ min: 0, max: 59 }), ({ specs, gaps, seed }, stopAt) => {
        const workload = workloadOfGaps(gaps);
        const choices = new Rng(seed);
        const choose = workload.arrivalS.map(() => choices.integer(specs.length));
        const straight = new Cluster(specs, workload);
        let saved = straight.save();
        for (let id = straight.nextDecision(); id !== -1; id = straight.nextDecision()) {
          if (id === stopAt) saved = structuredClone(straight.save());
          straight.route(choose[id]);
        }
        const resumed = new Cluster(specs, workload);
        resumed.load(saved);
        for (let id = resumed.nextDecision(); id !== -1; id = resumed.nextDecision())
          resumed.route(choose[id]);
        expect(resumed.progress).toEqual(straight.progress);
        expect(resumed.save()).toEqual(straight.save());
      }),
      { numRuns: 60 },
    );
  });
});
