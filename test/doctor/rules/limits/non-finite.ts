/** The limits of the rule about values that are not finite, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import { nonFinite } from '../../../../src/doctor/rules/numerics/non-finite.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { agent, level } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** So many values, and so many that are none behind them. */
const until = (n: number, tail: number): number[] => rows(n + tail, i => (i < n ? 1 : Number.NaN));

/** A language model whose rewards are no numbers to the end. */
const unrewarded = (n: number, tail: number): CanonicalRun =>
  run({ 'reward/mean': until(n, tail) }, { kind: 'language-model', actions: 'tokens' });

/** Losses whose cells are empty from some row to the end, while the learning rate goes on. */
function blank(filled: number, before: number, empty: number, alive: number, few: number): CanonicalRun {
  const made = agent({
    'loss/policy': level(filled, 1),
    'loss/value': level(filled, 1),
    'train/lr': level(alive, 1e-3),
    'env/other': level(before + empty, 1),
  });
  const end = { from: 1000 * (before + 1), before, kind: 'empty' } as const;
  const series = new Map(made.series);
  for (const [id, rows] of [
    ['loss/policy', empty],
    ['loss/value', empty],
    ['train/lr', few],
  ] as const)
    series.set(id, { ...series.get(id)!, blank: { ...end, rows } });
  return { ...made, series };
}

export const notFinite: readonly AtLimits[] = [
  {
    code: 'non-finite',
    make: ({
      n = 40,
      tail = -1,
      never = -1,
      broken = -1,
      empty = -1,
      before = n,
      alive = before + empty,
      few = 0,
    }) =>
      tail >= 0
        ? unrewarded(n, tail)
        : never >= 0
          ? agent({ 'kl/step': until(0, never) })
          : broken >= 0
            ? agent({ 'kl/step': rows(n, i => (i > 2 && i < 3 + broken ? Number.NaN : 0.01)) })
            : blank(n, before, empty, alive, few),
    cases: {
      rewardRows: [
        { n: 10, tail: 8 },
        { n: 9, tail: 8 },
      ],
      rewards: [{ tail: 5 }, { tail: 4 }],
      rewardShare: [
        { n: 400, tail: 22 },
        { n: 400, tail: 20 },
      ],
      never: [{ never: 3 }, { never: 2 }],
      lasting: [{ n: 1000, broken: 51 }, { n: 1000, broken: 49 }, 'critical'],
      blankRows: [
        { n: 10, empty: 20 },
        { n: 9, empty: 20 },
      ],
      empty: [{ empty: 5 }, { empty: 4 }],
      emptyShare: [
        { n: 400, empty: 22 },
        { n: 400, empty: 20 },
      ],
      before: [
        { n: 81, before: 102, empty: 30 },
        { n: 79, before: 102, empty: 30 },
      ],
      rest: [
        { n: 100, empty: 100, alive: 171 },
        { n: 100, empty: 100, alive: 169 },
      ],
      few: [
        { empty: 20, few: 2 },
        { empty: 20, few: 3 },
      ],
    },
  },
  {
    code: 'non-finite',
    table: 'non-finite/before',
    // The loss breaks after so many rows of the KL, of which so many were high.
    make: ({ n = 20, high = 10 }) =>
      agent({
        'kl/step': rows(n, i => (i < high ? 0.06 : 0.01)),
        'loss/policy': until(n, 10),
      }),
    // Whether the updates were too large before it.
    says: made =>
      nonFinite
        .check(made, signalsOf(made), [])
        .some(({ evidence }) => evidence.join(' ').includes('too large already')),
    cases: {
      rows: [{ n: 3 }, { n: 2 }],
      high: [
        { n: 100, high: 21 },
        { n: 100, high: 20 },
      ],
    },
  },
];
