/** The limits of the rules that look for one cause each, from both sides. */
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { stateLost } from '../../../../src/doctor/rules/rewards/state-lost.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { agent, bend, level, partly, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

/** A run that was taken up again after so many rows, and lost so much of the 100 that it had gained. */
export const resumed = ({
  n = 60,
  cut = 30,
  drop = 90,
  wave = 0,
  back = 0,
  lr = 1,
  ev = 0,
  kl = 1,
}: LimitTable) =>
  agent(
    {
      'episode/return': rows(n, i => {
        const swing = i % 2 === 0 ? wave : -wave;
        if (i < cut) return i < 5 && cut > 5 ? 0 : 100 + swing;
        return (back > 0 && i >= cut + back ? 100 : 100 - drop) + swing;
      }),
      'train/lr': rows(n, i => 3e-4 * (i < cut ? 1 : lr)),
      'value/explained_variance': rows(n, i => 0.9 - (i < cut ? 0 : ev)),
      'kl/step': rows(n, i => 0.005 * (i < cut ? 1 : kl)),
    },
    {},
    { restarts: [1000 * (cut + 1)] },
  );

export const causes: readonly AtLimits[] = [
  {
    code: 'value-over-estimates',
    make: ({ n = 40, start = 10, end = 150 }) =>
      agent({ 'value/mean': bend(n, start, end), 'episode/return': level(n, 20) }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      times: [{ end: 101 }, { end: 99 }],
      vast: [{ end: 1010 }, { end: 990 }, 'critical'],
      growth: [{ start: 49 }, { start: 51 }],
    },
  },
  {
    code: 'time-limits',
    make: ({ n = 20, short = 0, steps = 500 }) =>
      agent(
        {
          'episode/length': rows(n, i => (i >= n - short ? steps - 1 : steps)),
          'kl/step': level(n, 0.005),
          'episode/return': returns(n, 1),
        },
        {},
        { trainer: 'cleanrl' },
      ),
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      often: [{ short: 1 }, { short: 2 }],
      steps: [{ steps: 10 }, { steps: 9 }],
    },
  },
  {
    code: 'actions-saturated',
    make: ({ n = 40, at = 0.6, std = 1, first = std }) =>
      agent(
        {
          'policy/saturated_actions': level(n, at),
          'policy/std': bend(n, first, std),
          'episode/return': returns(n, 0),
        },
        {},
        { actions: 'continuous' },
      ),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      share: [{ at: 0.5 }, { at: 0.49 }],
      most: [{ at: 0.9 }, { at: 0.89 }, 'critical'],
      std: [
        { at: 0, std: 3 },
        { at: 0, std: 2.99 },
      ],
      grown: [
        { at: 0, std: 4, first: 2.7 },
        { at: 0, std: 4, first: 2.6 },
      ],
    },
  },
  {
    code: 'entropy-explodes',
    make: ({ n = 40, coef = 0, grow = 3, discrete = 0, least = 0.3, end = 0.95 }) =>
      discrete
        ? agent(
            {
              'policy/entropy': rows(
                n,
                (_, t) => Math.LN2 * (t < 0.2 ? 1 : t < 0.5 ? least : t < 0.7 ? 0.7 : end),
              ),
              'episode/return': returns(n, 0),
            },
            { entropyCoef: coef },
          )
        : agent(
            { 'policy/std': bend(n, 1, grow), 'episode/return': returns(n, 0) },
            { entropyCoef: coef },
            { actions: 'continuous' },
          ),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      bonus: [{ coef: 0.9e-3 }, { coef: 1.1e-3 }],
      growth: [{ grow: 2.01 }, { grow: 1.99 }],
      vast: [{ grow: 5.01 }, { grow: 4.99 }, 'critical'],
      sure: [
        { discrete: 1, least: 0.49 },
        { discrete: 1, least: 0.51 },
      ],
      random: [
        { discrete: 1, end: 0.91 },
        { discrete: 1, end: 0.89 },
      ],
    },
  },
  {
    code: 'state-lost',
    make: resumed,
    cases: {
      before: [{ cut: 10 }, { cut: 9 }],
      after: [{ n: 35 }, { n: 34 }],
      noise: [
        { drop: 60, wave: 5.1 },
        { drop: 60, wave: 5.4 },
      ],
      share: [{ drop: 51 }, { drop: 49 }],
      lasting: [{ n: 50 }, { n: 49 }, 'critical'],
    },
  },
  {
    code: 'state-lost',
    table: 'state-lost/signs',
    make: resumed,
    // What it takes for lost: 0 the schedule, 1 the critic, 2 the optimiser.
    says: (made, { lost = 0 }) =>
      stateLost
        .check(made, signalsOf(made), [])
        .some(({ evidence }) => evidence.join(' ').includes(['schedule', 'critic', 'optimiser'][lost])),
    cases: {
      rate: [{ lr: 1.51 }, { lr: 1.49 }],
      explained: [
        { lost: 1, ev: 0.301 },
        { lost: 1, ev: 0.299 },
      ],
      kl: [
        { lost: 2, kl: 5.01 },
        { lost: 2, kl: 4.99 },
      ],
    },
  },
  {
    code: 'inert-setting',
    // The loss has `share` of a coefficient of .01 in it, and what nobody accounts for; a KL; a rate that falls by `fall`.
    make: ({
      n = 40,
      share = 0,
      off = 0,
      scatter = 0,
      apart = 1,
      kl = 0,
      often = 1,
      epochs = 10,
      fall = -1,
      total = 1e5,
    }) => {
      const policy = rows(n, i => 0.01 * Math.sin(3.3 * i));
      const entropy = rows(n, (_, t) => 2 - t);
      // The less it goes its own way, the less sure its weight is.
      const value = rows(n, i => 2.5 * entropy[i] + apart * Math.sin(1.7 * i));
      return agent(
        {
          ...(kl > 0 || fall >= 0
            ? {}
            : {
                'loss/policy': policy,
                'loss/value': value,
                'policy/entropy': entropy,
                'loss/total': rows(
                  n,
                  i =>
                    policy[i] +
                    0.5 * value[i] -
                    0.01 * share * entropy[i] +
                    (i % 2 === 0 ? off : -off) +
                    scatter * Math.sin(7.7 * i),
                ),
              }),
          ...(kl > 0
            ? { 'kl/step': partly(n, often, 0.01 * kl, 0.001), 'train/epochs_run': level(n, epochs) }
            : {}),
          ...(fall < 0 ? {} : { 'train/lr': rows(n, (_, t) => 3e-4 * (1 - fall * t)) }),
          'episode/return': returns(n, 0),
        },
        kl > 0
          ? { targetKl: 0.01 }
          : fall >= 0
            ? { learningRateSchedule: 'linear', totalSteps: total }
            : { entropyCoef: 0.01 },
      );
    },
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      implied: [{ share: 0.24 }, { share: 0.26 }],
      errors: [
        { scatter: 0.002, apart: 0.4 },
        { scatter: 0.002, apart: 0.3 },
      ],
      rest: [{ off: 0.0029 }, { off: 0.0031 }],
      beyond: [{ kl: 3.01 }, { kl: 2.99 }],
      unstopped: [
        { n: 100, kl: 4, often: 0.51 },
        { n: 100, kl: 4, often: 0.49 },
      ],
      epochs: [
        { kl: 4, epochs: 3 },
        { kl: 4, epochs: 2 },
      ],
      over: [
        { fall: 0, total: 39_000 / 0.301 },
        { fall: 0, total: 39_000 / 0.299 },
      ],
      changed: [{ fall: 0.049 }, { fall: 0.051 }],
    },
  },
  {
    code: 'metric-impossible',
    make: ({ n = 40, bad = 10, by = 0.2 }) =>
      agent({
        'value/explained_variance': rows(n, i => (i < bad ? 1 + by : 0.9)),
        'episode/return': returns(n, 1),
      }),
    cases: {
      rows: [{ bad: 5 }, { bad: 4 }],
      share: [
        { n: 600, bad: 6 },
        { n: 600, bad: 5 },
      ],
      slack: [{ by: 1.1e-3 }, { by: 0.9e-3 }],
    },
  },
  {
    code: 'units-dead',
    make: ({ n = 40, dead = 0.6 }) =>
      agent({ 'policy/dead_units': bend(n, 0.1, dead), 'episode/return': returns(n, 0) }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      share: [{ dead: 0.501 }, { dead: 0.499 }],
      most: [{ dead: 0.901 }, { dead: 0.899 }, 'critical'],
    },
  },
  {
    code: 'usual-in-ppo',
    make: ({ n = 20, below = n }) =>
      agent({ 'loss/total': rows(n, i => (i < below ? -0.1 : 0.1)), 'episode/return': returns(n, 1) }),
    cases: {
      rows: [{ n: 5 }, { n: 4 }],
      often: [
        { n: 50, below: 10 },
        { n: 50, below: 8 },
      ],
    },
  },
];
