import { describe, expect, it } from 'vitest';
import { makeEnv } from '../../src/envs/index.ts';
import { obsFor } from './support/contract.ts';
import { putInState, readRecorded, replay } from './support/replay.ts';

const { specs, cases } = readRecorded(new URL('fixtures/gymnasium.json', import.meta.url));

describe('against Gymnasium', () => {
  for (const recorded of cases) {
    const options = JSON.stringify(recorded.options);
    it(`${recorded.id} ${options}: observations, rewards and ends to 1e-6 over whole walks`, () => {
      const env = makeEnv(recorded.id, recorded.options);
      const { observation, reward, steps } = replay(env, recorded);
      expect(steps).toBeGreaterThan(100);
      expect(observation).toBeLessThanOrEqual(1e-6);
      expect(reward).toBeLessThanOrEqual(1e-6);
    });
  }

  it.each(specs)('$id: the same limits', recorded => {
    const { spec, observationSpace, actionSpace } = makeEnv(recorded.id);
    expect(spec.maxEpisodeSteps).toBe(recorded.maxEpisodeSteps);
    expect(spec.rewardThreshold).toBe(recorded.rewardThreshold);
    if (observationSpace.kind !== 'box') throw new Error('not a box');
    expect(Float32Array.from(observationSpace.low)).toEqual(recorded.low);
    expect(Float32Array.from(observationSpace.high)).toEqual(recorded.high);
    if (actionSpace.kind === 'discrete') expect({ n: actionSpace.n }).toEqual(recorded.action);
    else if (actionSpace.kind === 'box')
      expect({ low: actionSpace.low[0], high: actionSpace.high[0] }).toEqual(recorded.action);
  });

  it('episodes start where Gymnasium starts them', () => {
    // Uniform draws: in 4,000 the extremes come near the limits and the mean near the middle.
    const starts: [string, number, [number, number]][] = [
      ['CartPole-v1', 0, [-0.05, 0.05]],
      ['CartPole-v1', 3, [-0.05, 0.05]],
      ['Pendulum-v1', 2, [-1, 1]],
      ['Acrobot-v1', 4, [-0.1, 0.1]],
      ['MountainCarContinuous-v0', 0, [-0.6, -0.4]],
      ['MountainCarContinuous-v0', 1, [0, 0]],
    ];
    for (const [id, number, [low, high]] of starts) {
      const env = makeEnv(id);
      const obs = obsFor(env);
      const values = Array.from({ length: 4_000 }, () => {
        env.reset({}, obs);
        return obs[number];
      });
      const width = high - low;
      expect(Math.min(...values)).toBeGreaterThanOrEqual(Math.fround(low));
      expect(Math.max(...values)).toBeLessThanOrEqual(Math.fround(high));
      expect(Math.min(...values)).toBeLessThanOrEqual(low + 0.01 * width);
      expect(Math.max(...values)).toBeGreaterThanOrEqual(high - 0.01 * width);
      expect(Math.abs(values.reduce((a, b) => a + b, 0) / 4_000 - (low + high) / 2)).toBeLessThanOrEqual(
        0.02 * width,
      );
    }
  });

  it("Pendulum's start covers the circle, and both sides of the angle's wrap cost the same", () => {
    const env = makeEnv('Pendulum-v1');
    const obs = obsFor(env);
    const quarters = new Set<string>();
    for (let i = 0; i < 100; i++) {
      env.reset({}, obs);
      quarters.add(`${Math.sign(obs[0])} ${Math.sign(obs[1])}`);
    }
    expect(quarters.size).toBe(4);
    for (const turns of [-3, -1, 0, 1, 3]) {
      putInState(env, [1 + 2 * Math.PI * turns, 0]);
      expect(env.step(new Float32Array([0]), obs).reward).toBeCloseTo(-1, 12);
    }
  });
});
