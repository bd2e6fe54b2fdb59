/** How a value changes over a run. */
export type Schedule = 'constant' | 'linear' | 'cosine';

export interface ScheduleOptions {
  readonly schedule: Schedule;
  /** The share of the starting value that is left at the end. */
  readonly end: number;
  /** The share of the run over which the value rises from 0 first. */
  readonly warmup?: number;
}

/** The settings of a learning rate's course over a run. */
export interface RateSettings {
  readonly learningRateSchedule: Schedule;
  readonly learningRateEnd: number;
  readonly warmupShare?: number;
}

/** The factor on the learning rate when this share of the run is done. */
export const rateFactor = (config: RateSettings, done: number): number =>
  scheduleFactor(
    { schedule: config.learningRateSchedule, end: config.learningRateEnd, warmup: config.warmupShare ?? 0 },
    done,
  );

/** The factor on the starting value when this share of the run is done. */
export function scheduleFactor({ schedule, end, warmup = 0 }: ScheduleOptions, done: number): number {
  const progress = Math.min(1, Math.max(0, done));
  if (progress < warmup) return progress / warmup;
  const rest = warmup < 1 ? (progress - warmup) / (1 - warmup) : 1;
  switch (schedule) {
    case 'constant':
      return 1;
    case 'linear':
      return 1 + (end - 1) * rest;
    case 'cosine':
      return end + (1 - end) * 0.5 * (1 + Math.cos(Math.PI * rest));
    default:
      return schedule satisfies never;
  }
}
