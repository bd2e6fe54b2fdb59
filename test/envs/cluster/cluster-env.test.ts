import { describe, expect, it } from 'vitest';
import { CreditMeter } from '../../../src/envs/cluster/credit.ts';
import { Cluster, drawWorkload, replicaFeatures, workloads } from '../../../src/envs/cluster/index.ts';
import { cluster, makeEnv } from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { specsOf } from './support.ts';

describe('credit', () => {
  it.each([
    ['vllm', 'latency'],
    ['sarathi', 'latency'],
    ['vllm', 'its square'],
  ] as const)('%s, %s: the costs of all decisions sum to the costs of all requests', (scheduler, kind) => {
    const cost = (latencyS: number): number => (kind === 'latency' ? latencyS : latencyS * latencyS);
    const specs = specsOf('h100,a40', { scheduler });
    const workload = drawWorkload(workloads.conversation, { count: 400, ratePerS: 16 }, new Rng(3));
    const sim = new Cluster(specs, workload);
    const meter = new CreditMeter(specs, workload, cost);
    const rng = new Rng(8);
    let [charged, othersMost] = [0, 0];
    for (let id = sim.nextDecision(); id !== -1; id = sim.nextDecision()) {
      const chosen = rng.uniform() < 0.8 ? 0 : 1;
      sim.route(chosen);
      meter.charge(sim, chosen, id);
      charged += meter.own + meter.others;
      othersMost = Math.max(othersMost, meter.others);
    }
    const paid = sim.progress.finishS.reduce((sum, end, id) => sum + cost(end - workload.arrivalS[id]), 0);
    expect(Math.abs(charged / paid - 1)).toBeLessThan(1e-9);
    expect(othersMost).toBeGreaterThan(0);
    // The last finish that was foreseen is the one that came, but for rounding.
    const { finishS } = sim.progress;
    expect(finishS.every((end, id) => Math.abs(meter.predictedS[id] - end) < 1e-12 * end)).toBe(true);
  });
});

describe('Cluster-v0', () => {
  it('an idle cluster: finishing first is finishing on the fastest, and nobody else is delayed', () => {
    const env = cluster({ requests: 5 });
    const obs = new Float32Array(env.observationSpace.flatSize);
    env.reset({ seed: 3 }, obs);
    const column = (name: (typeof replicaFeatures)[number], r: number): number =>
      obs[r * replicaFeatures.length + replicaFeatures.indexOf(name)];
    expect(column('finishRegret', 0)).toBe(0);
    expect(column('finishRegret', 3)).toBeGreaterThan(column('finishRegret', 1));
    expect([0, 1, 2, 3].map(r => column('added', r))).toEqual([0, 0, 0, 0]);
    const { reward, rewardTerms } = env.step(Float32Array.of(0), obs);
    // Faster than the average of idle replicas.
    expect(reward).toBeGreaterThan(0);
    expect(rewardTerms[1]).toBe(0);
  });

  it('is truncated after its requests; credit own leaves the others out; a deadline costs its misses', () => {
    const rewardsOf = (options: Parameters<typeof cluster>[0]): number[] => {
      const env = cluster({ requests: 60, load: 2, loadSpread: 0, ...options });
      const obs = new Float32Array(env.observationSpace.flatSize);
      env.reset({ seed: 1 }, obs);
      const rewards: number[] = [];
      for (;;) {
        const { reward, truncated } = env.step(Float32Array.of(3), obs);
        rewards.push(reward);
        if (truncated) return rewards;
      }
    };
    const marginal = rewardsOf({});
    expect(marginal.length).toBe(60);
    const own = rewardsOf({ credit: 'own' });
    expect(own.every((reward, i) => reward >= marginal[i] - 1e-9)).toBe(true);
    expect(own.some((reward, i) => reward > marginal[i] + 0.1)).toBe(true);
    expect(new Set(rewardsOf({ sloS: 20, credit: 'own' })).size).toBeLessThanOrEqual(2);
  });

  it.each([
    [{ replicas: '' }, /a cluster needs a replica/],
    [{ replicas: 'b200' }, /the hardware "b200" is unknown/],
    [{ load: 0.1, loadSpread: 0.1 }, /leaves no arrivals/],
    [{ workload: 'chat' }, /option workload is "chat"/],
  ])('refuses %j', (options, message) => {
    expect(() => makeEnv('cluster', options)).toThrow(message);
  });

  it('refuses a state of other options', () => {
    const small = cluster({ replicas: '2*a100', requests: 20 });
    const obs = new Float32Array(small.observationSpace.flatSize);
    small.reset({ seed: 1 }, obs);
    for (let i = 0; i < 10; i++) small.step(Float32Array.of(1), obs);
    expect(() => cluster({ replicas: '3*a100', requests: 20 }).restore(small.state())).toThrow(
      /has 2 replicas, not 3/,
    );
    expect(() => cluster({ replicas: '2*a100', requests: 5 }).restore(small.state())).toThrow(
      /nextArrival is 11/,
    );
  });
});
