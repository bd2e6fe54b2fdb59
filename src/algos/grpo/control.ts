/** KL control: everything that decides how far an update may go, in one place. */
import type { TrainEvent } from '../events.ts';
import { controlledCoefficient } from '../update/coefficient.ts';
import { type Continuing, continuedCounters, newCounters, type UpdateCounters } from '../update/guarded.ts';
import { rateFactor } from '../update/schedule.ts';
import type { GrpoConfig } from './settings.ts';

/** What a checkpoint holds beside tensors and generators; steps are completions. */
export interface GrpoCounters extends UpdateCounters {
  /** The controller's weight on the KL to the reference, before its warm-up. */
  klRefCoef: number;
  /** Iterations in a row in which no completion could be graded. */
  ungradedInARow: number;
  bestReward: number | null;
}

/** At the beginning of a run. */
export const firstCounters = ({ klRefCoef }: GrpoConfig): GrpoCounters => ({
  ...newCounters(),
  klRefCoef,
  ungradedInARow: 0,
  bestReward: null,
});

/** Of a run that goes on, or that begins as a fork: what was written for that counts, whatever controllers had made of it. */
export function countersGoingOn(
  counters: GrpoCounters,
  how: Continuing,
  { klRefCoef }: Pick<GrpoConfig, 'klRefCoef'>,
): GrpoCounters {
  return { ...continuedCounters(counters, how), ...('klRefCoef' in how.written ? { klRefCoef } : {}) };
}

export interface Knobs {
  readonly learningRate: number;
  readonly klRefCoef: number;
  readonly rewardFactor: number;
  /** Gradient steps that the run has taken, for Adam's corrections. */
  readonly stepsDone: number;
}

/** This update's rate, pull of the reference and reward factor; `progress` is in the middle of its share of the run. */
export function knobsAt(config: GrpoConfig, counters: GrpoCounters, progress: number): Knobs {
  const risen = (iterations: number): number =>
    iterations === 0 ? 1 : Math.min(1, counters.iteration / iterations);
  return {
    learningRate:
      config.learningRate * counters.recoveryFactor * counters.guardedFactor * rateFactor(config, progress),
    klRefCoef: counters.klRefCoef * risen(config.klRefCoefWarmup),
    rewardFactor: config.rewardWarmup === 0 ? 1 : Math.min(1, (counters.iteration + 1) / config.rewardWarmup),
    stepsDone: counters.gradientSteps,
  };
}

/** What the KL to the reference changes of its weight. */
export function controlReference(
  config: GrpoConfig,
  counters: GrpoCounters,
  kl: number,
  completions: number,
  events: TrainEvent[],
): void {
  const { klRefCoefRule: kind, klRefTarget: target, klRefHorizon: horizon } = config;
  counters.klRefCoef = controlledCoefficient(
    'klRefCoef',
    counters.klRefCoef,
    { kind, target, horizon },
    { min: config.klRefCoefMin, max: config.klRefCoefMax },
    { kl, samples: completions, why: 'the KL to the reference is' },
    events,
  );
}
