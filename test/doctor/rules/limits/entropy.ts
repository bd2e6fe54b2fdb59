/** The limits of the rules about entropy, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { agent, bend, disordered, level, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** Entropy as a share of its maximum (or in nats, without one) falls to `low` at a place, and comes back to `late`. */
const collapsing = ({
  n = 60,
  low = 0.01,
  at = 0.2,
  late = low,
  known = 1,
  std = -1,
  nats = 0,
  kl = 0.006,
  lr = 3e-4,
  going = 0,
}: LimitTable): CanonicalRun => {
  const fallen = rows(n, (_, t) => (t < at ? 0.9 : t < 0.59 ? low : late));
  const continuous = std >= 0 || nats < 0;
  return run(
    {
      ...(std >= 0 ? { 'policy/std': rows(n, (_, t) => (t < at ? 0.6 : std)) } : {}),
      'policy/entropy': continuous ? level(n, nats) : fallen.map(v => (known ? v * Math.LN2 : v)),
      'kl/step': rows(n, i => (i === 2 ? kl : 0.006)),
      'episode/return': returns(n, going),
    },
    {
      config: { learningRate: lr },
      actions: continuous ? 'continuous' : 'discrete',
      ...(known ? { maxEntropy: Math.LN2 } : {}),
    },
  );
};

export const entropy: readonly AtLimits[] = [
  {
    code: 'entropy-collapse',
    make: collapsing,
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
      relative: [{ low: 0.049 }, { low: 0.051 }],
      creeps: [
        { at: 0.02, late: 0.19 },
        { at: 0.02, late: 0.21 },
      ],
      absolute: [
        { known: 0, low: 0.0099 },
        { known: 0, low: 0.0101 },
      ],
      std: [{ std: 0.0299 }, { std: 0.0301 }],
      gaussian: [{ nats: -1.51 }, { nats: -1.49 }],
      early: [{ at: 0.61 }, { at: 0.67 }, 'critical'],
      atOnce: [
        { n: 400, going: 1, at: 0.19 },
        { n: 400, going: 1, at: 0.2 },
      ],
      burst: [
        { kl: 0.101, lr: 3e-3 },
        { kl: 0.099, lr: 3e-3 },
      ],
    },
    causes: { burst: 'learning-rate-too-high' },
  },
  {
    code: 'entropy-collapse',
    table: 'suspect',
    cause: 'learning-rate-too-high',
    make: collapsing,
    cases: {
      unusual: [
        { kl: 0.2, lr: 1e-3 * 2 ** 0.91 },
        { kl: 0.2, lr: 1e-3 * 2 ** 0.89 },
      ],
      far: [{ lr: 1e-3 * 2 ** 2.01 }, { lr: 1e-3 * 2 ** 1.99 }],
    },
  },
  {
    code: 'std-growing',
    make: ({ n = 40, growth = 1.7, going = 0, coef = -1, implied = 0, unknown = 0, wrong = -1 }) => {
      const wave = (f: number): number[] => rows(n, i => 1 + 0.5 * Math.sin(f * i));
      const entropy = bend(n, 1.5, 1.5 + Math.log(growth));
      const [policy, value] = [wave(1.3), wave(2.9)];
      return agent(
        {
          ...(unknown
            ? {}
            : { 'policy/std': wrong < 0 ? bend(n, 1, growth) : disordered(wrong).map(v => 1 + v) }),
          'policy/entropy': entropy,
          'episode/return': returns(n, going),
          ...(implied
            ? {
                'loss/policy': policy,
                'loss/value': value,
                'loss/total': rows(n, i => policy[i] + 0.5 * value[i] - implied * entropy[i]),
              }
            : {}),
        },
        coef < 0 ? {} : { entropyCoef: coef },
        { actions: unknown ? 'unknown' : 'continuous' },
      );
    },
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      score: [
        { n: 10, wrong: 5 },
        { n: 10, wrong: 6 },
      ],
      growth: [{ growth: 1.51 }, { growth: 1.49 }],
      clear: [{ growth: 2.01 }, { growth: 1.99 }, 'critical'],
      vast: [
        { growth: 5.1, going: 1 },
        { growth: 4.9, going: 1 },
      ],
      coef: [{ coef: 0.05 }, { coef: 0.049 }, 'critical'],
      implied: [{ implied: 0.101 }, { implied: 0.099 }, 'critical'],
      absurd: [
        { unknown: 1, coef: 0.2 },
        { unknown: 1, coef: 0.19 },
      ],
    },
  },
];
