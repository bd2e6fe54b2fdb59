/** The learning rate of cloning, and that nothing bounds its updates. */
import type { GuardedSettings, UpdateCounters } from '../../update/guarded.ts';
import { scheduleFactor } from '../../update/schedule.ts';
import type { CloneTextConfig } from './settings.ts';

/** The rate when this share of the run is done. */
export function rateAt(config: CloneTextConfig, counters: UpdateCounters, progress: number): number {
  const { learningRateSchedule: schedule, learningRateEnd: end, warmupShare: warmup } = config;
  return config.learningRate * counters.recoveryFactor * scheduleFactor({ schedule, end, warmup }, progress);
}

/** There is no policy before to stay near: only what is not finite is taken back. */
export const unguarded = ({ recoveries, recoveryFactor }: CloneTextConfig): GuardedSettings => ({
  guard: null,
  guardRetries: 0,
  recoveries,
  recoveryFactor,
});
