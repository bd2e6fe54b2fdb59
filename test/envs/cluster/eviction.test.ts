/** Memory that runs out: who goes, where to, and what users have of it, iteration by iteration. */
import { expect, it } from 'vitest';
import { makeRouter, simulate } from '../../../src/envs/cluster/index.ts';
import { Replica } from '../../../src/envs/cluster/replica.ts';
import { Progress } from '../../../src/envs/cluster/requests.ts';
import { Rng } from '../../../src/random/index.ts';
import { finish, plainHardware, specsOf, workloadOf } from './support.ts';

const small = { ...specsOf('a40')[0], hardware: plainHardware(400), watermark: 0 };

it.each(['vllm', 'sarathi'] as const)(
  '%s: never more blocks than there are; the newest goes to the front, and keeps its first token',
  scheduler => {
    // More than fit: those that are at work grow beyond the memory together, while others wait.
    const workload = workloadOf(Array.from({ length: 40 }, (_, i) => [0, 20 + i, 100] as const));
    const progress = new Progress(workload.count);
    const replica = new Replica({ ...small, scheduler }, workload, progress);
    for (let id = 0; id < workload.count; id++) replica.add(id, 0);
    const firstTokens = new Map<number, number>();
    while (replica.busyUntilS < Number.POSITIVE_INFINITY) {
      replica.advance();
      expect(replica.usedBlocks).toBeLessThanOrEqual(replica.totalBlocks);
      for (let id = 0; id < workload.count; id++) {
        const at = progress.firstTokenS[id];
        if (!Number.isNaN(at)) expect(firstTokens.get(id) ?? at).toBe(at);
        if (!Number.isNaN(at)) firstTokens.set(id, at);
      }
      // Those that were at work before wait in front of those that never were.
      const began = replica.waiting.toArray().map(id => !Number.isNaN(progress.startS[id]));
      expect(began).toEqual([...began].sort((a, b) => Number(b) - Number(a)));
    }
    expect(replica.preemptions).toBeGreaterThan(3);
    expect(firstTokens.size).toBe(40);
  },
);

it('what is reported of requests is what became of them: nearest ranks, and time between tokens', () => {
  const rng = new Rng(3);
  const workload = workloadOf(
    Array.from({ length: 40 }, (_, i) => [0.01 * i, 10 + rng.integer(200), 1 + rng.integer(60)] as const),
  );
  const replicas = specsOf('a40,a100');
  const cluster = finish(replicas, workload, (_, id) => id % 2);
  const report = simulate({
    replicas,
    workload,
    router: { ...makeRouter('round-robin', new Rng(0)), choose: (_, id) => id % 2 },
    warmupShare: 0,
  });
  const spread = (of: (id: number) => number, ids = [...Array(40).keys()]) => {
    const values = ids.map(of).sort((a, b) => a - b);
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map(share => values[Math.ceil(share * values.length) - 1]);
    return { mean: expect.closeTo(values.reduce((a, b) => a + b) / values.length, 9), p50, p90, p99 };
  };
  const { finishS, firstTokenS } = cluster.progress;
  const { arrivalS, decodeTokens } = workload;
  expect(report.endToEnd).toEqual(spread(id => finishS[id] - arrivalS[id]));
  expect(report.timeToFirstToken).toEqual(spread(id => firstTokenS[id] - arrivalS[id]));
  const several = [...Array(40).keys()].filter(id => decodeTokens[id] > 1);
  expect(report.timeBetweenTokens).toEqual(
    spread(id => (finishS[id] - firstTokenS[id]) / (decodeTokens[id] - 1), several),
  );
});
