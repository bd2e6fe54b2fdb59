/** Collecting: what is stored is what happened, in every environment, at every step. */
import { afterAll, describe, expect, it } from 'vitest';
import {
  box,
  dict,
  discrete,
  type Env,
  inProcessVectorEnv,
  makeVectorEnv,
  type Space,
  simulation,
  timeLimit,
  type VectorEnv,
} from '../../src/envs/index.ts';
import { categorical, composite, type Distribution, gaussian } from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';
import { createRollout, type Rollout } from '../../src/rollout/buffer.ts';
import { type CollectParts, type CollectStats, collect, type Network } from '../../src/rollout/collect.ts';
import { ActionNoise } from '../../src/rollout/noise.ts';
import { ObservationNormaliser, RewardNormaliser } from '../../src/rollout/normalise.ts';

/** A policy and a value function in plain numbers: each parameter and the value are linear in the observation. */
function linearAct(
  obsSize: number,
  paramSize: number,
): { acting(rows: number): Network; valuing(rows: number): Network; params(o: number[]): number[] } {
  const weight = (i: number, j: number): number => Math.fround(0.3 * Math.sin(1 + 3 * i + 7 * j));
  const params = (obs: number[]): number[] =>
    Array.from({ length: paramSize }, (_, j) =>
      Math.fround(obs.reduce((sum, x, i) => sum + x * weight(i, j), 0.1 * j)),
    );
  const rowsOf = (observations: Float32Array): number[][] =>
    Array.from({ length: observations.length / obsSize }, (_, n) => row(observations, obsSize, n));
  const network = (rows: number, width: number, of: (row: number[]) => number[]): Network => {
    const [observations, out] = [new Float32Array(rows * obsSize), new Float32Array(rows * width)];
    return { rows, observations, out, run: () => out.set(rowsOf(observations).flatMap(of)) };
  };
  return {
    params,
    acting: rows => network(rows, paramSize, params),
    valuing: rows => network(rows, 1, obs => [worth(obs)]),
  };
}

const worth = (obs: readonly number[]): number =>
  Math.fround(obs.reduce((sum, x, i) => sum + x * (i + 1), 0.5));

interface Record1 {
  actions: number[][];
  rewards: number[];
}

/**
 * An environment that counts: the observation is its number and the steps of the episode; the reward says the action.
 * It ends by itself after `length` steps, or never.
 */
function counter(space: Space, record: Record1, index: number, length: number): Env {
  return simulation({
    observationSpace: box({ shape: [2] }),
    actionSpace: space,
    start: () => ({ steps: 0 }),
    observe: state => [index, state.steps],
    step(state, action, result) {
      state.steps++;
      record.actions.push(Array.from(action));
      result.reward = 100 * action[0] + index;
      record.rewards.push(result.reward);
      result.terminated = state.steps >= length;
    },
  });
}

interface Collected {
  rollout: Rollout;
  stats: CollectStats;
  envs: VectorEnv;
}

async function collected(
  envs: VectorEnv,
  distribution: Distribution,
  steps: number,
  options: Partial<CollectParts> & { seed?: number; reset?: boolean } = {},
): Promise<Collected> {
  const { paramSize } = distribution;
  if (options.reset !== false) await envs.reset({ seed: 11 });
  const rollout = createRollout(steps, envs.envCount, {
    observationSize: envs.obsSize,
    actionSize: envs.actionSize,
    paramSize,
  });
  const { acting, valuing } = linearAct(envs.obsSize, paramSize);
  const stats = await collect(rollout, {
    envs,
    acting: acting(envs.envCount),
    valuing: valuing(envs.envCount),
    valuingMany: valuing(5), // which does not divide a rollout
    distribution,
    rng: new Rng(options.seed ?? 5),
    actionNoise: new ActionNoise(distribution, envs.envCount, 0),
    observationNormaliser: undefined,
    rewardNormaliser: undefined,
    ...options,
  });
  return { rollout, stats, envs };
}

const row = (values: Float32Array, size: number, at: number): number[] =>
  Array.from(values.subarray(at * size, (at + 1) * size));

const hybrid = dict({ move: box({ shape: [2], low: -0.5, high: 0.25 }), hand: discrete(3) });
const hybridDistribution = composite([gaussian(2), categorical(3)]);

