/** Whether the policy hardly moves, and over which rows that holds. Shared by the rules that ask why. */
import { FROZEN_KL } from '../../metrics/kl-bands.ts';
import { quantile, share } from '../statistics/order.ts';
import type { Signals } from './signals.ts';
import type { Track } from './track.ts';

export interface Stalled {
  readonly track: Track;
  /** Median size of the KL over the rows at which the learning rate had not been annealed away. */
  readonly level: number;
  /** 80 % of these rows are below this. */
  readonly most: number;
  /** In the band of that name in most rows: nothing at all happens. */
  readonly frozen: boolean;
  /** Share of the rows with a clip fraction of 0; NaN where it is not logged. */
  readonly unclipped: number;
}

/** Below this, in most rows, a policy of an ordinary learning rate is held back by something. */
const STALLED_KL = 3e-4;

/** Undefined when the step KL is not known, has too few rows, or is of ordinary size. */
export function stalledOf(signals: Signals): Stalled | undefined {
  const { kl, settings } = signals;
  if (kl === undefined || kl.track.n < 8) return undefined;
  const { track } = kl;
  const rate = settings.lrTrack;
  // A rate that is annealed takes the KL down with it: only rows before count.
  let end = track.n;
  if (settings.annealed && rate !== undefined) {
    const top = rate.q(1);
    let last = rate.n - 1;
    while (last > 0 && rate.v[last] < 0.3 * top) last--;
    const until = rate.x[last];
    while (end > 0 && track.x[end - 1] > until) end--;
  }
  if (end < 6) return undefined;
  const sizes = track.v.subarray(0, end).map(Math.abs);
  const most = quantile(sizes, 0.8);
  if (!(most < STALLED_KL)) return undefined;
  const clip = signals.get('policy/clip_fraction');
  return {
    track,
    level: quantile(sizes, 0.5),
    most,
    frozen: most < FROZEN_KL,
    unclipped: clip === undefined || clip.n === 0 ? Number.NaN : share(clip.v, v => v === 0),
  };
}
