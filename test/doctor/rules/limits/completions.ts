/** The limits of the rules about what a language model writes and earns, each from both sides. */
import { degenerateGroups } from '../../../../src/doctor/rules/language-models/degenerate-groups.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { bend, level, partly } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';
import { model } from './language-models.ts';

/** A reward that stands still, and one that breaks down. */
const still = (n: number): number[] => rows(n, i => 0.2 + 0.02 * Math.sin(7.1 * i));
const broken = (n: number): number[] =>
  rows(n, (i, t) => (t < 0.4 ? 2.5 * t : 0.05) + 0.01 * Math.sin(7.1 * i));

export const completions: readonly AtLimits[] = [
  {
    code: 'token-entropy',
    // The last rows may be high and fall a little, the others low and rise a little.
    make: ({ n = 40, from = 1, to = 4, dies = 0, high = -1 }) =>
      model({
        'policy/entropy':
          high >= 0
            ? rows(n, i => (i < n - high ? 0.5 + 1e-3 * i : 5 - 1e-3 * i))
            : dies
              ? rows(n, (_, t) => (t < 0.1 ? from : to))
              : bend(n, from, to),
        'reward/mean': still(40),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      times: [{ to: 3.01 }, { to: 2.99 }],
      nats: [
        { from: 0.1, to: 1.01 },
        { from: 0.1, to: 0.99 },
      ],
      score: [
        { n: 20, high: 10 },
        { n: 20, high: 11 },
      ],
      share: [
        { dies: 1, from: 0.4, to: 0.0079 },
        { dies: 1, from: 0.4, to: 0.0081 },
      ],
      dead: [
        { dies: 1, from: 1, to: 0.0099 },
        { dies: 1, from: 1, to: 0.0101 },
      ],
      alive: [
        { dies: 1, from: 0.0501, to: 1e-4 },
        { dies: 1, from: 0.0499, to: 1e-4 },
      ],
    },
  },
  {
    code: 'reference-pinned',
    make: ({ n = 40, kl = 1e-5, sequence = 0, weight = 0.2, rate = 1e-6 }) =>
      model(
        { 'kl/ref': level(n, kl), 'reward/mean': still(n) },
        { refCoef: weight, learningRate: rate },
        { kl: { 'kl/ref': { per: sequence ? 'sequence' : 'token' } } },
      ),
    cases: {
      rows: [{ n: 30 }, { n: 29 }],
      token: [{ kl: 0.99e-3 }, { kl: 1.01e-3 }],
      sequence: [
        { sequence: 1, kl: 0.0499 },
        { sequence: 1, kl: 0.0501 },
      ],
      weight: [{ weight: 0.1 }, { weight: 0.099 }],
      rate: [
        { weight: 0.01, rate: 0.99e-7 },
        { weight: 0.01, rate: 1.01e-7 },
      ],
    },
  },
  {
    code: 'degenerate-groups',
    make: ({
      n = 40,
      zero = -1,
      spread = -1,
      flat = 1,
      gradient = -1,
      blown = -1,
      advantage = -1,
      none = 1,
      reward = 0.2,
      vary = 0.02,
    }) =>
      model({
        'reward/mean': rows(40, i => reward + vary * Math.sin(7.1 * i)),
        ...(zero < 0 ? {} : { 'reward/zero_std_groups': level(n, zero) }),
        ...(spread < 0 ? {} : { 'reward/group_std': partly(n, flat, spread, 0.5) }),
        ...(gradient < 0 ? {} : { 'grad/norm': level(n, gradient) }),
        ...(blown < 0 ? {} : { 'adv/std': level(n, blown) }),
        ...(advantage < 0
          ? {}
          : { 'adv/max': partly(n, none, advantage / 2, 1), 'adv/min': partly(n, none, -advantage / 2, -1) }),
      }),
    cases: {
      rows: [
        { n: 8, zero: 1 },
        { n: 7, zero: 1 },
      ],
      most: [{ zero: 0.801 }, { zero: 0.799 }],
      groups: [{ zero: 0.951 }, { zero: 0.949 }, 'critical'],
      spread: [{ spread: 0.99e-4 }, { spread: 1.01e-4 }],
      flat: [
        { n: 400, spread: 0, flat: 0.61 },
        { n: 400, spread: 0, flat: 0.59 },
      ],
      all: [{ n: 400, spread: 0, flat: 0.91 }, { n: 400, spread: 0, flat: 0.89 }, 'critical'],
      advantage: [{ advantage: 0.99e-6 }, { advantage: 1.01e-6 }],
      gradient: [
        { spread: 0, gradient: 0.99e-6 },
        { spread: 0, gradient: 1.01e-6 },
      ],
      blown: [{ blown: 1001 }, { blown: 999 }],
      ceiling: [
        { zero: 1, reward: 0.92, vary: 0.021 },
        { zero: 1, reward: 0.92, vary: 0.0195 },
      ],
      vary: [
        { zero: 1, reward: 0.95, vary: 0.49e-6 },
        { zero: 1, reward: 0.95, vary: 0.52e-6 },
      ],
    },
  },
  {
    code: 'degenerate-groups',
    table: 'degenerate-groups/by-prompt',
    make: ({ n = 40, entropy = 0.5, temperature = 1 }) =>
      model(
        {
          'reward/mean': still(40),
          'reward/zero_std_groups': level(40, 1),
          'policy/entropy': level(n, entropy),
        },
        { temperature },
      ),
    // Whether it is the reward that does not look.
    says: made =>
      degenerateGroups
        .check(made, signalsOf(made), [])
        .some(({ fix }) => fix.some(text => text.includes('does not look'))),
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
      temperature: [{ temperature: 0.7 }, { temperature: 0.69 }],
      entropy: [{ entropy: 0.0501 }, { entropy: 0.0499 }],
    },
  },
  {
    code: 'malformed-outputs',
    make: ({
      n = 40,
      cut = 0,
      last = cut,
      shrinks = -1,
      // So many rows of the length are high, and the others go up by a little.
      high = -1,
      lengthRows = n,
      floor = -1,
      off = 0,
      form = -1,
      formRows = n,
      read = -1,
    }) =>
      model({
        'reward/mean':
          shrinks >= 0 || high >= 0
            ? broken(n)
            : floor < 0
              ? still(n)
              : rows(n, i => (i < floor * n ? off * (i % 2) : 1) - 1),
        'completion/truncated': rows(n, (_, t) => (t < 0.8 ? cut : last)),
        ...(shrinks < 0 ? {} : { 'completion/length': bend(lengthRows, 100, 100 * shrinks) }),
        ...(high < 0 ? {} : { 'completion/length': rows(n, i => (i < high ? 100 : 1 + 1e-3 * i)) }),
        ...(form < 0 ? {} : { 'reward/part/format': rows(formRows, i => -form * (i % 2)) }),
        ...(read < 0 ? {} : { 'completion/parse_rate': level(n, read) }),
      }),
    cases: {
      rows: [
        { n: 8, cut: 0.9 },
        { n: 7, cut: 0.9 },
      ],
      formRows: [
        { floor: 0.9, form: 0, formRows: 10 },
        { floor: 0.9, form: 0, formRows: 9 },
      ],
      lengthRows: [
        { shrinks: 0.05, lengthRows: 20 },
        { shrinks: 0.05, lengthRows: 19 },
      ],
      cut: [{ cut: 0.701 }, { cut: 0.699 }],
      still: [
        { cut: 0.9, last: 0.501 },
        { cut: 0.9, last: 0.499 },
      ],
      some: [
        { floor: 0.9, cut: 0.301 },
        { floor: 0.9, cut: 0.299 },
      ],
      floor: [
        { n: 100, floor: 0.81, form: 0 },
        { n: 100, floor: 0.79, form: 0 },
      ],
      lowest: [
        { n: 100, floor: 0.9, form: 0, off: 0.099 },
        { n: 100, floor: 0.9, form: 0, off: 0.101 },
      ],
      read: [
        { floor: 0.9, form: 0, read: 0.499 },
        { floor: 0.9, form: 0, read: 0.501 },
      ],
      varies: [
        { floor: 0.9, form: 0.99e-9 },
        { floor: 0.9, form: 1.01e-9 },
      ],
      shrunk: [{ shrinks: 0.099 }, { shrinks: 0.101 }],
      score: [{ high: 19 }, { high: 18 }],
    },
  },
];
