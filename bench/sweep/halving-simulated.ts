/**
 * `npm run bench -- sweep halving-simulated`: successive halving against random search on learning curves that are made up, by the
 * steps until a trial that was trained to its end is as good as the best of 81 that random search trained. Both try the same
 * trials in the same order, one at a time on each of four places.
 *
 * A curve rises to its trial's quality, sooner or later, and is seen with noise. Three kinds: all rise equally fast; each at a pace
 * of its own; and the better the slower, where halving sends on the wrong ones.
 */
import { Rng } from '../../src/random/rng.ts';
import { type Halved, nextPromotion, type Promotion, rungsOf } from '../../src/sweep/halving.ts';
import { median, report, round } from '../measure.ts';

const MAX_STEPS = 2700;
const HALVING = { eta: 3, minSteps: 100 };
const TRIALS = 81;
const PLACES = 4;
const STUDIES = 30;
/** Random search's; a study that has not found it by then counts as so many. */
const BUDGET = TRIALS * MAX_STEPS;
const NOISE = 0.02;

/** Steps in which a curve comes to 63 % of its quality, by that quality (0..1) and luck (0..1). */
const paces = {
  'equally fast': () => 400,
  'each at its own pace': (_quality: number, luck: number) => 100 * 16 ** luck,
  'the better the slower': (quality: number) => 100 * 16 ** quality,
};

interface Curve {
  readonly at: (steps: number) => number;
}

function curves(seed: number, pace: (quality: number, luck: number) => number): Curve[] {
  return Array.from({ length: BUDGET / HALVING.minSteps }, (_, i) => {
    const rng = new Rng(seed * 1_000_000 + i);
    const [quality, luck] = [rng.uniform(), rng.uniform()];
    const slowness = pace(quality, luck);
    const noise = new Map(rungsOf(HALVING, MAX_STEPS).map(steps => [steps, rng.normal() * NOISE]));
    return { at: steps => quality * (1 - Math.exp(-steps / slowness)) + (noise.get(steps) ?? 0) };
  });
}

/** Steps until a trial is at its end with at least `goal`; Infinity where that takes more than the budget. */
function stepsUntil(goal: number, trials: readonly Curve[]): number {
  const [first] = rungsOf(HALVING, MAX_STEPS);
  const seen: Halved[] = [];
  const jobs: (Promotion & { endsAt: number })[] = [];
  let [now, steps] = [0, 0];
  for (;;) {
    while (jobs.length < PLACES) {
      const underway = new Set(jobs.map(job => job.trial));
      let job = nextPromotion(seen, HALVING, MAX_STEPS, 'maximize', underway);
      if (job === undefined) {
        job = { trial: seen.length, until: first };
        seen.push({ number: seen.length, state: 'waiting', rungs: [], violations: [] });
      }
      jobs.push({ ...job, endsAt: now + job.until - (seen[job.trial].rungs.at(-1)?.steps ?? 0) });
    }
    const next = jobs.reduce((a, b) => (b.endsAt < a.endsAt ? b : a));
    jobs.splice(jobs.indexOf(next), 1);
    now = next.endsAt;
    const trial = seen[next.trial];
    // It resumes from its checkpoint: what it was trained before is not trained again.
    steps += next.until - (trial.rungs.at(-1)?.steps ?? 0);
    if (steps > BUDGET) return Infinity;
    const value = trials[next.trial].at(next.until);
    const isAtEnd = next.until === MAX_STEPS;
    if (isAtEnd && value >= goal) return steps;
    seen[next.trial] = {
      ...trial,
      state: isAtEnd ? 'complete' : 'waiting',
      rungs: [...trial.rungs, { steps: next.until, value }],
    };
  }
}

export function run(): void {
  for (const [kind, pace] of Object.entries(paces)) {
    const shares = Array.from({ length: STUDIES }, (_, seed) => {
      const all = curves(seed, pace);
      const ends = all.slice(0, TRIALS).map(curve => curve.at(MAX_STEPS));
      const goal = Math.max(...ends);
      // Random search had it when that trial ended.
      const reached = (ends.indexOf(goal) + 1) * MAX_STEPS;
      const steps = Math.min(BUDGET, stepsUntil(goal, all));
      return { ofBudget: steps / BUDGET, ofReached: steps / reached, found: steps < BUDGET };
    });
    report({
      curves: kind,
      studies: STUDIES,
      random_search_steps: BUDGET,
      asha_share_of_random_searchs_budget: round(median(shares.map(share => share.ofBudget)), 3),
      asha_share_of_steps_until_random_search_had_it: round(median(shares.map(share => share.ofReached)), 3),
      not_found_in_that_budget: shares.filter(share => !share.found).length,
    });
  }
}
