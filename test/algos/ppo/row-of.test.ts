/** The row of an iteration that is made up: which number goes where. */
import { expect, it } from 'vitest';
import { rowOf } from '../../../src/algos/ppo/row.ts';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { newCounters } from '../../../src/algos/update/guarded.ts';

type Parts = Parameters<typeof rowOf>[0];

const parts = {
  rollout: {
    values: Float32Array.of(0, 1, 2, 3),
    returns: Float32Array.of(0, 2, 4, 6),
    advantages: Float32Array.of(-1, 1, -1, 1),
  },
  collected: { episodeReturns: [5, 9], episodeLengths: [10, 20], rewardMean: 0.5, rewardStd: 0.25 },
  update: {
    done: {
      knobs: { clipRange: 0.2 },
      // Eight minibatches were looked at, six of them stepped along.
      stats: { taken: 6, minibatches: 8, stopped: 'kl' },
    },
    held: { seen: { entropy: 0.5 } },
  },
  config: ppoSettings.defaults,
  counters: { ...newCounters(), bestReturn: 7 },
  minibatches: 4,
  model: { distribution: { maxEntropy: 2 }, layout: { views: () => ({}) } },
  envs: { rewardTerms: [], measures: [] },
  times: {},
} as unknown as Parts;

it('tells returns by values, and not values by returns', () => {
  // Values explain half of each return: a quarter of the variance is left.
  expect(rowOf(parts)['value/explained_variance']).toBeCloseTo(0.75, 6);
});

it('counts epochs by the steps that were taken, and keeps the best return of the run', () => {
  const row = rowOf(parts);
  expect(row).toMatchObject({
    'train/epochs_run': 1.5,
    'train/early_stop': 1,
    'policy/entropy_relative': 0.25,
    'adv/mean': 0,
    'adv/std': 1,
    'episode/count': 2,
    'episode/return': 7,
    'episode/return_best': 9,
    'episode/length': 15,
  });
  expect(parts.counters.bestReturn).toBe(9);
});
