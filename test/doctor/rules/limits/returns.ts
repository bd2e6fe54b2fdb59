/** The limits of the rule about a return that is lost again, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { agent } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows } from '../support/build.ts';

/** The return rises to 400, stays there until it falls to `left`, and is back in some rows of the end. */
const fallen = (
  n: number,
  { left = 20, zero = 0, shake = 1, ups = 0, peak = 0.5, falls = peak }: LimitTable,
): number[] =>
  rows(n, (i, t) => {
    const late = i - Math.ceil(0.85 * n);
    const isUp = t < falls || (late >= 0 && late % 40 < 40 * ups);
    const way = t < peak ? (400 * t) / peak : isUp ? 400 : left;
    return zero + way + shake * Math.sin(7.1 * i);
  });

/** Calm KLs, of which such a share is at `kl` and one row in a dozen at `far`. */
const loud = (n: number, { kl = 0.06, often = 0.3, far = 0.2 }: LimitTable): number[] =>
  rows(n, i => (i % 50 < 4 ? far : i % 50 < 50 * often ? kl : 0.005));

const collapsed = (at: LimitTable): CanonicalRun => {
  const { n = 400, calm = 0, klRows = n, restart = -1 } = at;
  return agent(
    {
      'episode/return': fallen(n, at),
      'kl/step': calm ? rows(klRows, () => 0.005) : loud(n, at),
    },
    {},
    { restarts: restart < 0 ? [] : [1000 * restart * n] },
  );
};

/** A return that plunges in the middle and comes back to where it began, while an adaptive rate runs up. */
const plunged = (at: LimitTable): CanonicalRun => {
  const {
    n = 100,
    depth = 300,
    shake = 1,
    rateRows = n,
    ran = 0.06,
    ceiling = 1,
    vee = 0,
    middle = 0.5,
  } = at;
  return agent(
    {
      'episode/return': rows(n, (i, t) => {
        const way =
          t < 0.2 ? 0 : t < 0.4 ? 20 : t < 0.45 ? -10 : t < 0.55 ? -depth - vee * Math.abs(t - 0.5) : -10;
        return 100 + way + shake * Math.sin(7.1 * i);
      }),
      'train/lr': rows(rateRows, i => (Math.abs(i / n - middle) < ran ? 1e-2 * ceiling : 1e-4)),
    },
    {},
    { klProxy: { theirs: 'lr', id: 'train/lr', floor: 1e-5, ceiling: 1e-2, meaning: 'KL stays too small' } },
  );
};

export const lostReturns: readonly AtLimits[] = [
  {
    code: 'return-collapse',
    make: at => (at.depth === undefined ? collapsed(at) : plunged(at)),
    cases: {
      rows: [
        { n: 12, peak: 0.3 },
        { n: 11, peak: 0.3 },
      ],
      kl: [{ kl: 0.0501 }, { kl: 0.0499 }, 'critical'],
      often: [{ often: 0.12 }, { often: 0.09 }, 'critical'],
      far: [{ far: 0.101 }, { far: 0.099 }, 'critical'],
      before: [{ calm: 1, restart: 0.3 }, { calm: 1, restart: 0.306 }, 'warning'],
      plunge: [
        { depth: 300, shake: 19.5 },
        { depth: 300, shake: 19.9 },
      ],
      below: [{ depth: 59.2 }, { depth: 58.7 }, 'warning'],
      lastingRows: [{ calm: 1, n: 20, peak: 0.3 }, { calm: 1, n: 19, peak: 0.3 }, 'warning'],
      klRows: [
        { calm: 1, n: 20, peak: 0.3, klRows: 10 },
        { calm: 1, n: 20, peak: 0.3, klRows: 9 },
        'warning',
      ],
      noises: [{ calm: 1, shake: 66 }, { calm: 1, shake: 68 }, 'warning'],
      gain: [{ calm: 1, left: 145 }, { calm: 1, left: 147 }, 'warning'],
      level: [{ calm: 1, zero: 790 }, { calm: 1, zero: 803 }, 'warning'],
      end: [{ calm: 1, falls: 0.855 }, { calm: 1, falls: 0.86 }, 'warning'],
      nearly: [{ calm: 1, ups: 0.02 }, { calm: 1, ups: 0.04 }, 'warning'],
    },
  },
  {
    code: 'return-collapse',
    table: 'return-collapse/rate',
    make: plunged,
    cause: 'learning-rate-too-high',
    cases: {
      rows: [
        { n: 34, rateRows: 20, ran: 0.2 },
        { n: 34, rateRows: 19, ran: 0.2 },
      ],
      around: [
        { n: 1000, vee: -2000, middle: 0.475, ran: 0.0255 },
        { n: 1000, vee: -2000, middle: 0.475, ran: 0.0245 },
      ],
      few: [
        { n: 40, rateRows: 22 },
        { n: 40, rateRows: 21 },
      ],
      ceiling: [{ ceiling: 0.901 }, { ceiling: 0.899 }],
    },
  },
];
