/** The shards of a rollout as one. */
import { describe, expect, it } from 'vitest';
import { mergeParts, mergeStates, mergeStats, splitStates } from '../../../../src/algos/ppo/shards/merge.ts';
import type { ShardResult, ShardState } from '../../../../src/algos/ppo/shards/shard.ts';
import { Rng } from '../../../../src/random/rng.ts';
import { createRollout } from '../../../../src/rollout/buffer.ts';
import type { CollectStats } from '../../../../src/rollout/collect.ts';

const sizes = { observationSize: 3, actionSize: 2, paramSize: 4 };

it('parts stand side by side, in the order of the shards', () => {
  const [steps, shards, own] = [5, 3, 2];
  const envs = shards * own;
  const whole = createRollout(steps, envs, sizes);
  // Each number says where it belongs: step, environment, place in the row.
  const name = (t: number, n: number, k: number): number => t * 10_000 + n * 100 + k;
  const parts = Array.from({ length: shards }, (_, s) => {
    const part = createRollout(steps, own, sizes);
    for (let t = 0; t < steps; t++)
      for (let n = 0; n < own; n++) {
        for (let k = 0; k < 3; k++) part.observations[(t * own + n) * 3 + k] = name(t, s * own + n, k);
        part.rewards[t * own + n] = name(t, s * own + n, 0);
        part.terminated[t * own + n] = t === s ? 1 : 0;
        part.lastValues[n] = name(0, s * own + n, 7);
      }
    return { part } as unknown as ShardResult;
  });
  mergeParts(whole, parts);
  for (let t = 0; t < steps; t++)
    for (let n = 0; n < envs; n++) {
      for (let k = 0; k < 3; k++) expect(whole.observations[(t * envs + n) * 3 + k]).toBe(name(t, n, k));
      expect(whole.rewards[t * envs + n]).toBe(name(t, n, 0));
      expect(whole.terminated[t * envs + n]).toBe(t === Math.floor(n / own) ? 1 : 0);
      expect(whole.lastValues[n]).toBe(name(0, n, 7));
    }
});

describe('what happened', () => {
  const rng = new Rng(4);
  /** Of so many rewards, and episodes of these lengths with a term each. */
  function statsOf(
    rewards: readonly number[],
    lengths: readonly number[],
    terms: readonly number[],
  ): CollectStats {
    const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
    const square = rewards.reduce((a, b) => a + b * b, 0) / rewards.length;
    const steps = lengths.reduce((a, b) => a + b, 0);
    return {
      episodeReturns: lengths.map(length => -length),
      episodeLengths: [...lengths],
      rewardMean: mean,
      rewardStd: Math.sqrt(square - mean ** 2),
      termMeans: Float64Array.of(terms.reduce((a, b) => a + b, 0) / steps),
      measureMeans: new Float64Array(0),
      blowUps: lengths.length,
      envSeconds: 1,
    };
  }
  const rewards = Array.from({ length: 3 }, () => Array.from({ length: 50 }, () => 3 + rng.normal()));
  const lengths = [[4, 9], [], [2]];
  const terms = [[8, 1], [], [5]];
  const parts = rewards.map((own, s) => statsOf(own, lengths[s], terms[s]));

  it('is that of all together, also where no episode ended in a shard', () => {
    const whole = statsOf(rewards.flat(), lengths.flat(), terms.flat());
    const merged = mergeStats(parts, 1);
    expect(merged.rewardMean).toBeCloseTo(whole.rewardMean, 12);
    expect(merged.rewardStd).toBeCloseTo(whole.rewardStd, 12);
    expect(merged.termMeans[0]).toBeCloseTo(14 / 15, 12);
    expect(merged.episodeLengths).toEqual([4, 9, 2]);
    expect(merged.episodeReturns).toEqual([-4, -9, -2]);
    expect(merged.blowUps).toBe(3);
    expect(Number.isNaN(mergeStats([parts[1]], 1).termMeans[0])).toBe(true);
  });

  it('took the environments as long as those that stepped at the same time', () => {
    expect(mergeStats(parts, 1).envSeconds).toBeCloseTo(3, 12);
    expect(mergeStats(parts, 3).envSeconds).toBeCloseTo(1, 12);
  });
});

it('states are put together and taken apart', () => {
  const states: ShardState[] = [0, 1, 2].map(s => ({
    envs: { version: 1, id: 'X-v0', envs: [{ n: 2 * s }, { n: 2 * s + 1 }] },
    rng: new Rng(s).state(),
    noise: [s, s + 0.5],
    returns: [10 * s, 20 * s],
  }));
  const merged = mergeStates(states);
  expect(merged.envs.envs).toEqual([0, 1, 2, 3, 4, 5].map(n => ({ n })));
  expect(
    splitStates(
      merged,
      states.map(({ rng }) => rng),
    ),
  ).toEqual(states);
  const bare = states.map(state => ({ ...state, noise: null, returns: null }));
  expect(mergeStates(bare)).toMatchObject({ actionNoise: null, returns: null });
  expect(
    splitStates(
      mergeStates(bare),
      bare.map(({ rng }) => rng),
    ),
  ).toEqual(bare);
});
