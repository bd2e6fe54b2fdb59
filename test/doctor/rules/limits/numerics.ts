/** The limits of the rules about values that are no numbers, each from both sides. */
import { agent, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

export const numerics: readonly AtLimits[] = [
  {
    code: 'gradient-explodes',
    make: ({ n = 60, late = 200, scatter = 0, low = 200 }) =>
      agent({
        'grad/norm': rows(n, (i, t) =>
          t < 0.5 ? 1 + scatter * (i % 2 ? 1 : -1) : t < 0.78 ? 1 : i % 5 < 2 ? Math.min(low, late) : late,
        ),
        'episode/return': returns(60, 2),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      times: [{ late: 20.1 }, { late: 19.9 }],
      spreads: [
        { late: 30, scatter: 0.95 },
        { late: 30, scatter: 0.99 },
      ],
      most: [{ low: 5.1 }, { low: 4.9 }],
    },
  },
  {
    code: 'skipped-minibatches',
    make: ({ n = 40, some = 20 }) => agent({ 'train/skipped': rows(n, i => (i < some ? 1 : 0)) }),
    cases: {
      rows: [{ n: 3 }, { n: 2 }],
      skipped: [{ some: 2 }, { some: 1 }],
      often: [{ n: 100, some: 20 }, { n: 100, some: 19 }, 'critical'],
    },
  },
  {
    code: 'ends-in-burst',
    // Calm rows that scatter, of which one may be the highest, and the last; the losses do alike, of which one goes with the KL.
    make: ({
      n = 40,
      kl = 1,
      scatter = 0.001,
      highest = 0.01,
      loss = 1,
      lossHighest = 0.02,
      total = 1e6,
      base = 0.01,
    }) =>
      agent(
        {
          'kl/step': rows(n, i =>
            i === n - 1 ? kl : i === n - 4 ? highest : base + scatter * ((i % 3) - 1),
          ),
          'loss/policy': rows(n, i =>
            i === n - 1 ? loss : i === n - 4 ? lossHighest : 0.02 + 0.004 * ((i % 3) - 1),
          ),
        },
        { totalSteps: total },
      ),
    cases: {
      rows: [{ n: 15 }, { n: 14 }],
      kl: [{ kl: 0.0501 }, { kl: 0.0499 }],
      // Of three values in turn the robust spread is 1.4826 times their step.
      spreads: [
        { scatter: 0.005, kl: 0.01 + 10.1 * 1.4826 * 0.005 },
        { scatter: 0.005, kl: 0.01 + 9.9 * 1.4826 * 0.005 },
      ],
      times: [
        { highest: 0.5, kl: 0.755 },
        { highest: 0.5, kl: 0.745 },
      ],
      otherSpreads: [{ loss: 0.02 + 8.1 * 1.4826 * 0.004 }, { loss: 0.02 + 7.9 * 1.4826 * 0.004 }],
      otherTimes: [
        { lossHighest: 0.5, loss: 0.605 },
        { lossHighest: 0.5, loss: 0.595 },
      ],
      least: [
        { scatter: 0, base: 0.04, kl: 0.0801, highest: 0.04 },
        { scatter: 0, base: 0.04, kl: 0.0799, highest: 0.04 },
      ],
      ended: [{ total: 40_000 / 0.949 }, { total: 40_000 / 0.951 }],
    },
  },
  {
    code: 'kl-impossible',
    // So many rows are below 0; or of a k1 such a share is exactly 0, in stretches of so many rows.
    make: ({ n = 100, below = -1e-3, count = 10, usual = 1e-4, zeros = -1, stretch = 1, sequence = 0 }) => {
      const isZero = (i: number): boolean =>
        Math.floor((Math.floor(i / stretch) + 1) * zeros) > Math.floor(Math.floor(i / stretch) * zeros);
      const value = (i: number): number => (zeros < 0 ? (i < count ? below : usual) : isZero(i) ? 0 : usual);
      return agent(
        { 'kl/step': rows(n, value) },
        {},
        {
          kl: {
            'kl/step': {
              estimator: zeros < 0 ? 'k3' : 'k1',
              per: sequence ? 'sequence' : 'action',
            },
          },
        },
      );
    },
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
      noise: [{ below: -1.01e-5 }, { below: -0.99e-5 }],
      ofSize: [
        { usual: 1, below: -0.0101 },
        { usual: 1, below: -0.0099 },
      ],
      negative: [
        { n: 80, count: 3 },
        { n: 80, count: 2 },
      ],
      often: [
        { n: 1000, count: 21 },
        { n: 1000, count: 20 },
      ],
      longRows: [
        { sequence: 1, n: 20, count: 20, below: -2 },
        { sequence: 1, n: 19, count: 20, below: -2 },
      ],
      below: [
        { sequence: 1, n: 20, count: 11, below: -2, usual: -0.51 },
        { sequence: 1, n: 20, count: 11, below: -2, usual: -0.49 },
      ],
      mostly: [
        { sequence: 1, n: 20, count: 14, below: -2 },
        { sequence: 1, n: 20, count: 13, below: -2 },
      ],
      median: [
        { sequence: 1, n: 20, count: 20, below: -1.01 },
        { sequence: 1, n: 20, count: 20, below: -0.99 },
      ],
      zeros: [
        { n: 1000, zeros: 0.151 },
        { n: 1000, zeros: 0.149 },
      ],
      most: [
        { n: 1000, zeros: 0.899 },
        { n: 1000, zeros: 0.901 },
      ],
      changes: [
        { n: 420, zeros: 0.5, stretch: 6 },
        { n: 420, zeros: 0.5, stretch: 7 },
      ],
    },
  },
];
