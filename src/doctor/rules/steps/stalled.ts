/** Whether the policy hardly moves, and over which rows that holds. Shared by the rules that ask why. */
import { FROZEN_KL } from '../../../metrics/kl-bands.ts';
import { type Rows, rowsBetween } from '../../judge/facts.ts';
import { quantile, share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import { MIN_POINTS, type Signals } from '../signals.ts';
import type { Track } from '../track.ts';

export interface Stalled {
  readonly track: Track;
  /** The rows at which the learning rate had not been annealed away. */
  readonly rows: Rows;
  /** Median size of the KL over these rows. */
  readonly level: number;
  /** Most of these rows (`stalledLimits.most`) are below this. */
  readonly most: number;
  /** In the band of that name in most rows: nothing at all happens. */
  readonly frozen: boolean;
  /** Share of the rows with a clip fraction of 0; NaN where it is not logged. */
  readonly unclipped: number;
}

export const stalledLimits = limitsOf('stalled', {
  rows: 8,
  /** Below this, in so many of the rows, a policy of an ordinary learning rate is held back by something. */
  kl: 3e-4,
  most: 0.8,
  /** Rows in which the rate is above this share of its top have not been annealed. */
  annealed: 0.3,
});
const limits = stalledLimits;

/** Undefined when the step KL is not known, has too few rows, or is of ordinary size. */
export function stalledOf(signals: Signals): Stalled | undefined {
  const { kl, settings } = signals;
  if (kl === undefined || kl.track.n < limits.rows) return undefined;
  const { track } = kl;
  const rate = settings.lrTrack;
  // A rate that is annealed takes the KL down with it: only rows before count.
  let end = track.n;
  if (settings.annealed && rate !== undefined) {
    const top = rate.q(1);
    let last = rate.n - 1;
    while (last > 0 && rate.v[last] < limits.annealed * top) last--;
    const until = rate.x[last];
    while (end > 0 && track.x[end - 1] > until) end--;
  }
  if (end < MIN_POINTS) return undefined;
  const sizes = track.v.subarray(0, end).map(Math.abs);
  const most = quantile(sizes, limits.most);
  if (!(most < limits.kl)) return undefined;
  const clip = signals.get('policy/clip_fraction');
  return {
    track,
    rows: rowsBetween(track, 0, end),
    level: quantile(sizes, 0.5),
    most,
    frozen: most < FROZEN_KL,
    unclipped: clip === undefined || clip.n === 0 ? Number.NaN : share(clip.v, v => v === 0),
  };
}
