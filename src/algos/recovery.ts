/** What follows steps that were not finite, for PPO, GRPO and cloning alike: a lower rate, or the end. */
import type { TrainEvent } from './iteration.ts';
import { TrainError } from './train-error.ts';

/** After a restore: the rate is cut; after too many, training ends with what was wrong and what to do about it. */
export function cutRate(
  counters: { recoveries: number; recoveryFactor: number },
  config: { readonly recoveries: number; readonly recoveryFactor: number },
  learningRate: number,
  { wrong, remedy }: { readonly wrong: string; readonly remedy: string },
  events: TrainEvent[],
): void {
  counters.recoveries++;
  if (counters.recoveries > config.recoveries) {
    throw new TrainError(
      `${wrong}, after ${config.recoveries} restores with the learning rate cut to ${learningRate.toExponential(1)}: ${remedy}`,
    );
  }
  counters.recoveryFactor *= config.recoveryFactor;
  events.push({
    type: 'restored',
    attempt: counters.recoveries,
    attempts: config.recoveries,
    lrFrom: learningRate,
    lrTo: learningRate * config.recoveryFactor,
  });
}
