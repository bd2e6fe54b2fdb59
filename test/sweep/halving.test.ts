import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/rng.ts';
import type { Halving } from '../../src/studies/schema.ts';
import { finalist, type Halved, nextPromotion, rungsOf } from '../../src/sweep/halving.ts';

const halving: Halving = { eta: 3, minSteps: 100 };

/** A trial that waits, with the values that it had at the rungs so far. */
const at = (number: number, values: readonly number[], rest: Partial<Halved> = {}): Halved => ({
  number,
  state: 'waiting',
  rungs: values.map((value, k) => ({ steps: rungsOf(halving, 2700)[k], value })),
  violations: [],
  ...rest,
});

const next = (trials: readonly Halved[], underway: readonly number[] = []) =>
  nextPromotion(trials, halving, 2700, 'maximize', new Set(underway));

describe('rungs', () => {
  it('are eta times the one before, up to the end of a run', () => {
    expect(rungsOf({ eta: 3, minSteps: 100 }, 2700)).toEqual([100, 300, 900, 2700]);
    expect(rungsOf({ eta: 4, minSteps: 100 }, 1000)).toEqual([100, 400, 1000]);
    expect(rungsOf({ eta: 2, minSteps: 512 }, 512)).toEqual([512]);
    expect(rungsOf({ eta: 2, minSteps: 512 }, 100)).toEqual([100]);
    // Steps are whole, and no rung stands twice.
    expect(rungsOf({ eta: 1.2, minSteps: 2 }, 5)).toEqual([2, 3, 4, 5]);
  });

  it('refuse what would have no end', () => {
    expect(() => rungsOf({ eta: 1, minSteps: 100 }, 1000)).toThrow('eta 1 is not above 1');
    expect(() => rungsOf({ eta: 3, minSteps: 0 }, 1000)).toThrow('minSteps 0 is below 1');
  });
});

describe('the next promotion', () => {
  it('is none until a rung has eta trials, then its best', () => {
    expect(next([at(0, [5]), at(1, [7])])).toBeUndefined();
    expect(next([at(0, [5]), at(1, [7]), at(2, [6])])).toEqual({ trial: 1, until: 300 });
  });

  it('goes by the direction', () => {
    const trials = [at(0, [5]), at(1, [7]), at(2, [6])];
    expect(nextPromotion(trials, halving, 2700, 'minimize')).toEqual({ trial: 0, until: 300 });
  });

  it('is not one that is on its way, nor one that has been at the next rung', () => {
    expect(next([at(0, [5]), at(1, [7]), at(2, [6])], [1])).toBeUndefined();
    expect(next([at(0, [5]), at(1, [7, 8]), at(2, [6])])).toBeUndefined();
  });

  it('is from the highest rung that has one', () => {
    const trials = [at(0, [9, 1]), at(1, [8, 3]), at(2, [7, 2]), ...[3, 4, 5, 6, 7, 8].map(n => at(n, [1]))];
    // Twelve at the first rung could send on a fourth, but the second rung comes first.
    const more = [...trials, at(9, [6]), at(10, [1]), at(11, [1])];
    expect(next(more)).toEqual({ trial: 1, until: 900 });
    expect(next(more, [1])).toEqual({ trial: 9, until: 300 });
  });

  it('ends at the end of a run', () => {
    const done = [0, 1, 2].map(n => at(n, [n, n, n, n]));
    expect(next(done)).toBeUndefined();
  });

  it('is never one with violations, nor without a value, though they count at the rung', () => {
    const sick = { violations: ['sick'] };
    expect(next([at(0, [5]), at(1, [7], sick), at(2, [6])])).toEqual({ trial: 2, until: 300 });
    expect(next([0, 1, 2].map(n => at(n, [n], sick)))).toBeUndefined();
    expect(next([0, 1, 2].map(n => at(n, [Number.NaN])))).toBeUndefined();
    expect(next([at(0, [Number.NaN]), at(1, [-7]), at(2, [-8])])).toEqual({ trial: 1, until: 300 });
  });

  it('is not one that failed on its way, whose place is taken', () => {
    const trials = [at(0, [5]), at(1, [7], { state: 'failed' }), at(2, [6])];
    expect(next(trials)).toBeUndefined();
  });

  it('takes ties in the order of the trials', () => {
    expect(next([at(2, [5]), at(1, [5]), at(0, [5])])).toEqual({ trial: 0, until: 300 });
  });

  it('knows a run that paused some steps past its rung', () => {
    const paused = (number: number, steps: number, value: number): Halved => ({
      ...at(number, []),
      rungs: [{ steps, value }],
    });
    expect(next([paused(0, 128, 1), paused(1, 128, 3), paused(2, 100, 2)])).toEqual({ trial: 1, until: 300 });
  });

  it('waits with one that overtook an early one until the rung has grown', () => {
    const early = [at(0, [5, 5]), at(1, [1]), at(2, [2])];
    // One of five may be sent on, and one was.
    expect(next([...early, at(3, [8]), at(4, [9])])).toBeUndefined();
    expect(next([...early, at(3, [8]), at(4, [9]), at(5, [0])])).toEqual({ trial: 4, until: 300 });
  });
});

