/** The limits of the rule about a target KL that ends every update at once, each from both sides. */
import { agent, level, partly, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

/** Below what it is told: the KL is `kl`, and scatters by this about it, in logarithms. */
const about = (n: number, kl: number, scatter: number): number[] =>
  rows(n, i => kl * Math.exp(scatter * (i % 2 === 0 ? 1 : -1)));

export const earlyStops: readonly AtLimits[] = [
  {
    code: 'target-kl-tight',
    make: ({
      n = 40,
      target = -1,
      kl = 1e-5,
      scatter = 0,
      // Shares of the KLs above another one, and of the epochs that ran and of the stops that were early.
      share = -1,
      above = 0,
      ran = -1,
      ranRows = n,
      once = 1,
      stops = -1,
      epochs = -1,
      lr = 3e-4,
      ev = 0,
      loss = 1,
      largest = 20,
    }) =>
      agent(
        {
          'kl/step': share < 0 ? about(n, kl, scatter) : partly(n, share, above, kl),
          ...(ran < 0 ? {} : { 'train/epochs_run': partly(ranRows, once, ran, 9) }),
          ...(stops < 0 ? {} : { 'train/early_stop': partly(ranRows, stops, 1, 0) }),
          'value/explained_variance': level(n, ev),
          'loss/value': level(n, loss),
          'episode/return': returns(40, 0).map(v => (v * largest) / 20),
        },
        {
          learningRate: lr,
          ...(target < 0 ? {} : { targetKl: target }),
          ...(epochs < 0 ? {} : { epochs }),
        },
      ),
    cases: {
      rows: [
        { n: 8, target: 1e-3 },
        { n: 7, target: 1e-3 },
      ],
      target: [{ target: 2.99e-3 }, { target: 3.01e-3 }],
      around: [
        { target: 1e-5, kl: 1e-6, share: 0.8, above: 0.99e-4 },
        { target: 1e-5, kl: 1e-6, share: 0.8, above: 1.01e-4 },
      ],
      small: [
        { target: 2e-3, kl: 0.99e-3 },
        { target: 2e-3, kl: 1.01e-3 },
      ],
      absurd: [
        { target: 0.99e-3, kl: 4e-3 },
        { target: 1.01e-3, kl: 4e-3 },
      ],
      beyond: [
        { target: 0.9e-3, kl: 0.9e-3 * 3.01 },
        { target: 0.9e-3, kl: 0.9e-3 * 2.99 },
      ],
      passed: [
        { n: 400, target: 0.9e-3, kl: 1e-3, share: 0.91, above: 4e-3 },
        { n: 400, target: 0.9e-3, kl: 1e-3, share: 0.89, above: 4e-3 },
      ],
      smallPassed: [
        { target: 0.9e-3, kl: 4.99e-3 },
        { target: 0.9e-3, kl: 5.01e-3 },
      ],
      ranRows: [
        { ran: 1, ranRows: 5, epochs: 10 },
        { ran: 1, ranRows: 4, epochs: 10 },
      ],
      often: [
        { n: 400, stops: 0.9, kl: 1e-3 },
        { n: 400, stops: 0.88, kl: 1e-3 },
      ],
      stopping: [
        { stops: 1, kl: 1e-3, target: 4.99e-3 },
        { stops: 1, kl: 1e-3, target: 5.01e-3 },
      ],
      smallStopped: [
        { stops: 1, kl: 1.99e-3 },
        { stops: 1, kl: 2.01e-3 },
      ],
      epochs: [
        { ran: 0.5, epochs: 3, kl: 1e-3 },
        { ran: 0.5, epochs: 2, kl: 1e-3 },
      ],
      cut: [
        { ran: 2, epochs: 8.1, kl: 1e-3 },
        { ran: 2, epochs: 7.9, kl: 1e-3 },
      ],
      rate: [
        { ran: 1, lr: 5.01e-5 },
        { ran: 1, lr: 4.99e-5 },
      ],
      still: [
        { ran: 1, kl: 1.01e-7 },
        { ran: 1, kl: 0.99e-7 },
      ],
      uniformRows: [{ n: 15 }, { n: 14 }],
      uniformRate: [{ lr: 1.01e-4 }, { lr: 0.99e-4 }],
      uniformKl: [{ kl: 0.99e-4 }, { kl: 1.01e-4 }],
      uniformSpread: [{ scatter: 0.59 / 1.4826 }, { scatter: 0.61 / 1.4826 }],
      explained: [{ ev: 0.299 }, { ev: 0.301 }],
      farOff: [
        { loss: 0.99e4, largest: 1e4 },
        { loss: 1.01e4, largest: 1e4 },
      ],
      unscaled: [
        { loss: 9e3, largest: 94.9 / 2.99 },
        { loss: 9e3, largest: 94.9 / 3.3 },
      ],
      unscaledLoss: [
        { loss: 0.99e3, largest: 1 },
        { loss: 1.01e3, largest: 1 },
      ],
    },
  },
];
