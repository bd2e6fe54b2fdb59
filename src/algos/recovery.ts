/** What follows steps that were not finite, or left the bound, for PPO, GRPO and cloning alike: a lower rate, or the end. */
import { slowerFactor } from '../kl/controllers/guarded-rate.ts';
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

/** After an update of which this share was within the bound: a lower rate for another attempt. False where it cannot be lower. */
export function slowDownTo(
  shareWithin: number,
  counters: { guardedFactor: number },
  learningRate: number,
  bound: number,
  events: TrainEvent[],
): boolean {
  const from = counters.guardedFactor;
  counters.guardedFactor = slowerFactor(from, shareWithin);
  if (counters.guardedFactor === from) return false;
  events.push({
    type: 'rate-change',
    what: 'learningRate',
    from: learningRate,
    to: (learningRate * counters.guardedFactor) / from,
    why: `the update left the bound of ${bound}`,
  });
  return true;
}
