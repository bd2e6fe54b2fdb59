import { describe, expect, it } from 'vitest';
import { drawOutages, exponential } from '../../../src/envs/cluster/arrivals.ts';
import {
  Cluster,
  checkWorkload,
  defaultReplica,
  hardwareNamed,
  iterationMs,
  makeRouter,
  type ReplicaSpec,
  simulate,
} from '../../../src/envs/cluster/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { finish, plainHardware, specsOf, workloadOf, workloadOfGaps } from './support.ts';

describe('one request alone', () => {
  it.each(['vllm', 'sarathi'] as const)(
    '%s: prefill, then a token an iteration, attention over its context',
    scheduler => {
      const [spec] = specsOf('a100', { scheduler });
      const { hardware } = spec;
      const cluster = finish([spec], workloadOf([[2, 300, 4]]), () => 0);
      const attention = hardware.kvBytesPerToken / hardware.bandwidth;
      const prefillS = iterationMs(hardware, 300) / 1000 + 300 * attention;
      expect(cluster.progress.firstTokenS[0]).toBeCloseTo(2 + prefillS, 12);
      const decodeS = (3 * iterationMs(hardware, 1)) / 1000 + (301 + 302 + 303) * attention;
      expect(cluster.progress.finishS[0]).toBeCloseTo(2 + prefillS + decodeS, 12);
    },
  );

  it.each([
    ['vllm', 4096, [4096]],
    ['sarathi', 4096, Array.from({ length: 8 }, () => 512)],
    // The last piece is small: reading what came before takes longer than computing on it.
    ['sarathi', 1026, [512, 512, 2]],
  ] as const)('%s: each of %i tokens attends to all before it', (scheduler, tokens, pieces) => {
    const [spec] = specsOf('a100', { scheduler });
    const { hardware } = spec;
    const cluster = finish([spec], workloadOf([[0, tokens, 1]]), () => 0);
    let [wantedMs, done] = [0, 0];
    for (const piece of pieces) {
      let pairs = 0;
      for (let i = 1; i <= piece; i++) pairs += done + i;
      done += piece;
      // Queries and keys, then weights and values: 2 operations each for the 4,096 numbers of a token, in 32 layers.
      const computedMs = (1000 * pairs * 32 * (2 + 2) * 4096) / 312e12;
      const readMs = (1000 * done * hardware.kvBytesPerToken) / hardware.bandwidth;
      expect(computedMs > readMs).toBe(piece > 2);
      wantedMs += iterationMs(hardware, piece) + Math.max(computedMs, readMs);
    }
    expect(1000 * cluster.progress.finishS[0]).toBeCloseTo(wantedMs, 9);
  });
});

describe('batches', () => {
  it('vllm: prefills go first and running requests wait for them; sarathi goes on decoding', () => {
    const rows = [
      [0, 100, 50],
      [0.05, 2000, 2],
    ] as const;
    const pauses = (['vllm', 'sarathi'] as const).map(scheduler => {
      const cluster = finish(specsOf('a100', { scheduler }), workloadOf(rows), () => 0);
      return cluster.progress.finishS[0] - cluster.progress.firstTokenS[0];
    });
    const alone = finish(specsOf('a100'), workloadOf(rows.slice(0, 1)), () => 0);
    const aloneS = alone.progress.finishS[0] - alone.progress.firstTokenS[0];
    expect(pauses[0] - aloneS).toBeGreaterThan(iterationMs(hardwareNamed('a100'), 2000) / 1000);
    expect(pauses[1] - aloneS).toBeLessThan(pauses[0] - aloneS);
  });

  it('out of blocks: the newest is evicted, and computes its context again', () => {
    // Room for 64 blocks; two requests of 30 blocks each grow until they do not fit.
    const spec: ReplicaSpec = { ...defaultReplica, hardware: plainHardware(64 * 16), watermark: 0 };
    const cluster = finish(
      [spec],
      workloadOf([
        [0, 480, 100],
        [0, 480, 100],
      ]),
      () => 0,
    );
    expect([...cluster.progress.preemptions]).toEqual([0, 1]);
    // 1 ms for each prefill, since the first begins when it arrives, and one for each further token.
    expect(cluster.progress.finishS[0]).toBeCloseTo(0.101, 9);
    // The second restarts when the first has gone, with its tokens kept.
    expect(cluster.progress.finishS[1]).toBeGreaterThan(0.101);
    expect(cluster.progress.generated[1]).toBe(100);
  });

  it('the watermark keeps a share of the blocks free', () => {
    const hardware = plainHardware(100 * 16);
    const rows = workloadOf([
      [0, 800, 5],
      [0, 790, 5],
    ]);
    const both = (watermark: number) => finish([{ ...defaultReplica, hardware, watermark }], rows, () => 0);
    // After the first one's prefill, or after all of it.
    expect(both(0).progress.startS[1]).toBeCloseTo(0.001, 9);
    expect(both(0.05).progress.startS[1]).toBeCloseTo(0.005, 9);
  });
});

