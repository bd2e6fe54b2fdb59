/** The limits of the rules about what holds updates back, each from both sides. */
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { guardBusy } from '../../../../src/doctor/rules/steps/guard-busy.ts';
import { agent, level, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

export const guard: readonly AtLimits[] = [
  {
    code: 'guard-busy',
    make: ({ n = 60, often = 1, rate = -1, rateRows = n }) =>
      agent(
        {
          'guard/retries': rows(n, i => (i >= n / 2 && (i - n / 2) / (n / 2) < often ? 1 : 0)),
          ...(rate < 0 ? {} : { 'guard/rate': level(rateRows, rate) }),
          'kl/step': level(n, 0.01),
        },
        { guard: 0.03 },
      ),
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      often: [
        { n: 200, often: 0.34 },
        { n: 200, often: 0.33 },
      ],
      rateRows: [
        { n: 12, often: 0, rate: 0.05 },
        { n: 12, often: 0, rate: 0.05, rateRows: 11 },
      ],
      left: [
        { often: 0, rate: 0.099 },
        { often: 0, rate: 0.101 },
      ],
    },
  },
  {
    code: 'guard-busy',
    table: 'guard-busy/bound',
    make: ({ p99 = 0.09 }) =>
      agent(
        { 'guard/retries': level(60, 1), 'kl/step_p99': level(60, p99), 'kl/step': level(60, 0.01) },
        { guard: 0.03, guardP99: 0.1 },
      ),
    // That the bound on single states is what acts.
    says: made =>
      guardBusy
        .check(made, signalsOf(made), [])
        .some(({ fix }) => fix.some(text => text.includes('guardP99'))),
    cases: { near: [{ p99: 0.0801 }, { p99: 0.0799 }] },
  },
  {
    code: 'kl-coef-runaway',
    make: ({ n = 20, first = 0.01, last = 200, largest = last }) =>
      agent({
        'kl/coef': rows(n, i => (i === 0 ? first : i === n - 1 ? last : i === n - 2 ? largest : first)),
        'kl/step': level(n, 0.01),
      }),
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      end: [{ last: 50.1 }, { last: 49.9 }],
      times: [
        { first: 1, last: 101 },
        { first: 1, last: 99 },
      ],
      largest: [{ largest: 200 / 0.901 }, { largest: 200 / 0.899 }],
    },
  },
  {
    code: 'rate-pinned',
    make: ({ n = 40, low = 1, rate = 1e-5 }) =>
      agent(
        { 'train/lr': rows(n, i => (i < low * n ? rate : 1e-3)), 'episode/return': returns(n, 0) },
        {},
        {
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
      rows: [{ n: 30 }, { n: 29 }],
      floor: [{ rate: 1.049e-5 }, { rate: 1.051e-5 }],
      often: [
        { n: 100, low: 0.8 },
        { n: 100, low: 0.79 },
      ],
    },
  },
];