describe('the end of a study', () => {
  it('sends the best of the highest rung to the end, if none has come there', () => {
    const trials = [at(0, [9, 1]), at(1, [8, 3]), at(2, [7]), at(3, [1])];
    expect(finalist(trials, halving, 2700, 'maximize')).toEqual({ trial: 1, until: 2700 });
    expect(finalist([...trials, at(4, [1, 1, 1, 1])], halving, 2700, 'maximize')).toBeUndefined();
    const sick = [at(0, [9, 1]), at(1, [8, 3], { violations: ['sick'] })];
    expect(finalist(sick, halving, 2700, 'maximize')).toEqual({ trial: 0, until: 2700 });
    expect(finalist([], halving, 2700, 'maximize')).toBeUndefined();
  });
});

/** A study whose trials' values at a rung are given, on some places that finish in any order. */
function simulate(
  count: number,
  places: number,
  valueAt: (trial: number, steps: number) => number,
  rng: Rng,
) {
  const rungs = rungsOf(halving, 2700);
  const trials = new Map<number, Halved>();
  const jobs: { trial: number; until: number }[] = [];
  const sentOn = new Map<number, number>(); // from a rung's steps
  const begun: string[] = [];
  let trained = 0;
  let largestShare = 0;
  for (;;) {
    while (jobs.length < places) {
      const list = [...trials.values()];
      const promotion = nextPromotion(list, halving, 2700, 'maximize', new Set(jobs.map(job => job.trial)));
      if (promotion) {
        const from = rungs[rungs.indexOf(promotion.until) - 1];
        const reached = list.filter(trial => trial.rungs.some(rung => rung.steps === from)).length;
        sentOn.set(from, (sentOn.get(from) ?? 0) + 1);
        largestShare = Math.max(largestShare, sentOn.get(from)! - Math.floor(reached / halving.eta));
        jobs.push(promotion);
      } else if (trials.size < count) {
        jobs.push({ trial: trials.size, until: rungs[0] });
        trials.set(trials.size, at(trials.size, []));
      } else break;
      begun.push(`${jobs.at(-1)!.trial} until ${jobs.at(-1)!.until}`);
    }
    if (jobs.length === 0) break;
    const [{ trial: number, until }] = jobs.splice(rng.integer(jobs.length), 1);
    const trial = trials.get(number)!;
    // It goes on from its checkpoint: only the steps since the last rung are trained.
    trained += until - (trial.rungs.at(-1)?.steps ?? 0);
    const value = valueAt(number, until);
    trials.set(number, {
      ...trial,
      state: until === 2700 ? 'complete' : 'waiting',
      rungs: [...trial.rungs, { steps: until, value }],
    });
  }
  return { trials: [...trials.values()], sentOn, begun, trained, largestShare };
}

describe('a study', () => {
  it('in order of quality counts out: 27 trials, worst first', () => {
    const { sentOn, trained, trials } = simulate(27, 1, trial => trial, new Rng(0));
    // Each third arrival is the best yet and is sent on: 9 of 27, 3 of those, 1 of those.
    expect(Object.fromEntries(sentOn)).toEqual({ 100: 9, 300: 3, 900: 1 });
    // Every step once: 27 first rungs, 9 seconds, 3 thirds, 1 to the end. Without halving it is 27 * 2,700 = 72,900.
    expect(trained).toBe(27 * 100 + 9 * 200 + 3 * 600 + 1 * 1800);
    expect(trials.filter(trial => trial.state === 'complete').map(trial => trial.number)).toEqual([26]);
  });

  it('never sends on more than its share of a rung nor a trial twice, in whatever order runs end', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 9 }),
        (seed, count, places) => {
          const rng = new Rng(seed);
          const quality = Array.from({ length: count }, () => rng.uniform());
          // Values are noisy at first: the order of trials changes from rung to rung.
          const noise = new Map<string, number>();
          const valueAt = (trial: number, steps: number): number => {
            const key = `${trial}/${steps}`;
            if (!noise.has(key)) noise.set(key, (rng.normal() * 50) / steps);
            return quality[trial] + noise.get(key)!;
          };
          const { begun, largestShare, trials, trained } = simulate(count, places, valueAt, rng);
          if (largestShare > 0) throw new Error(`${largestShare} above the share`);
          if (new Set(begun).size !== begun.length) throw new Error('a part was trained twice');
          if (trials.length !== count) throw new Error(`${trials.length} of ${count} trials`);
          const steps = trials.reduce((sum, trial) => sum + trial.rungs.at(-1)!.steps, 0);
          if (trained !== steps) throw new Error(`${trained} steps trained, ${steps} reached`);
          // When all is quiet each rung has sent on its whole share, but for those whose place was taken.
          if (nextPromotion(trials, halving, 2700, 'maximize') !== undefined)
            throw new Error('it is not over');
        },
      ),
      { numRuns: 200 },
    );
  });

  it('finds the best of 81, where values tell the truth, with a quarter of the steps', () => {
    for (const seed of [0, 1, 2, 3, 4]) {
      const rng = new Rng(seed);
      const quality = rng.permutation(81);
      const { trials, trained } = simulate(81, 4, (trial, steps) => quality[trial] * Math.log(steps), rng);
      const furthest = Math.max(...trials.map(trial => trial.rungs.at(-1)!.steps));
      expect(furthest).toBe(2700);
      const winner = trials
        .filter(trial => trial.state === 'complete')
        .reduce((a, b) => (quality[a.number] > quality[b.number] ? a : b));
      expect(quality[winner.number]).toBeGreaterThanOrEqual(78);
      expect(trained).toBeLessThan((81 * 2700) / 4);
    }
  });
});
