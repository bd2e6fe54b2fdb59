/**
 * Asynchronous successive halving (ASHA; Li et al. 2020, "A system for massively parallel hyperparameter tuning",
 * algorithm 2). A trial pauses at rungs, minSteps * eta^k steps; whenever a place is free, the best trial that is among the
 * first 1 / eta of its rung and was not sent on yet goes on from its checkpoint to the next rung, the highest rung first; where
 * there is none a new trial begins. Nobody waits for a rung to fill.
 *
 * One thing is not as in the paper: of n trials at a rung at most floor(n / eta) are ever sent on. There an early one that later
 * ones overtake keeps its promotion and they get theirs too, so that a rung sends on more than its share; here they wait until
 * the rung has grown.
 */
import type { Direction, Halving, Trial } from '../studies/schema.ts';

/** What halving sees of a trial. */
export type Halved = Pick<Trial, 'number' | 'state' | 'rungs' | 'violations'>;

/** A trial that goes on from its checkpoint, up to so many steps. */
export interface Promotion {
  readonly trial: number;
  readonly until: number;
}

/** The steps at which trials pause, ascending; the last is the end of a run. */
export function rungsOf({ eta, minSteps }: Halving, maxSteps: number): number[] {
  if (!(eta > 1)) throw new RangeError(`eta ${eta} is not above 1: use 3, with which a third goes on`);
  if (!(minSteps >= 1))
    throw new RangeError(`minSteps ${minSteps} is below 1: use the steps after which trials differ`);
  const rungs: number[] = [];
  for (let k = 0; ; k++) {
    const steps = Math.round(minSteps * eta ** k);
    if (!(steps < maxSteps)) return [...rungs, maxSteps];
    if (steps !== rungs.at(-1)) rungs.push(steps);
  }
}

/**
 * The trial that should go on now; undefined where none should. `underway` are the trials with a job: what runs beyond its last
 * rung is on its way, and is not sent on again. Trials with violations take part in the count and are never sent on.
 */
export function nextPromotion(
  trials: readonly Halved[],
  halving: Halving,
  maxSteps: number,
  direction: Direction,
  underway: ReadonlySet<number> = new Set(),
): Promotion | undefined {
  const rungs = rungsOf(halving, maxSteps);
  for (let k = rungs.length - 2; k >= 0; k--) {
    const ranked = rankedAt(trials, rungs, k, direction);
    const share = Math.floor(ranked.length / halving.eta);
    // A trial that failed with a value at its last rung did so on its way to the next.
    const isSentOn = ({ trial }: Ranked): boolean =>
      trial.state === 'complete' ||
      trial.state === 'failed' ||
      underway.has(trial.number) ||
      topOf(trial) >= rungs[k + 1];
    if (ranked.filter(isSentOn).length >= share) continue;
    const next = ranked.slice(0, share).find(one => one.isAble && !isSentOn(one));
    if (next) return { trial: next.trial.number, until: rungs[k + 1] };
  }
  return undefined;
}

/**
 * When no trial is to begin and none to be sent on, and none has come to its end: the best of the highest rung, to the end.
 * Without it a study of few trials would have no winner that was trained as long as a run is.
 */
export function finalist(
  trials: readonly Halved[],
  halving: Halving,
  maxSteps: number,
  direction: Direction,
): Promotion | undefined {
  if (trials.some(trial => trial.state === 'complete' && trial.violations.length === 0)) return undefined;
  const rungs = rungsOf(halving, maxSteps);
  for (let k = rungs.length - 1; k >= 0; k--) {
    const best = rankedAt(trials, rungs, k, direction).find(({ isAble }) => isAble);
    if (best) return k < rungs.length - 1 ? { trial: best.trial.number, until: maxSteps } : undefined;
  }
  return undefined;
}

const isOpen = ({ state }: Halved): boolean => state === 'waiting' || state === 'running';

const topOf = (trial: Halved): number => Math.max(0, ...trial.rungs.map(rung => rung.steps));

interface Ranked {
  readonly trial: Halved;
  readonly isAble: boolean;
}

/** The trials that have a value at a rung, best first; those with violations, and those whose value is no number, last. */
function rankedAt(
  trials: readonly Halved[],
  rungs: readonly number[],
  k: number,
  direction: Direction,
): Ranked[] {
  const sign = direction === 'minimize' ? 1 : -1;
  const next = rungs[k + 1] ?? Infinity;
  const reached = trials.flatMap(trial => {
    // A run pauses at the end of an iteration, which may be some steps past the rung.
    const value = trial.rungs.find(({ steps }) => steps >= rungs[k] && steps < next)?.value;
    if (value === undefined) return [];
    const isOut = trial.violations.length > 0 || Number.isNaN(value);
    return [{ trial, isOut, isAble: !isOut && isOpen(trial), cost: isOut ? Infinity : sign * value }];
  });
  return reached.sort(
    (a, b) =>
      Number(a.isOut) - Number(b.isOut) ||
      (a.cost === b.cost ? 0 : a.cost - b.cost) ||
      a.trial.number - b.trial.number,
  );
}
