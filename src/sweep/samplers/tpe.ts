/**
 * The Tree-structured Parzen Estimator (Bergstra et al. 2011, "Algorithms for hyper-parameter optimization"): the trials so far
 * are split into a good share and the others, each has a density, and of candidates that are drawn from the good one's the next
 * trial is that at which good / others is largest.
 *
 * 1. The densities are joint ones (Falkner et al. 2018), so settings that only work together are found together; half of the
 *    candidates take each axis from another good trial, so what is good on an axis by itself is combined.
 * 2. It begins with points of a Halton sequence.
 * 3. Trials that violate a constraint, failed or came to nothing are among the others, whatever their value.
 * 4. Trials under way are too, as if they would turn out badly (constant liar): asks in parallel keep out of each other's way.
 * 5. Trials that were pruned, or wait at a rung, rank by how far they came, then by their value there.
 */
import type { Direction, Space } from '../../studies/schema.ts';
import { drawFresh, notIn } from './fresh.ts';
import { type Point, paramsOf, parzen, pointOf } from './parzen.ts';
import { haltonPoints } from './quasi-random.ts';
import type { Sampler, Seen } from './sampler.ts';
import { streamOf } from './stream.ts';

// These were tuned on seeds 0 to 29 of `npm run bench -- sweep optuna`, which reports on others.
/** Trials with a result before the densities are worth anything. */
const STARTUP = 10;
/** The good ones: a share of all with a result, and how many at the most. */
const GOOD_SHARE = 0.25;
const MOST_GOOD = 25;
const CANDIDATES = 24;
/** Narrower than Scott's rule, which is for one peak: good settings have several, and others are only known where they were tried. */
const GOOD_WIDTHS = { scale: 0.7, minWidth: 0.01 };
const OTHERS_WIDTHS = { scale: 0.5, minWidth: 0.05 };

export function tpeSampler(space: Space, searchSeed: number, direction: Direction): Sampler {
  const startAt = haltonPoints(space, searchSeed);
  return {
    ask(number, seen) {
      const isFresh = notIn(space, seen);
      const rng = streamOf(searchSeed, number);
      const { good, others, judged } = split(seen, direction);
      if (judged < STARTUP) {
        const point = startAt(number);
        return isFresh(point) ? point : drawFresh(space, rng, isFresh);
      }
      const points = (trials: readonly Seen[]): Point[] => trials.map(trial => pointOf(space, trial.params));
      const ofGood = parzen(space, points(good), { weights: rankWeights(good.length), ...GOOD_WIDTHS });
      const ofOthers = parzen(space, points(others), { weights: others.map(() => 1), ...OTHERS_WIDTHS });
      const candidates = Array.from({ length: CANDIDATES }, (_, i) => {
        const point = ofGood.draw(rng, i % 2 === 0);
        return {
          params: paramsOf(space, point),
          score: ofGood.logDensity(point) - ofOthers.logDensity(point),
        };
      });
      candidates.sort((a, b) => b.score - a.score);
      return candidates.find(({ params }) => isFresh(params))?.params ?? drawFresh(space, rng, isFresh);
    },
  };
}

/** The best counts most, as when CMA-ES recombines (Hansen & Ostermeier 2001); the mean is 1. */
function rankWeights(count: number): number[] {
  const weights = Array.from({ length: count }, (_, rank) => Math.log((count + 1) / (rank + 1)));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map(weight => (weight * count) / sum);
}

/** `judged` counts the trials that say something about the objective or its constraints. */
function split(
  seen: readonly Seen[],
  direction: Direction,
): { good: Seen[]; others: Seen[]; judged: number } {
  const sign = direction === 'minimize' ? 1 : -1;
  const ranked: { trial: Seen; steps: number; cost: number }[] = [];
  const others: Seen[] = [];
  let judged = 0;
  for (const trial of seen) {
    const last = trial.rungs.at(-1);
    const isWhole = trial.state === 'complete' && trial.value !== null;
    const value = isWhole ? trial.value : (last?.value ?? null);
    const isOver = trial.state !== 'waiting' && trial.state !== 'running';
    if (isOver || value !== null) judged++;
    const canWin = trial.state !== 'failed' && trial.violations.length === 0;
    if (canWin && value !== null && !Number.isNaN(value))
      ranked.push({ trial, steps: isWhole ? Infinity : (last?.steps ?? 0), cost: sign * value });
    else others.push(trial);
  }
  ranked.sort(
    (a, b) =>
      (a.steps === b.steps ? 0 : b.steps - a.steps) ||
      (a.cost === b.cost ? 0 : a.cost - b.cost) ||
      a.trial.number - b.trial.number,
  );
  const count = Math.min(MOST_GOOD, Math.ceil(GOOD_SHARE * judged));
  const trials = ranked.map(({ trial }) => trial);
  return { good: trials.slice(0, count), others: [...trials.slice(count), ...others], judged };
}
