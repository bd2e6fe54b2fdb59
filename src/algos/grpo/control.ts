/** KL control: everything that decides how far an update may go, in one place. */
import { type CoefficientRule, isNotableChange, nextCoefficient } from '../../kl/controllers/coefficient.ts';
import type { TrainEvent } from '../events.ts';
import { forkedCounters, newCounters, type UpdateCounters } from '../update/guarded.ts';
import { scheduleFactor } from '../update/schedule.ts';
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

/** As a forked run begins with them: what was written for it counts, whatever controllers had made of it before. */
export function countersOfFork(
  counters: GrpoCounters,
  written: object,
  { klRefCoef }: Pick<GrpoConfig, 'klRefCoef'>,
): GrpoCounters {
  return { ...forkedCounters(counters, written), ...('klRefCoef' in written ? { klRefCoef } : {}) };
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

/** The share of an update that was within the bound: a KL grows with the square of the rate; a little less than that asks for. */
export const shareWithin = (kl: number, bound: number): number =>
  Number.isFinite(kl) ? 0.9 * Math.sqrt(bound / kl) : 0;

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
