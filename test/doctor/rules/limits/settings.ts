/** The limits of the rules about settings, each from both sides. */
import { agent, level, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

export const settings: readonly AtLimits[] = [
  {
    code: 'unusual-settings',
    make: ({ coef = 0, value = 0.5, target = 0.02 }) =>
      agent(
        { 'episode/return': returns(60, 1) },
        { learningRate: 3e-4, entropyCoef: coef, valueCoef: value, targetKl: target },
      ),
    cases: {
      entropyCoef: [{ coef: 0.05 }, { coef: 0.049 }],
      valueCoef: [{ value: 0.9e-3 }, { value: 1.1e-3 }],
      targetKl: [{ target: 0.0029 }, { target: 0.0031 }],
    },
  },
  {
    code: 'restart-criteria',
    make: ({ n = 60, vast = 0, explained = -0.5, loss = 5, calm = 0.8, high = 0, going = 0 }) =>
      agent({
        'kl/step': rows(n, (_, t) =>
          going === 2 ? (t >= calm && t < calm + 0.02 ? 0.06 : 0.005) : high || 0.04,
        ),
        'value/explained_variance': level(n, explained),
        'loss/value': level(n, vast || loss),
        'episode/return': returns(n, going),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      signs: [{}, { high: 0.005 }],
      explained: [{ explained: -0.11 }, { explained: -0.09 }],
      loss: [{ loss: 1.1e-3 }, { loss: 0.9e-3 }],
      before: [
        { n: 400, going: 2, calm: 0.29 },
        { n: 400, going: 2, calm: 0.278 },
      ],
    },
  },
];
