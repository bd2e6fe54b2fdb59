/** The limits of what is judged once for all rules, each from both sides. */
import { entropyWeightOf } from '../../../../src/doctor/judge/loss-weights.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { agent, bend } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

export const judge: readonly AtLimits[] = [
  {
    code: 'loss-weights',
    // A total loss of its parts, each row off by some noise; the value loss goes with the entropy but for a wave.
    make: ({ n = 60, value = 0.5, noise = 0, apart = 0.5, near = 2 }) => {
      const wave = (f: number, size: number): number[] => rows(n, i => size * Math.sin(f * i));
      const entropy = bend(n, 0.6, 0.3);
      const [policy, loss] = [wave(1.3, 0.5), wave(2.9, apart).map((v, i) => v + near * entropy[i])];
      const off = rows(n, i => noise * Math.sin(5.3 * i * i));
      return agent({
        'loss/policy': policy,
        'loss/value': loss,
        'policy/entropy': entropy,
        'loss/total': rows(n, i => policy[i] + value * loss[i] - 0.1 * entropy[i] + off[i]),
      });
    },
    says: made => entropyWeightOf(signalsOf(made)) !== undefined,
    cases: {
      rows: [{ n: 12 }, { n: 11 }],
      valueWeight: [{ value: 1.99 }, { value: 2.01 }],
      rest: [{ noise: 0.015 }, { noise: 0.0153 }],
      errors: [
        { noise: 0.01, apart: 0.0918 },
        { noise: 0.01, apart: 0.0904 },
      ],
    },
  },
];
