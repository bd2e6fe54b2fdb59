/** The limits of a reward whose scale changes in mid-run, each from both sides: by the way in which it shows. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** Of the ways: the reward of a step, the critic, its level alone, a dip of what it explains, a loss that shrinks. */
const changed = ({
  way = 0,
  n = 60,
  times = 4,
  scatter = 0,
  before = 0,
  saw = 0.9,
  sees = 0,
  kl = 1,
  dip = -0.5,
  back = 0.9,
  left = 0.03,
  varies = 1,
}: LimitTable): CanonicalRun => {
  const late = (i: number): boolean => i >= n / 2;
  const odd = (i: number): number => (i % 2 === 0 ? 1 : -1);
  const still = rows(n, i => 100 + 10 * odd(i));
  if (way === 0)
    return run({
      'episode/length': rows(n, () => 100),
      'episode/return': rows(n, i => 100 * (late(i) ? times * (1 + scatter * odd(i)) : 1 + before * odd(i))),
    });
  if (way === 1)
    return run({
      'episode/return': still,
      // One row that was high keeps the level alone from telling.
      'loss/value': rows(n, i => (late(i) ? times : i === 3 ? 6 : 1)),
      ...(kl < 1
        ? { 'kl/step': rows(n, i => (late(i) ? 0.01 * kl : 0.01)) }
        : { 'value/explained_variance': rows(n, i => (late(i) ? sees : saw)) }),
    });
  if (way === 2) return run({ 'episode/return': still, 'loss/value': rows(n, i => (late(i) ? times : 1)) });
  if (way === 3)
    return run({
      'episode/return': still,
      'loss/value': rows(n, i => (i === n / 2 ? 5 : late(i) ? left : 1)),
      'value/explained_variance': rows(n, i => (i === n / 2 ? dip : late(i) ? back : saw)),
    });
  return run({
    'episode/return': rows(n, i => 100 + (late(i) ? varies : 1) * 10 * odd(i)),
    'loss/value': rows(n, i => (late(i) ? 1 / times : 1)),
    'value/explained_variance': rows(n, () => saw),
  });
};

export const rewardScale: readonly AtLimits[] = [
  {
    code: 'reward-scale-changed',
    make: changed,
    cases: {
      ratio: [{ times: 2.55 }, { times: 2.45 }],
      ratioScatter: [{ scatter: 0.23 }, { scatter: 0.25 }],
      ratioStill: [{ before: 0.034 }, { before: 0.036 }],
      jump: [
        { way: 1, times: 10.5 },
        { way: 1, times: 9.5 },
      ],
      seeing: [
        { way: 1, times: 20, saw: 0.31 },
        { way: 1, times: 20, saw: 0.29 },
      ],
      blind: [
        { way: 1, times: 20, sees: 0.19 },
        { way: 1, times: 20, sees: 0.21 },
      ],
      starved: [
        { way: 1, times: 20, kl: 0.09 },
        { way: 1, times: 20, kl: 0.11 },
      ],
      level: [
        { way: 2, times: 10.5 },
        { way: 2, times: 9.5 },
      ],
      dipFrom: [
        { way: 3, saw: 0.81 },
        { way: 3, saw: 0.79 },
      ],
      dipTo: [
        { way: 3, dip: -0.31 },
        { way: 3, dip: -0.29 },
      ],
      dipBack: [
        { way: 3, back: 0.71 },
        { way: 3, back: 0.69 },
      ],
      dipLoss: [
        { way: 3, left: 0.049 },
        { way: 3, left: 0.051 },
      ],
      shrunkRows: [
        { way: 4, times: 100, n: 20 },
        { way: 4, times: 100, n: 19 },
      ],
      shrunk: [
        { way: 4, times: 61 },
        { way: 4, times: 59 },
      ],
      shrunkExplained: [
        { way: 4, times: 100, saw: 0.51 },
        { way: 4, times: 100, saw: 0.49 },
      ],
      shrunkReturns: [
        { way: 4, times: 100, varies: 0.23 },
        { way: 4, times: 100, varies: 0.22 },
      ],
    },
  },
];
