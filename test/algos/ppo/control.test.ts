/** What decides how far an update may go, by itself. */
import { expect, it } from 'vitest';
import type { ActorCritic } from '../../../src/algos/agents/networks/actor-critic.ts';
import { holdLogStd, lowerLogStd, referenceCoefAt, shareWithin } from '../../../src/algos/ppo/control.ts';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';

const config = { ...ppoSettings.defaults, logStdMin: -2, logStdMax: 1, logStdInitial: 0 };
/** A network that is all log-stds. */
const model = {
  layout: { views: (weights: Float32Array) => ({ 'actor.logStd': weights }) },
} as unknown as ActorCritic;

it('log-stds go back on their bounds, both', () => {
  const weights = Float32Array.of(-3, -2, 0, 1, 5);
  holdLogStd(model, weights, config);
  expect([...weights]).toEqual([-2, -2, 0, 1, 1]);
});

it('log-stds come down to the falling bound, by no more than half of what an update may have', () => {
  const inf = Number.POSITIVE_INFINITY;
  const lowered = (guard: number, klLimit: number): number[] => {
    const weights = Float32Array.of(0, -0.75);
    const at = { guard, klLimit, progress: 0.5 };
    lowerLogStd(model, Float32Array.of(0, -0.75), weights, { ...config, logStdEnd: -1 }, at);
    return [...weights];
  };
  expect(lowered(inf, inf)).toEqual([-0.5, -0.75]);
  // Two of them, each by δ: a KL of 2 δ², which is half of the bound.
  expect(lowered(0.04, inf)).toEqual([expect.closeTo(-0.1, 6), -0.75]);
  expect(lowered(0.04, 0.01)).toEqual([expect.closeTo(-0.05, 6), -0.75]);
  const weights = Float32Array.of(0);
  const at = { guard: inf, klLimit: inf, progress: 1 };
  lowerLogStd(model, weights.slice(), weights, { ...config, logStdEnd: null }, at);
  expect([...weights]).toEqual([0]);
});

it('the share of minibatches within the bound leaves out those beyond, and what is no number', () => {
  const bound = Math.fround(0.02);
  expect(shareWithin(Float32Array.of(0, 0.01, 0.02), bound)).toBe(1);
  // One noisy minibatch in the middle is no early end.
  expect(shareWithin(Float32Array.of(0, 0.03, 0.01, 0.01), bound)).toBe(0.75);
  expect(shareWithin(Float32Array.of(0, 0.01, 0.03, 0.03), bound)).toBe(0.5);
  expect(shareWithin(Float32Array.of(0, Number.NaN), bound)).toBe(0.5);
});

it('the weight on the reference goes from its first value to its last, and stays there', () => {
  const decay = { ...config, klRefCoefInitial: 1, klRefCoefFinal: 0.2, klRefDecaySteps: 8 };
  expect([0, 4, 8, 20].map(steps => referenceCoefAt(decay, steps))).toEqual(
    [1, 0.6, 0.2, 0.2].map(value => expect.closeTo(value, 12)),
  );
  expect(referenceCoefAt({ ...decay, klRefDecaySteps: 0 }, 0)).toBeCloseTo(0.2, 12);
});