/** Three counting environments whose episodes have different lengths. */
function counters(space: Space, lengths = [3, 5, 100]): { envs: VectorEnv; records: Record1[] } {
  const records: Record1[] = lengths.map(() => ({ actions: [], rewards: [] }));
  return {
    records,
    envs: inProcessVectorEnv(i => counter(space, records[i], i, lengths[i]), lengths.length),
  };
}

describe('what is stored', () => {
  it('the action as it was sampled; the environment gets it clipped', async () => {
    const { envs, records } = counters(hybrid);
    const { rollout } = await collected(envs, hybridDistribution, 40);
    let outside = 0;
    for (let at = 0; at < 120; at++) {
      const [t, n] = [Math.floor(at / 3), at % 3];
      const stored = row(rollout.actions, 3, at);
      const clipped = stored.map((a, i) => (i < 2 ? Math.min(0.25, Math.max(-0.5, a)) : a));
      expect(records[n].actions[t]).toEqual(clipped);
      if (!hybrid.contains(stored)) outside++;
    }
    expect(outside).toBeGreaterThan(40);
  });

  it('the parameters sampled from, and their log-probability of the stored action', async () => {
    const { envs } = counters(hybrid);
    const { rollout } = await collected(envs, hybridDistribution, 40);
    const { params } = linearAct(2, hybridDistribution.paramSize);
    for (let at = 0; at < 120; at++) {
      const stored = row(rollout.params, hybridDistribution.paramSize, at);
      expect(stored).toEqual(params(row(rollout.observations, 2, at)));
      const logProb = hybridDistribution.logProb(stored, row(rollout.actions, 3, at));
      expect(rollout.logProbs[at]).toBe(Math.fround(logProb));
    }
  });

  it('the observation before the action, and its value', async () => {
    const { envs } = counters(discrete(4));
    const { rollout } = await collected(envs, categorical(4), 12);
    for (let at = 0; at < 36; at++) {
      const [t, n] = [Math.floor(at / 3), at % 3];
      expect(row(rollout.observations, 2, at)).toEqual([n, t % [3, 5, 100][n]]);
      expect(rollout.values[at]).toBe(worth(row(rollout.observations, 2, at)));
    }
  });

  // Fault 4 of the facts.
  it('the reward with the action that earned it', async () => {
    const { envs } = counters(discrete(4));
    const { rollout } = await collected(envs, categorical(4), 12);
    rollout.rewards.forEach((reward, at) => {
      expect(reward).toBe(100 * rollout.actions[at] + (at % 3));
    });
  });

  it('where episodes end, and how', async () => {
    const lengths = [3, 5, 100];
    const record = { actions: [], rewards: [] };
    const envs = inProcessVectorEnv(i => timeLimit(counter(discrete(2), record, i, lengths[i]), 4), 3);
    const { rollout } = await collected(envs, categorical(2), 12);
    for (let t = 0; t < 12; t++) {
      const at = 3 * t;
      expect(Array.from(rollout.terminated.subarray(at, at + 3))).toEqual([t % 3 === 2 ? 1 : 0, 0, 0]);
      const cut = t % 4 === 3 ? 1 : 0;
      expect(Array.from(rollout.truncated.subarray(at, at + 3))).toEqual([0, cut, cut]);
    }
  });

  it('what a cut episode would have been worth: the value of its own final observation', async () => {
    const record = { actions: [], rewards: [] };
    const envs = inProcessVectorEnv(i => timeLimit(counter(discrete(2), record, i, 100), 4 + i), 3);
    const { rollout } = await collected(envs, categorical(2), 13);
    let seen = 0;
    rollout.truncated.forEach((cut, at) => {
      if (cut === 0) return;
      seen++;
      const n = at % 3;
      // Not the next episode's first observation, whose count is 0.
      expect(rollout.finalValues[at]).toBe(worth([n, 4 + n]));
    });
    expect(seen).toBe(3 + 2 + 2);
    expect(Array.from(rollout.lastValues)).toEqual([
      worth([0, 13 % 4]),
      worth([1, 13 % 5]),
      worth([2, 13 % 6]),
    ]);
  });

  it('goes on where the last rollout ended: two of 10 steps are one of 20', async () => {
    const parts = (): Partial<CollectParts> => ({
      rng: new Rng(9),
      observationNormaliser: new ObservationNormaliser(2),
      rewardNormaliser: new RewardNormaliser(3, 0.9),
    });
    const whole = await collected(counters(discrete(4)).envs, categorical(4), 20, parts());
    const { envs } = counters(discrete(4));
    const own = parts();
    const first = await collected(envs, categorical(4), 10, own);
    const then = await collected(envs, categorical(4), 10, { ...own, reset: false });
    for (const name of ['observations', 'actions', 'params', 'logProbs', 'values', 'rewards'] as const) {
      expect([...first.rollout[name], ...then.rollout[name]]).toEqual([...whole.rollout[name]]);
    }
    expect([...first.stats.episodeReturns, ...then.stats.episodeReturns]).toEqual(whole.stats.episodeReturns);
  });
});

