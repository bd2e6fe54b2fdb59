/**
 * An update inside its bound, told once for all algorithms: attempt, retry, guard, recover.
 *
 * An attempt learns from what was collected and measures how far the policy has moved. One that left the bound lowers the
 * rate; if it left it by far, it is made again from where it began. What still leaves it is taken back along the line by
 * the guard. One whose steps were not finite changes nothing, and the rate is cut; after too many of those the run ends with a diagnosis.
 */

import { TrainError } from '../../base/errors.ts';
import {
  fittingCut,
  isWorthAnotherAttempt,
  regainedFactor,
  slowerFactor,
} from '../../kl/controllers/guarded-rate.ts';
import type { KlOverStates, StateBounds } from '../../kl/over-states.ts';
import type { TrainEvent } from '../events.ts';

/** What every update counts; a checkpoint holds it. */
export interface UpdateCounters {
  iteration: number;
  /** What the algorithm counts: steps of environments, completions, demonstrations. */
  steps: number;
  gradientSteps: number;
  /** Factors on the learning rate: what the guard has cut, and what restores have. */
  guardedFactor: number;
  recoveryFactor: number;
  recoveries: number;
  /** Minibatches in a row, up to now, that were not finite. */
  skippedInARow: number;
}

/** The counters of a run that begins. */
export const newCounters = (): UpdateCounters => ({
  iteration: 0,
  steps: 0,
  gradientSteps: 0,
  guardedFactor: 1,
  recoveryFactor: 1,
  recoveries: 0,
  skippedInARow: 0,
});

/** How a run goes on from a checkpoint: with what was written for that, as itself or forked as another one. */
export interface Continuing {
  readonly written: object;
  readonly forked: boolean;
}

/**
 * Counters as a resumed run goes on with them, and as a forked one begins: a rate that was written for that is the rate,
 * whatever was made of the one before.
 */
export function continuedCounters<C extends UpdateCounters>(counters: C, { written, forked }: Continuing): C {
  return {
    ...counters,
    ...(forked ? { iteration: 0, recoveries: 0 } : {}),
    ...('learningRate' in written ? { guardedFactor: 1, recoveryFactor: 1 } : {}),
  };
}

/** What an attempt at an update says of itself. */
export interface Attempt {
  readonly learningRate: number;
  /** Too many steps in a row were not finite: nothing of it stands. */
  readonly failed: boolean;
  /** The mean exact KL to the policy before, before the guard looked. */
  readonly kl: number;
  /** The same before its first step, where something else than its steps had moved the policy; 0 where nothing has. */
  readonly klBegun: number;
  /** The share of its steps that were within the bound. */
  readonly shareWithin: number;
  /** Gradient steps that were taken, those that were not finite, and how many of those in a row at the end. */
  readonly taken: number;
  readonly skipped: number;
  readonly streak: number;
  /** Why it ended before its last step, where it did. */
  readonly stop?: TrainEvent | undefined;
}

/** What the guard left of an update. */
export interface Held extends KlOverStates {
  /** The share of the step that stands. */
  readonly scale: number;
  readonly backtracks: number;
  /** What it was before single states were held within their bounds, where they had to be. */
  readonly before?: KlOverStates;
}

/** What an attempt says that has no policy to stay near. */
export const UNBOUNDED = { kl: 0, klBegun: 0, shareWithin: 1 } as const;

/** What leaves an update as it is. */
export const UNTOUCHED: Held = { kl: 0, klP99: 0, klMax: 0, scale: 1, backtracks: 0 };

/** Without a guard nothing bounds an update: only what is not finite is taken back. */
export interface GuardedSettings extends StateBounds {
  readonly guard?: number | null;
  readonly guardRetries?: number;
  readonly recoveries: number;
  readonly recoveryFactor: number;
}

/** An update as it stands. */
export interface GuardedUpdate<A extends Attempt, H extends Held = Held> {
  readonly done: A;
  readonly held: H;
  /** The KL of the first attempt. */
  readonly klRaw: number;
  readonly retries: number;
}

