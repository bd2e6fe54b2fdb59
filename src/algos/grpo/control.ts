/** KL control: everything that decides how far an update may go, in one place. */
import { type CoefficientRule, isNotableChange, nextCoefficient } from '../../kl/controllers/coefficient.ts';
import type { TrainEvent } from '../iteration.ts';
import { slowDownTo } from '../recovery.ts';
import { scheduleFactor } from '../schedule.ts';
import type { GrpoConfig } from './config.ts';

/** What the numbers in a checkpoint do not hold as tensors. */
export interface GrpoCounters {
  iteration: number;
  /** Completions so far. */
  envSteps: number;
  gradientSteps: number;
  /** The controller's weight on the KL to the reference, before its warm-up. */
  klRefCoef: number;
  guardedFactor: number;
  recoveryFactor: number;
  recoveries: number;
  skippedInARow: number;
  /** Iterations in a row in which no completion could be graded. */
  ungradedInARow: number;
  bestReward: number | null;
}

export interface Knobs {
  readonly learningRate: number;
  readonly klRefCoef: number;
  readonly rewardFactor: number;
}

/** This update's rate, pull of the reference and reward factor; `progress` is in the middle of its share of the run. */
export function knobsAt(config: GrpoConfig, counters: GrpoCounters, progress: number): Knobs {
  const { learningRateSchedule: schedule, learningRateEnd: end, warmupShare: warmup } = config;
  const risen = (iterations: number): number =>
    iterations === 0 ? 1 : Math.min(1, counters.iteration / iterations);
  return {
    learningRate:
      config.learningRate *
      counters.recoveryFactor *
      counters.guardedFactor *
      scheduleFactor({ schedule, end, warmup }, progress),
    klRefCoef: counters.klRefCoef * risen(config.klRefCoefWarmup),
    rewardFactor: config.rewardWarmup === 0 ? 1 : Math.min(1, (counters.iteration + 1) / config.rewardWarmup),
  };
}

/**
 * After an update that left the bound: a lower rate for another attempt. A KL grows with the square of the rate; a little less
 * than what that asks for. False where it cannot be lower.
 */
export function slowDown(
  counters: GrpoCounters,
  knobs: Knobs,
  kl: number,
  bound: number,
  events: TrainEvent[],
): boolean {
  const share = Number.isFinite(kl) ? 0.9 * Math.sqrt(bound / kl) : 0;
  return slowDownTo(share, counters, knobs.learningRate, bound, events);
}

/** What the KL to the reference changes of its weight. */
export function controlReference(
  config: GrpoConfig,
  counters: GrpoCounters,
  kl: number,
  completions: number,
  events: TrainEvent[],
): void {
  if (config.klRefCoefRule === 'fixed') return;
  const { klRefTarget: target, klRefHorizon: horizon } = config;
  const rule: CoefficientRule =
    config.klRefCoefRule === 'adaptive' ? { kind: 'adaptive', target } : { kind: 'horizon', target, horizon };
  const bounds = { min: config.klRefCoefMin, max: config.klRefCoefMax };
  const from = counters.klRefCoef;
  counters.klRefCoef = nextCoefficient(rule, from, kl, completions, bounds);
  if (!isNotableChange(rule, from, counters.klRefCoef, bounds)) return;
  events.push({
    type: 'rate-change',
    what: 'klRefCoef',
    from,
    to: counters.klRefCoef,
    why: `the KL to the reference is ${kl.toExponential(2)}`,
  });
}