describe('statistics', () => {
  it('returns and lengths of the episodes that ended, in order', async () => {
    const { envs, records } = counters(discrete(4));
    const { stats } = await collected(envs, categorical(4), 16);
    const ended: { at: number; n: number; length: number }[] = [];
    [3, 5].forEach((length, n) => {
      for (let at = length; at <= 16; at += length) ended.push({ at, n, length });
    });
    ended.sort((a, b) => a.at - b.at || a.n - b.n);
    expect(stats.episodeLengths).toEqual(ended.map(e => e.length));
    expect(stats.episodeReturns).toEqual(
      ended.map(({ at, n, length }) => records[n].rewards.slice(at - length, at).reduce((a, b) => a + b, 0)),
    );
  });

  // Fault 10 of the facts: a return that was never reset.
  it('a return begins anew with its episode, over rollouts too', async () => {
    const { envs } = counters(discrete(1), [4, 4, 4]);
    const one = await collected(envs, categorical(1), 6);
    const two = await collected(envs, categorical(1), 6, { reset: false });
    for (const { stats } of [one, two])
      stats.episodeReturns.forEach((found, i) => {
        expect(found).toBe(4 * (i % 3));
      });
    expect(two.stats.episodeReturns.length).toBe(6);
  });

  it("mean and std of the environment's own rewards, also where they are normalised", async () => {
    const { envs, records } = counters(discrete(4));
    const { stats, rollout } = await collected(envs, categorical(4), 30, {
      rewardNormaliser: new RewardNormaliser(3, 0.9),
      rewardScale: 7,
    });
    const all = records.flatMap(r => r.rewards);
    const mean = all.reduce((a, b) => a + b, 0) / all.length;
    const variance = all.reduce((sum, r) => sum + (r - mean) ** 2, 0) / all.length;
    expect(stats.rewardMean).toBeCloseTo(mean, 8);
    expect(stats.rewardStd).toBeCloseTo(Math.sqrt(variance), 8);
    expect(Math.max(...rollout.rewards)).toBeLessThanOrEqual(10);
  });
});

describe('normalisation', () => {
  it('the policy sees, and the rollout holds, normalised observations; final ones too', async () => {
    const record = { actions: [], rewards: [] };
    const envs = inProcessVectorEnv(i => timeLimit(counter(discrete(2), record, i, 100), 4 + i), 3);
    const normaliser = new ObservationNormaliser(2);
    const { rollout } = await collected(envs, categorical(2), 30, { observationNormaliser: normaliser });
    const replayed = new ObservationNormaliser(2);
    const out = new Float32Array(6);
    for (let t = 0; t < 30; t++) {
      const raw = Float32Array.from([0, 1, 2].flatMap(n => [n, t % (4 + n)]));
      replayed.moments.update(raw);
      replayed.apply(raw, out);
      expect(Array.from(rollout.observations.subarray(6 * t, 6 * t + 6))).toEqual(Array.from(out));
      for (let n = 0; n < 3; n++) {
        const at = 3 * t + n;
        expect(rollout.values[at]).toBe(worth(row(out, 2, n)));
        if (rollout.truncated[at] === 0) continue;
        const final = new Float32Array(2);
        replayed.apply(Float32Array.of(n, 4 + n), final);
        expect(rollout.finalValues[at]).toBe(worth(Array.from(final)));
      }
    }
    expect(normaliser.moments.state()).toEqual(replayed.moments.state());
  });

  it('rewards are normalised in the order of steps, and start anew with each episode', async () => {
    const { envs, records } = counters(discrete(4));
    const { rollout } = await collected(envs, categorical(4), 20, {
      rewardNormaliser: new RewardNormaliser(3, 0.9),
    });
    const replayed = new RewardNormaliser(3, 0.9);
    const out = new Float32Array(3);
    for (let t = 0; t < 20; t++) {
      replayed.apply(
        Float64Array.from(records.map(r => r.rewards[t])),
        rollout.terminated.subarray(3 * t, 3 * t + 3),
        out,
      );
      expect(Array.from(rollout.rewards.subarray(3 * t, 3 * t + 3))).toEqual(Array.from(out));
    }
  });
});

