/** KL control: everything that decides how far an update may go, in one place. */
import { nextRate } from '../../kl/controllers/learning-rate.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import type { TrainEvent } from '../events.ts';
import { controlledCoefficient } from '../update/coefficient.ts';
import { type Continuing, continuedCounters, newCounters, type UpdateCounters } from '../update/guarded.ts';
import { rateFactor, scheduleFactor } from '../update/schedule.ts';
import type { PpoKnobs } from './programs.ts';
import type { PpoConfig } from './settings.ts';

/** What a checkpoint holds beside tensors and generators. */
export interface PpoCounters extends UpdateCounters {
  klCoef: number;
  /** The adaptive rule's factor on the learning rates. */
  adaptiveFactor: number;
  bestReturn: number | null;
}

/** At the beginning of a run. */
export const firstCounters = ({ klCoef }: PpoConfig): PpoCounters => ({
  ...newCounters(),
  klCoef,
  adaptiveFactor: 1,
  bestReturn: null,
});

/** Of a run that goes on, or that begins as a fork: what was written for that counts, whatever controllers had made of it. */
export function countersGoingOn(
  counters: PpoCounters,
  how: Continuing,
  { klCoef }: Pick<PpoConfig, 'klCoef'>,
): PpoCounters {
  const { written } = how;
  return {
    ...continuedCounters(counters, how),
    ...('learningRate' in written ? { adaptiveFactor: 1 } : {}),
    ...('klCoef' in written ? { klCoef } : {}),
  };
}

/** This update's rates, clip range, penalty, stop and bound. */
export function knobsAt(config: PpoConfig, counters: PpoCounters, progress: number): PpoKnobs {
  const rate =
    counters.recoveryFactor * counters.adaptiveFactor * counters.guardedFactor * rateFactor(config, progress);
  const clipFactor = scheduleFactor(
    { schedule: config.clipRangeSchedule, end: config.clipRangeEnd },
    progress,
  );
  return {
    actorRate: config.learningRate * rate,
    criticRate: (config.criticLearningRate ?? config.learningRate) * rate,
    clipRange: config.clipRange * clipFactor,
    klCoef: counters.klCoef,
    klLimit: config.targetKl === null ? Number.POSITIVE_INFINITY : config.targetKl * config.targetKlFactor,
    guard: config.guard ?? Number.POSITIVE_INFINITY,
    stepsDone: counters.gradientSteps,
    streak: counters.skippedInARow,
  };
}

/** What the update's KL changes for the next one. */
export function control(
  config: PpoConfig,
  counters: PpoCounters,
  knobs: PpoKnobs,
  kl: number,
  samples: number,
  events: TrainEvent[],
): void {
  const why = 'the update had a KL of';
  const { klCoefRule: kind, klCoefTarget, klCoefHorizon: horizon, klCoefMax: most } = config;
  counters.klCoef = controlledCoefficient(
    'klCoef',
    counters.klCoef,
    { kind, target: klCoefTarget, horizon },
    { max: most },
    { kl, samples, why },
    events,
  );
  if (config.adaptiveRate) {
    const { adaptiveRateTarget: target, adaptiveRateMin: min, adaptiveRateMax: max, learningRate } = config;
    const from = learningRate * counters.adaptiveFactor;
    const to = nextRate({ target, min, max }, from, kl);
    counters.adaptiveFactor = to / learningRate;
    if (to !== from)
      events.push({
        type: 'rate-change',
        what: 'learningRate',
        // As it is used, what the schedule and the guard make of it included.
        from: knobs.actorRate,
        to: knobs.actorRate * (to / from),
        why: `${why} ${kl.toExponential(2)}`,
      });
  }
}

/** The share of an update's minibatches that saw a KL within the bound. */
export function shareWithin(kls: Float32Array, bound: number): number {
  return kls.reduce((within, kl) => within + (kl <= bound ? 1 : 0), 0) / kls.length;
}

/** Puts log-stds that left their bounds back on them: the policy is the same, and they need not find the way back. */
export function holdLogStd(
  model: ActorCritic,
  weights: Float32Array,
  { logStdMin, logStdMax }: PpoConfig,
): void {
  const logStd = model.layout.views(weights)['actor.logStd'];
  logStd?.forEach((value, i) => {
    logStd[i] = Math.min(logStdMax, Math.max(logStdMin, value));
  });
}

/**
 * Brings log-stds down to the bound that falls from `logStdInitial` to `logStdEnd`. A fall of δ in each of n costs a KL of
 * about n δ²: at most half of what an update may have goes to it, by the guard and by the early stop, or a short run's
 * updates would have nothing left to learn with.
 */
export function lowerLogStd(
  model: ActorCritic,
  before: Float32Array,
  weights: Float32Array,
  { logStdInitial, logStdEnd }: PpoConfig,
  { guard, klLimit, progress }: Pick<PpoKnobs, 'guard' | 'klLimit'> & { readonly progress: number },
): void {
  const logStd = model.layout.views(weights)['actor.logStd'];
  if (logStdEnd === null || !logStd) return;
  const bound = logStdInitial + (logStdEnd - logStdInitial) * progress;
  const mostFall = Math.sqrt(Math.min(guard, klLimit) / (2 * logStd.length));
  const old = model.layout.views(before)['actor.logStd'];
  logStd.forEach((value, i) => {
    logStd[i] = Math.min(value, Math.max(bound, old[i] - mostFall));
  });
}

/** The weight on the KL to the reference after so many gradient steps. */
export function referenceCoefAt(config: PpoConfig, gradientSteps: number): number {
  const { klRefCoefInitial, klRefCoefFinal, klRefDecaySteps } = config;
  const done = klRefDecaySteps === 0 ? 1 : Math.min(1, gradientSteps / klRefDecaySteps);
  return klRefCoefInitial + (klRefCoefFinal - klRefCoefInitial) * done;
}
