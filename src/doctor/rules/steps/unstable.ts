/**
 * Which setting makes updates too large. KL alone cannot tell a learning rate from epochs or a clip range; the settings
 * can, because one that was changed by accident is far from what people use.
 */
import type { CanonicalRun } from '../../canonical.ts';
import type { RootCause } from '../../findings.ts';
import type { Fix } from '../../fixes.ts';
import { citeSetting, limit, say, usual, workOut } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Signals } from '../signals.ts';
import { change, num, round, type Said } from '../words.ts';
import { PROBLEM_KL } from './streak.ts';

export interface Suspect {
  readonly cause: RootCause;
  readonly confidence: number;
  /** Doublings beyond the upper end of what is usual; above 0 is unusual. */
  readonly excess: number;
  readonly why: Said;
  readonly fix: readonly (Fix | undefined)[];
  /** Other settings that are unusual, the most so first. */
  readonly others: readonly Pick<Suspect, 'cause' | 'why'>[];
}

export const suspectLimits = limitsOf('suspect', {
  /** Doublings beyond the upper end of what is usual from which a setting is unusual, and from which far so. */
  unusual: 0.9,
  far: 2,
});

/** The upper ends of what people use: above them a setting is a suspect by itself. */
const largestUsual = { classic: { lr: 1e-3 }, 'language-model': { lr: 2e-5 } } as const;
/** PufferLib's default goes with the optimiser Muon, whose rates are of another size. */
const defaultRates: Readonly<Record<string, number>> = { pufferlib: 0.02 };

/** The largest learning rate that is usual. Keel's language models have some million parameters: they stand more. */
function usualRate({ trainer, kind }: CanonicalRun): number {
  if (trainer === 'keel' && kind === 'language-model') return 3e-4;
  return defaultRates[trainer] ?? largestUsual[kind].lr;
}

/** What one of Keel's language models of some million parameters takes, and a large one: a smaller rate is not worth a try. */
export const leastRate = { keel: 3e-5, others: 1e-6 } as const;
const STEP_DOWN = 30;

/**
 * A learning rate to come down to: a third at most. Of small policies not below what is usual: a lower one heals as surely, and
 * then learns too slowly (docs/results.md). No log tells how large a language model is, but a rate that could be tried at all
 * does: a thirtieth of it, and never below what large ones take.
 */
export function lowerRate({ trainer, kind }: CanonicalRun, rate: number): number {
  const least = trainer === 'keel' ? leastRate.keel : leastRate.others;
  const safe = kind === 'classic' ? largestUsual.classic.lr : Math.max(rate / STEP_DOWN, least);
  return round(Math.min(rate / 3, safe));
}

const usualEpochs = 10;
/** RLlib's default is 30: no sign that somebody changed it. */
const defaultEpochs: Readonly<Record<string, number>> = { rllib: 30 };
const usualClip = 0.2;
/** The KL at which an update is stopped. */
const usualStop = 0.015;

/** Eight rules ask the same of one run. */
const known = new WeakMap<Signals, Suspect>();

export function suspectOf(signals: Signals): Suspect {
  const found = known.get(signals) ?? suspectIn(signals);
  known.set(signals, found);
  return found;
}

function suspectIn(signals: Signals): Suspect {
  const { run, settings } = signals;
  const doublings = (value: number | undefined, top: number): number =>
    value === undefined || !(value > 0) ? Number.NEGATIVE_INFINITY : Math.log2(value / top);
  const lr = doublings(settings.lr, usualRate(run));
  const epochs = doublings(settings.epochs, defaultEpochs[run.trainer] ?? usualEpochs);
  // Beyond 1 a clip range is as good as none: a larger one is no more suspect.
  const clip = doublings(settings.clip === undefined ? undefined : Math.min(settings.clip, 5), usualClip);
  const rate = settings.lr;
  const rated = citeSetting('learningRate', rate ?? Number.NaN);
  const lower = rate === undefined ? 'a third of what it is' : num(lowerRate(run, rate));
  // Never looser than what is set, and well within the guard's bound.
  const stop = Math.min(
    usualStop,
    settings.targetKl ?? usualStop,
    round((run.config.guard ?? 1) / 2) || usualStop,
  );
  const target = change(run, { targetKl: stop }, `stop an update early at a KL of ${num(stop)}`);
  const slower = change(
    run,
    rate === undefined ? {} : { learningRate: lowerRate(run, rate) },
    `set the learning rate to ${lower}`,
  );
  const ranked = (
    [
      {
        cause: 'learning-rate-too-high',
        excess: lr,
        why: say`the learning rate of ${rated} is ${workOut('times', rated, limit(usualRate(run)))} times the largest that is usual`,
        fix: [slower, target],
      },
      {
        cause: 'too-many-epochs',
        excess: epochs,
        why: say`${citeSetting('epochs', settings.epochs ?? Number.NaN)} epochs go over the same samples, where ${limit(3)} to ${limit(10)} are usual`,
        fix: [change(run, { epochs: run.kind === 'classic' ? 10 : 1 }, 'use 3 to 10 epochs'), target],
      },
      {
        cause: 'clip-range-too-large',
        excess: clip,
        why: say`a clip range of ${citeSetting('clipRange', settings.clip ?? Number.NaN)} holds back nothing; ${usual(0.1, 0.2)}`,
        fix: [change(run, { clipRange: 0.2 }, 'set the clip range to 0.2'), target],
      },
    ] as const
  ).toSorted((a, b) => b.excess - a.excess);
  const [first, second] = ranked;
  if (first.excess >= suspectLimits.unusual) {
    const margin = first.excess - Math.max(second.excess, 0);
    const others = ranked.slice(1).filter(({ excess }) => excess >= suspectLimits.unusual);
    return { ...first, confidence: Math.min(0.95, 0.65 + 0.1 * margin), others };
  }
  // No setting stands out: a lower learning rate is what helps most often.
  return {
    cause: 'learning-rate-too-high',
    confidence: rate === undefined ? 0.5 : 0.55,
    excess: Math.max(0, lr, 0),
    why:
      rate === undefined
        ? say`no setting is known; a learning rate that is too high is the most common reason`
        : say`no setting is far from usual; a learning rate of ${rated} that is too high for this task is the most common reason`,
    fix: [slower, target],
    others: [],
  };
}

/** That nothing bounds an update, and how to change that; undefined where a guard is on, or unknown. */
export function unguarded(
  run: CanonicalRun,
): { readonly why: string; readonly fix: Fix | undefined } | undefined {
  if (run.config.guard !== Number.POSITIVE_INFINITY) return undefined;
  const { nameOf } = run.wording;
  const why = 'the guard is off: nothing bounds an update';
  // Where the guard is what holds to a target, advice on that one switches it on already.
  const fix =
    nameOf('guard') === nameOf('targetKl')
      ? undefined
      : change(run, { guard: PROBLEM_KL }, `switch the guard on, at a KL of ${PROBLEM_KL}`);
  return { why, fix };
}
