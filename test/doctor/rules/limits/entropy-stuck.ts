/** The limits of the rule about an entropy that stays high, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import { impliedEntropyCoef } from '../../../../src/doctor/rules/entropy/entropy-stuck.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { agent, bend, disordered, level as flat, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

/**
 * A return that rises to 300 in the first two fifths, and from the middle on by a little more; or by a step at the last
 * quarter, falling within each of the last two.
 */
const rose = (n: number, creep: number, shake: number, step: number): number[] =>
  rows(n, (i, t) => {
    const late = t < 0.5 ? 0 : creep * (2 * t - 1) + (t < 0.75 ? 0 : step) - 8 * step * (t % 0.25);
    return Math.min(300, 750 * t) + late + shake * Math.sin(7.1 * i);
  });

/**
 * The entropy, as a share of its maximum, falls a little in the second half; the return stands still, rises (1), or rose (5).
 */
const stuck = ({
  n = 40,
  level = 0.8,
  fall = 0,
  wave = 0,
  coef = -1,
  implied = 0,
  kl = 0.006,
  lr = 3e-4,
  ev = -9,
  lossRows = n,
  end = -1,
  wrong = -1,
  going = 0,
  creep = 0,
  step = 0,
  shake = 30,
}: LimitTable): CanonicalRun => {
  const entropy = rows(
    n,
    (i, t) => Math.LN2 * (level - fall * Math.max(0, 2 * t - 1) + wave * Math.sin(7.1 * i)),
  );
  const policy = rows(n, i => 0.5 * Math.sin(1.3 * i));
  const value = rows(n, i => 1 + 0.5 * Math.sin(2.9 * i));
  return agent(
    {
      'policy/entropy': entropy,
      'episode/return': going === 5 ? rose(n, creep, shake, step) : returns(n, going),
      'kl/step': flat(n, kl),
      ...(ev < -1 ? {} : { 'value/explained_variance': flat(n, ev) }),
      ...(end < 0 ? {} : { 'loss/value': bend(lossRows, 10, 10 * end) }),
      ...(wrong < 0 ? {} : { 'loss/value': disordered(wrong).map(v => 10 - v) }),
      ...(implied
        ? {
            'loss/policy': policy,
            'loss/value': value,
            'loss/total': rows(n, i => policy[i] + 0.5 * value[i] - implied * entropy[i]),
          }
        : {}),
    },
    { learningRate: lr, ...(coef < 0 ? {} : { entropyCoef: coef }) },
  );
};

export const entropyStuck: readonly AtLimits[] = [
  {
    code: 'entropy-stuck',
    make: stuck,
    cases: {
      rows: [
        { n: 20, coef: 0.1 },
        { n: 19, coef: 0.1 },
      ],
      coef: [{ coef: 0.05 }, { coef: 0.049 }],
      implied: [{ implied: 0.151 }, { implied: 0.149 }],
      ordinary: [
        { coef: 0.031, level: 0.98, ev: 0.9 },
        { coef: 0.029, level: 0.98, ev: 0.9 },
      ],
      huge: [
        { coef: 0.2, going: 1 },
        { coef: 0.199, going: 1 },
      ],
      stays: [
        { coef: 0.1, level: 0.751 },
        { coef: 0.1, level: 0.749 },
      ],
      high: [
        { going: 5, ev: 0.9, level: 0.851 },
        { going: 5, ev: 0.9, level: 0.849 },
      ],
      maximum: [
        { ev: 0.4, level: 0.971 },
        { ev: 0.4, level: 0.969 },
      ],
      rising: [
        { coef: 0.1, going: 1, level: 0.901 },
        { coef: 0.1, going: 1, level: 0.899 },
      ],
      score: [
        { coef: 0.1, fall: 0.06, wave: 0.0296 },
        { coef: 0.1, fall: 0.06, wave: 0.0293 },
      ],
      fall: [
        { coef: 0.1, fall: 0.036 },
        { coef: 0.1, fall: 0.038 },
      ],
      explains: [
        { level: 0.98, ev: 0.301 },
        { level: 0.98, ev: 0.299 },
      ],
      lossRows: [
        { level: 0.98, ev: 0.2, end: 0.2, lossRows: 10 },
        { level: 0.98, ev: 0.2, end: 0.2, lossRows: 9 },
      ],
      falls: [
        { level: 0.98, ev: 0.2, wrong: 11 },
        { level: 0.98, ev: 0.2, wrong: 12 },
      ],
      halved: [
        { level: 0.98, ev: 0.2, end: 0.499 },
        { level: 0.98, ev: 0.2, end: 0.501 },
      ],
      kl: [
        { level: 0.98, ev: 0.9, kl: 5.01e-4 },
        { level: 0.98, ev: 0.9, kl: 4.99e-4 },
      ],
      rate: [
        { level: 0.98, ev: 0.9, lr: 5.01e-5 },
        { level: 0.98, ev: 0.9, lr: 4.99e-5 },
      ],
      sees: [
        { going: 5, ev: 0.501, level: 0.9 },
        { going: 5, ev: 0.499, level: 0.9 },
      ],
      sinks: [
        { going: 5, ev: 0.9, level: 0.9, fall: 0.024 },
        { going: 5, ev: 0.9, level: 0.9, fall: 0.026 },
      ],
      gained: [
        { going: 5, ev: 0.9, level: 0.9, shake: 124 },
        { going: 5, ev: 0.9, level: 0.9, shake: 127 },
      ],
      gains: [
        { going: 5, ev: 0.9, level: 0.9, step: 27.3 },
        { going: 5, ev: 0.9, level: 0.9, step: 28.2 },
      ],
      trend: [
        { going: 5, ev: 0.9, level: 0.9, creep: 30 },
        { going: 5, ev: 0.9, level: 0.9, creep: 32 },
      ],
    },
  },
  {
    code: 'entropy-stuck/bound',
    // A total that is so far below the policy loss, in nats of entropy, in so many of the rows.
    make: ({ n = 40, gap = 1, often = 1, entropy = 1, told = n }) =>
      agent({
        'loss/policy': flat(n, 0),
        'loss/total': rows(n, i => (i < often * n ? -gap : 0)),
        'policy/entropy': rows(n, i => (i < told ? entropy : 0.01)),
      }),
    says: made => (impliedEntropyCoef(signalsOf(made)) ?? 0) > 0,
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      told: [{ told: 8 }, { told: 7 }],
      entropy: [{ entropy: 0.0501 }, { entropy: 0.0499 }],
      gap: [{ gap: 0.101 }, { gap: 0.099 }],
      often: [
        { n: 1000, often: 0.21 },
        { n: 1000, often: 0.19 },
      ],
    },
  },
];