describe('queueing theory', () => {
  it('one server, Poisson arrivals, exponential service: the mean time in the system is 1 / (mu - lambda)', () => {
    // A token takes 1 ms and a request about 20 of them, alone in the batch.
    const spec: ReplicaSpec = { ...defaultReplica, hardware: plainHardware(1e6), maxBatch: 1 };
    const rng = new Rng(5);
    // The mean of an exponential variate of mean 20 that is rounded up.
    const serviceS = 0.001 / (1 - Math.exp(-1 / 20));
    for (const load of [0.5, 0.8]) {
      const rows = Array.from(
        { length: 50_000 },
        () => [(exponential(rng) * serviceS) / load, 1, Math.ceil(exponential(rng) * 20)] as const,
      );
      const workload = workloadOfGaps(rows);
      const { progress } = finish([spec], workload, () => 0);
      const mean =
        progress.finishS.reduce((sum, end, i) => sum + end - workload.arrivalS[i], 0) / rows.length;
      expect(Math.abs((mean * (1 - load)) / serviceS - 1)).toBeLessThan(0.06);
    }
  });
});

describe('failures', () => {
  it('what a replica had goes elsewhere, keeps the tokens that users have, and is finished', () => {
    const workload = workloadOf([
      [0, 100, 200],
      [0, 100, 200],
    ]);
    const down = [Float64Array.of(0.5, 100), new Float64Array(0)];
    const seen: number[] = [];
    const cluster = finish(
      specsOf('2*a100'),
      workload,
      (c, id) => {
        if (c.assigned[id] !== -1) seen.push(c.progress.generated[id]);
        return c.replicas[0].isUp ? 0 : 1;
      },
      down,
    );
    expect(cluster.reroutes).toBe(2);
    expect(seen.every(tokens => tokens > 10 && tokens < 200)).toBe(true);
    expect([...cluster.assigned]).toEqual([1, 1]);
    expect([...cluster.progress.generated]).toEqual([200, 200]);
  });

  it('while all are down, requests wait', () => {
    const workload = workloadOf([[1, 10, 1]]);
    const cluster = finish(specsOf('a100'), workload, () => 0, [Float64Array.of(0.5, 3)]);
    expect(cluster.progress.startS[0]).toBe(3);
  });

  it('every router keeps to those that are up', () => {
    const rng = new Rng(1);
    const workload = workloadOfGaps(Array.from({ length: 300 }, () => [0.05, 200, 50] as const));
    for (const name of [
      'random',
      'round-robin',
      'least-requests',
      'least-tokens',
      'power-of-two',
      'least-finish',
      'least-added',
    ]) {
      const outages = drawOutages(3, { meanUpS: 2, meanDownS: 2 }, 1000, new Rng(3));
      const router = makeRouter(name, rng.split(1)[0]);
      const report = simulate({ replicas: specsOf('h100,a100,a40'), workload, router, outages });
      expect(report.reroutes, name).toBeGreaterThan(0);
      expect(report.replicas.reduce((sum, { requests }) => sum + requests, 0)).toBe(300);
    }
  });

  it.each([0, -1, Number.NaN])('refuses %d seconds up', meanUpS => {
    expect(() => drawOutages(1, { meanUpS, meanDownS: 1 }, 10, new Rng(0))).toThrow(/meanUpS is/);
  });
});

describe('bad input', () => {
  const [spec] = specsOf('a40');

  it('a cluster with no replica', () => {
    expect(() => new Cluster([], workloadOf([[0, 1, 1]]))).toThrow(
      /a cluster needs a replica, this one has none/,
    );
  });

  it('a request that fits no replica, and one that fits only some', () => {
    const long = workloadOf([
      [0, 10, 10],
      [1, 60_000, 10],
    ]);
    expect(() => new Cluster([spec], long)).toThrow(
      /request 1 needs the keys and values of 60009 tokens, which fit no replica \(a40 holds \d+\)/,
    );
    expect(() => new Cluster(specsOf('a100,a40'), long)).toThrow(/which do not fit replica 1/);
  });

  it.each([
    [
      [
        [1, 5, 5],
        [0.5, 5, 5],
      ],
      /request 1 arrives at 0.5 s, before the one ahead of it \(1 s\): sort them/,
    ],
    [[[-1, 5, 5]], /request 0 arrives at -1 s/],
    [[[0, 0, 5]], /request 0 has 0 promptTokens/],
    [[[0, 5, 0]], /request 0 has 0 decodeTokens/],
  ] as const)('a workload that cannot be: %j', (rows, message) => {
    expect(() => checkWorkload(workloadOf(rows as never))).toThrow(message);
  });

  it('a decision that cannot be', () => {
    const cluster = new Cluster([spec], workloadOf([[0, 5, 5]]));
    expect(() => cluster.route(0)).toThrow(/no request waits/);
    cluster.nextDecision();
    expect(() => cluster.route(1)).toThrow(/replica 1 is not there: use 0..0/);
  });

  it('an unknown router', () => {
    expect(() => makeRouter('least-request', new Rng(0))).toThrow(/unknown: .*least-requests/);
  });

  it('load above capacity: all requests are finished, and the report says that queues grow', () => {
    const overloaded = workloadOfGaps(Array.from({ length: 800 }, () => [0.02, 800, 100] as const));
    const run = (w: typeof overloaded) =>
      simulate({ replicas: specsOf('a40'), workload: w, router: makeRouter('round-robin', new Rng(0)) });
    const { backlog } = run(overloaded);
    expect(backlog.isGrowing).toBe(true);
    expect(backlog.late).toBeGreaterThan(2 * backlog.early);
    const calm = { ...overloaded, arrivalS: overloaded.arrivalS.map(s => s * 50) };
    expect(run(calm).backlog.isGrowing).toBe(false);
  });
});