/** Makes an update and counts it. `hold` steps back where the bound asks for it, and makes what is left the policy. */
export async function guardedUpdate<A extends Attempt, H extends Held>(
  config: GuardedSettings,
  counters: UpdateCounters,
  events: TrainEvent[],
  update: {
    /** How many steps were collected for it. */
    readonly steps: number;
    readonly attempt: () => A | Promise<A>;
    readonly hold: (done: A, bound: number) => H | Promise<H>;
    /** What a failure means, and what to do about it. */
    readonly diagnosis: { readonly wrong: string; readonly remedy: string };
  },
): Promise<GuardedUpdate<A, H>> {
  const { guard = null, guardRetries = 0 } = config;
  const bound = guard ?? Number.POSITIVE_INFINITY;
  let done = await update.attempt();
  const first = done;
  const { kl: klRaw } = first;
  let retries = 0;
  const tooFar = (): boolean => guard !== null && !done.failed && !(done.kl <= bound);
  while (tooFar() && guardRetries > 0) {
    const cut = fittingCut(done, bound);
    const isSlower = slowDown(counters, done, cut, bound, events);
    if (!isSlower || !isWorthAnotherAttempt(cut) || retries >= guardRetries) break;
    retries++;
    done = await update.attempt();
  }
  const { failed, learningRate } = done;
  if (!failed) counters.guardedFactor = regainedFactor(counters.guardedFactor, first, bound);
  const held = await update.hold(done, bound);

  counters.iteration++;
  counters.steps += update.steps;
  counters.gradientSteps += failed ? 0 : done.taken;
  counters.skippedInARow = failed ? 0 : done.streak;
  if (failed) cutRate(counters, config, learningRate, update.diagnosis, events);
  else if (done.skipped > 0) events.push({ type: 'skipped', count: done.skipped });
  if (done.stop) events.push(done.stop);
  if (held.backtracks > 0 || retries > 0) {
    const { kl: klAfter, backtracks, scale } = held;
    const mean = { klBefore: klRaw, klAfter, ...(guard === null ? {} : { bound }) };
    events.push({ type: 'guard', ...mean, ...statesHeld(held, config), retries, backtracks, scale });
  }
  return { done, held, klRaw, retries };
}

/** Which bounds of single states were left, and how they were kept. */
function statesHeld(
  { before, klP99, klMax }: Held,
  { guardP99 = null, guardMax = null }: StateBounds,
): Pick<Extract<TrainEvent, { type: 'guard' }>, 'p99' | 'max'> {
  if (before === undefined) return {};
  return {
    ...(guardP99 === null ? {} : { p99: { before: before.klP99, after: klP99, bound: guardP99 } }),
    ...(guardMax === null ? {} : { max: { before: before.klMax, after: klMax, bound: guardMax } }),
  };
}

/** A lower rate for another attempt. False where it cannot be lower. */
function slowDown(
  counters: UpdateCounters,
  { learningRate, shareWithin }: Attempt,
  cut: number,
  bound: number,
  events: TrainEvent[],
): boolean {
  const from = counters.guardedFactor;
  counters.guardedFactor = slowerFactor(from, cut);
  if (counters.guardedFactor === from) return false;
  events.push({
    type: 'rate-change',
    what: 'learningRate',
    from: learningRate,
    to: (learningRate * counters.guardedFactor) / from,
    why: `the update left the bound of ${bound}${shareWithin < 1 ? ` after ${Math.round(100 * shareWithin)}% of its steps` : ''}`,
  });
  return true;
}

/** After a failure the rate is cut; after too many, training ends with what was wrong and what to do about it. */
function cutRate(
  counters: UpdateCounters,
  config: GuardedSettings,
  learningRate: number,
  { wrong, remedy }: { readonly wrong: string; readonly remedy: string },
  events: TrainEvent[],
): void {
  counters.recoveries++;
  if (counters.recoveries > config.recoveries) {
    const tried = `, after ${config.recoveries} restores with the learning rate cut to ${learningRate.toExponential(1)}`;
    throw new TrainError(`${wrong}${config.recoveries === 0 ? '' : tried}: ${remedy}`);
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

/** The part of a row that every guarded update has. */
export function guardedRow(
  counters: UpdateCounters,
  { done, held, klRaw, retries }: GuardedUpdate<Attempt>,
): Record<string, number> {
  return {
    ...countedRow(counters, done),
    'kl/step': held.kl,
    'kl/step_raw': klRaw,
    'kl/step_p99': held.klP99,
    'kl/step_max': held.klMax,
    'guard/retries': retries,
    'guard/backtracks': held.backtracks,
    'guard/scale': held.scale,
    'guard/rate': counters.guardedFactor,
  };
}

/** The part of a row that every update has, guarded or not. */
export function countedRow(
  { iteration, steps }: UpdateCounters,
  { learningRate, taken, skipped }: Attempt,
): Record<string, number> {
  return {
    'train/iteration': iteration,
    'train/step': steps,
    'train/lr': learningRate,
    'train/minibatches_run': taken,
    'train/skipped': skipped,
  };
}