describe('reward scale', () => {
  it('multiplies what is learnt from, and not what is reported', async () => {
    const [plain, scaled] = [
      await collected(counters(discrete(4)).envs, categorical(4), 20),
      await collected(counters(discrete(4)).envs, categorical(4), 20, { rewardScale: 0.25 }),
    ];
    expect([...scaled.rollout.rewards]).toEqual([...plain.rollout.rewards].map(r => 0.25 * r));
    expect({ ...scaled.stats, envSeconds: 0 }).toEqual({ ...plain.stats, envSeconds: 0 });
  });
});

describe('randomness', () => {
  it('the same seed gives the same bits, another one other actions', async () => {
    const run = async (seed: number): Promise<number[]> => {
      const { rollout } = await collected(counters(hybrid).envs, hybridDistribution, 20, { seed });
      return [...rollout.actions, ...rollout.logProbs];
    };
    expect(await run(1)).toEqual(await run(1));
    expect(await run(1)).not.toEqual(await run(2));
  });

  it('environments do not share their noise', async () => {
    const same = inProcessVectorEnv(() => counter(hybrid, { actions: [], rewards: [] }, 0, 100), 3);
    const { rollout } = await collected(same, hybridDistribution, 10);
    const firsts = [0, 1, 2].map(n => row(rollout.actions, 3, n)[0]);
    expect(new Set(firsts).size).toBe(3);
  });
});

describe('what episodes report', () => {
  /** Three steps an episode; the second of each second episode blows up. */
  const reporting = (): Env => {
    let episodes = 0;
    const env = simulation({
      observationSpace: box({ shape: [1] }),
      actionSpace: box({ shape: [1] }),
      rewardTerms: ['forward', 'cost'],
      start: () => ({ steps: 0, episode: episodes++ }),
      observe: state => [state.steps],
      step(state, _, result) {
        state.steps++;
        result.rewardTerms[0] = state.steps;
        result.rewardTerms[1] = -0.5;
        result.blownUp = state.episode % 2 === 1 && state.steps === 2;
        result.terminated = state.steps === 3 || result.blownUp;
      },
    });
    return Object.assign(env, { mayBlowUp: true });
  };

  it('reward terms are means over the steps of episodes that ended, blow-ups are counted', async () => {
    const envs = inProcessVectorEnv(reporting, 1);
    // Episodes of 3 and 2 steps in turn; the fourth ends with the rollout.
    const { stats } = await collected(envs, gaussian(1), 10);
    expect(stats.episodeLengths).toEqual([3, 2, 3, 2]);
    expect(stats.blowUps).toBe(2);
    expect(envs.mayBlowUp).toBe(true);
    expect([...stats.termMeans]).toEqual([(6 + 3 + 6 + 3) / 10, -0.5]);
  });
});

describe('worker threads', () => {
  const open: VectorEnv[] = [];
  afterAll(async () => {
    for (const envs of open) await envs.close();
  });

  it.each([
    ['CartPole-v1', categorical(2)],
    ['Courier-v0', hybridDistribution],
  ] as const)('%s: the same rollout as in this thread, to the bit', async (id, distribution) => {
    const runs = [];
    for (const workers of [0, 2]) {
      const envs = await makeVectorEnv(id, { envCount: 3, workers });
      open.push(envs);
      const { rollout, stats: all } = await collected(envs, distribution, 70, {
        observationNormaliser: new ObservationNormaliser(envs.obsSize),
        rewardNormaliser: new RewardNormaliser(3, 0.99),
      });
      const { envSeconds, ...stats } = all;
      expect(envSeconds).toBeGreaterThan(0);
      runs.push({
        stats,
        arrays: Object.entries(rollout)
          .filter(([, value]) => typeof value !== 'number')
          .map(([name, value]) => [name, [...(value as Float32Array)]]),
      });
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(runs[0].stats.episodeReturns.length).toBeGreaterThan(2);
  });
});
