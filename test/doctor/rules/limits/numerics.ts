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
];
