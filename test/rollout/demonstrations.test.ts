/** Demonstrations: what was seen, done and earned, step by step, with the returns that a critic learns. */
import { expect, it } from 'vitest';
import { box, discrete, inProcessVectorEnv, simulation } from '../../src/envs/index.ts';
import { recordDemonstrations } from '../../src/rollout/demonstrations.ts';

const [gamma, rewardScale] = [0.9, 0.5];

/** Episodes of three steps; a step's reward is its number, and ten more in the second environment. */
const envs = async () =>
  inProcessVectorEnv(
    index =>
      simulation({
        observationSpace: box({ shape: [1] }),
        actionSpace: discrete(3),
        start: () => ({ steps: 0 }),
        observe: state => [state.steps],
        step(state, _, result) {
          state.steps++;
          result.reward = state.steps + 10 * index;
          result.terminated = state.steps === 3;
        },
      }),
    2,
  );

it('returns stop at the end of an episode, where a reward that goes on stands for what is beyond', async () => {
  const rule = {
    doc: 'the step, as far as there are actions',
    make: () => (obs: Float32Array, action: Float32Array) => {
      action[0] = Math.min(2, obs[0]);
    },
  };
  const config = { steps: 10, envs: 2, seed: 1, gamma, rewardScale };
  const shown = await recordDemonstrations({ rule }, ['rule'], config, envs);
  // (T, N): five steps of two environments.
  const rewards = [1, 2, 3, 1, 2].map(reward => [reward, reward + 10]);
  const mean = rewards.flat().reduce((a, b) => a + b) / 10;
  expect(shown.count).toBe(10);
  expect(shown.scores).toEqual([{ name: 'rule', rewardMean: mean }]);
  expect([...shown.observations]).toEqual([0, 0, 1, 1, 2, 2, 0, 0, 1, 1]);
  expect([...shown.actions]).toEqual([0, 0, 1, 1, 2, 2, 0, 0, 1, 1]);
  expect([...shown.logits!.subarray(0, 3)]).toEqual([0, -30, -30]);
  const beyond = (mean * rewardScale) / (1 - gamma);
  for (const n of [0, 1]) {
    let following = beyond;
    for (let t = 4; t >= 0; t--) {
      // The third step ended an episode.
      if (t === 2) following = beyond;
      following = rewards[t][n] * rewardScale + gamma * following;
      expect(shown.returns[t * 2 + n]).toBeCloseTo(following, 4);
    }
  }
});
