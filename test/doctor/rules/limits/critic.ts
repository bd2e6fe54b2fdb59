/** The limits of the rules about the critic, each from both sides. */
import { agent, bend, level, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

export const critic: readonly AtLimits[] = [
  {
    code: 'critic-flat',
    // The 90th percentile of the explained variance is `top`, its median `late`.
    make: ({
      n = 40,
      late = 0.02,
      top = late,
      loss = 5,
      end = loss,
      kl = 0.006,
      coef = -1,
      total = -1,
      going = 0,
    }) =>
      agent(
        {
          'value/explained_variance': rows(n, i => (i % 4 === 0 ? top : late)),
          'loss/value': bend(n, loss, end),
          ...(total < 0 ? {} : { 'loss/total': bend(n, loss, end).map(v => v * total) }),
          'kl/step': level(n, kl),
          'episode/return': returns(n, going),
        },
        coef < 0 ? {} : { valueCoef: coef },
      ),
    cases: {
      rows: [{ n: 12 }, { n: 11 }],
      explained: [{ late: 0.099 }, { late: 0.101 }],
      unweighted: [
        { top: 0.29, coef: 0 },
        { top: 0.31, coef: 0 },
      ],
      coef: [
        { top: 0.2, coef: 0.9e-3 },
        { top: 0.2, coef: 1.1e-3 },
      ],
      share: [
        { top: 0.2, total: 0.0099 },
        { top: 0.2, total: 0.0101 },
      ],
      weighted: [{ coef: 0.1 }, { coef: 0.099 }],
      loss: [{ loss: 1.01e-3 }, { loss: 0.99e-3 }],
      kl: [{ kl: 2.01e-4 }, { kl: 1.99e-4 }],
      falls: [{ end: 2.51 }, { end: 2.49 }],
      alike: [
        { late: 0.99e-3, end: 1 },
        { late: 1.01e-3, end: 1 },
      ],
      sure: [{ n: 30 }, { n: 29 }, 'critical'],
    },
    causes: { weighted: 'no-reward-signal' },
  },
  {
    code: 'critic-died',
    make: ({ n = 60, before = 0.8, after = 0, died = n / 2, rise = 3 }) =>
      agent({
        'value/explained_variance': rows(n, i => (i < died ? before : after)),
        'loss/value': rows(n, i => (i < died ? 1 : rise)),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 30 }, { n: 29, died: 14 }],
      before: [{ before: 0.41 }, { before: 0.39 }],
      after: [{ after: 0.099 }, { after: 0.101 }],
      worst: [{ after: -0.49 }, { after: -0.51 }],
      stays: [{ died: 45 }, { died: 46 }],
      rise: [{ rise: 1.21 }, { rise: 1.19 }],
    },
  },
  {
    code: 'critic-fading',
    // A bend; or a line that waves; or one that loses so much on its way, and the rest in its last fifth.
    make: ({ n = 60, best = 0.9, end = -0.5, rise = 2, wave = 0, slow = 0 }) =>
      agent({
        'value/explained_variance':
          wave > 0
            ? rows(n, (i, t) => best + (end - best) * t + wave * Math.sin(7.1 * i))
            : slow > 0
              ? rows(n, (_, t) => (t < 0.8 ? best - slow * t : end - 0.1 * t))
              : bend(n, best, end),
        'loss/value': bend(n, 5, 5 * rise),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      best: [{ best: 0.501 }, { best: 0.499 }],
      end: [{ end: 0.199 }, { end: 0.201 }],
      fall: [
        { best: 0.7, end: 0.09 },
        { best: 0.7, end: 0.11 },
      ],
      tau: [
        { n: 200, end: -3, wave: 1.9 },
        { n: 200, end: -3, wave: 2 },
      ],
      slope: [{ slow: 0.74 }, { slow: 0.7 }],
      rise: [
        { end: 0, rise: 1.51 },
        { end: 0, rise: 1.49 },
      ],
      worse: [
        { end: -0.21, rise: 1 },
        { end: -0.19, rise: 1 },
      ],
    },
  },
  {
    code: 'critic-negative',
    make: ({ n = 40, explained = -0.3, loss = 5 }) =>
      agent({
        'value/explained_variance': level(n, explained),
        'loss/value': level(n, loss),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 15 }, { n: 14 }],
      explained: [{ explained: -0.21 }, { explained: -0.19 }],
      worse: [{ explained: -0.51 }, { explained: -0.49 }, 'critical'],
      loss: [{ loss: 0.0101 }, { loss: 0.0099 }],
    },
  },
  {
    code: 'reward-scale',
    make: ({
      n = 40,
      ev = 0,
      top = ev,
      loss = 2e3,
      first = loss,
      kl = 0.006,
      lr = 3e-4,
      largest = 1000,
      share = -1,
      seen = 1,
      floor = -1,
      floorRows = n,
    }) =>
      agent(
        {
          ...(seen ? { 'value/explained_variance': rows(n, i => (i % 4 === 0 ? top : ev)) } : {}),
          'loss/value': bend(n, first, loss),
          ...(share < 0 ? {} : { 'loss/total': bend(n, first, loss).map(v => v * share) }),
          'kl/step': level(n, kl),
          'episode/return': rows(n, i => largest * (1 + 1e-3 * Math.sin(i))),
          ...(floor < 0 ? {} : { 'train/lr': rows(floorRows, (_, t) => (t < floor ? 1e-5 : 1e-3)) }),
        },
        { learningRate: lr },
        floor < 0
          ? {}
          : {
              klProxy: {
                theirs: 'lr',
                id: 'train/lr',
                floor: 1e-5,
                ceiling: 1e-2,
                meaning: 'KL stays too large',
              },
            },
      ),
    cases: {
      rows: [
        { n: 8, largest: 1 },
        { n: 7, largest: 1 },
      ],
      blind: [
        { ev: 0.049, largest: 1 },
        { ev: 0.051, largest: 1 },
      ],
      blindMost: [
        { top: 0.19, largest: 1 },
        { top: 0.21, largest: 1 },
      ],
      loss: [
        { loss: 1001, largest: 1 },
        { loss: 999, largest: 1 },
      ],
      swamping: [
        { loss: 1.01e4, kl: 1e-3 },
        { loss: 0.99e4, kl: 1e-3 },
      ],
      millions: [
        { loss: 1.01e6, ev: 0.2, largest: 1e4 },
        { loss: 0.99e6, ev: 0.2, largest: 1e4 },
      ],
      vast: [
        { loss: 1.01e7, ev: 0.9, largest: 1e4 },
        { loss: 0.99e7, ev: 0.9, largest: 1e4 },
      ],
      explained: [
        { loss: 2e6, ev: 0.29, largest: 1e4 },
        { loss: 2e6, ev: 0.31, largest: 1e4 },
      ],
      beyond: [{ largest: Math.sqrt(2e3) / 3.05 }, { largest: Math.sqrt(2e3) / 2.95 }],
      rate: [
        { kl: 1e-4, lr: 2.01e-5 },
        { kl: 1e-4, lr: 1.99e-5 },
      ],
      falls: [
        { first: 2e4, loss: 0.49 * 2e4, lr: 1e-5 },
        { first: 2e4, loss: 0.51 * 2e4, lr: 1e-5 },
      ],
      maybe: [
        { loss: 2e4, kl: 1e-3, share: 0.0101 },
        { loss: 2e4, kl: 1e-3, share: 0.0099 },
      ],
      surely: [
        { loss: 2e4, share: 0.101 },
        { loss: 2e4, share: 0.099 },
      ],
      kl: [
        { loss: 2e4, kl: 1.49e-3 },
        { loss: 2e4, kl: 1.51e-3 },
      ],
      pinnedRows: [
        { seen: 0, floor: 2, floorRows: 20 },
        { seen: 0, floor: 2, floorRows: 19 },
      ],
      pinnedLoss: [
        { seen: 0, floor: 2, loss: 501 },
        { seen: 0, floor: 2, loss: 499 },
      ],
      pinned: [
        { seen: 0, n: 100, floor: 0.71 },
        { seen: 0, n: 100, floor: 0.69 },
      ],
    },
  },
];
