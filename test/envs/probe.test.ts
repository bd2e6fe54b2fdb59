import { describe, expect, it } from 'vitest';
import {
  type Env,
  probeAction,
  probeBoth,
  probeConstant,
  probeDiscount,
  probeEndless,
  probeObservation,
} from '../../src/envs/index.ts';

/** One episode with the given action: its observations, rewards and how it ended. */
function episode(env: Env, act: (obs: number) => number): { seen: number[]; rewards: number[]; end: string } {
  const obs = new Float32Array(1);
  env.reset({}, obs);
  const seen = [obs[0]];
  const rewards: number[] = [];
  for (;;) {
    const { reward, terminated, truncated } = env.step(new Float32Array([act(obs[0])]), obs);
    seen.push(obs[0]);
    rewards.push(reward);
    if (terminated || truncated) return { seen, rewards, end: terminated ? 'terminated' : 'truncated' };
  }
}

describe('probe environments', () => {
  it('1 constant: one step, reward 1', () => {
    for (const action of [0, 1]) {
      expect(episode(probeConstant(), () => action)).toEqual({
        seen: [0, 0],
        rewards: [1],
        end: 'terminated',
      });
    }
  });

  it('2 observation: the reward is the observation, both signs come', () => {
    const env = probeObservation();
    const all = Array.from({ length: 200 }, () => episode(env, () => 0));
    for (const { seen, rewards, end } of all) {
      expect([rewards, end]).toEqual([[seen[0]], 'terminated']);
    }
    const ups = all.filter(({ seen }) => seen[0] === 1).length;
    expect(ups).toBeGreaterThan(70);
    expect(ups).toBeLessThan(130);
  });

  it('3 discount: two steps that look different, the reward in the second', () => {
    const { seen, rewards, end } = episode(probeDiscount(), () => 1);
    expect([seen, rewards, end]).toEqual([[0, 1, 1], [0, 1], 'terminated']);
  });

  it('4 action: one action pays', () => {
    expect(episode(probeAction(), () => 1).rewards).toEqual([1]);
    expect(episode(probeAction(), () => 0).rewards).toEqual([-1]);
    const pay = (action: number): number =>
      episode(probeAction({ actions: 'continuous' }), () => action).rewards[0];
    expect(pay(0.5)).toBe(1);
    expect(pay(1)).toBe(0.75);
    expect(pay(-1)).toBe(-1.25);
  });

  it('5 both: the observation says which', () => {
    const env = probeBoth();
    for (let i = 0; i < 50; i++) expect(episode(env, obs => (obs === 1 ? 1 : 0)).rewards).toEqual([1]);
    for (let i = 0; i < 50; i++) expect(episode(env, obs => (obs === 1 ? 0 : 1)).rewards).toEqual([-1]);
    const continuous = probeBoth({ actions: 'continuous' });
    for (let i = 0; i < 50; i++) expect(episode(continuous, obs => obs / 2).rewards).toEqual([1]);
  });

  it('endless: reward 1 until it is truncated, never terminated', () => {
    const { rewards, end } = episode(probeEndless(), () => 0);
    expect([rewards, end]).toEqual([Array(10).fill(1), 'truncated']);
    expect(episode(probeEndless({ maxEpisodeSteps: 64 }), () => 0).rewards).toHaveLength(64);
  });
});
