import { describe, expect, it } from 'vitest';
import type { Trial } from '../../src/studies/schema.ts';
import { summaryOf, winnerOf } from '../../src/studies/summary.ts';
import { outcome, study, trial } from './support/studies.ts';

const trials: readonly Trial[] = [
  trial({
    number: 0,
    value: 10,
    endedAt: 300,
    params: { epochs: 3, adaptiveRate: false },
    outcomes: [outcome({ step: 100, seconds: 1 }), outcome({ seed: 1, step: 150, seconds: 2 })],
  }),
  trial({
    number: 1,
    value: 50,
    endedAt: 100,
    params: { epochs: 20 },
    violations: ['seed 0 is sick'],
    outcomes: [outcome({ step: 100 })],
  }),
  trial({
    number: 2,
    value: 20,
    endedAt: 200,
    params: { epochs: 11, adaptiveRate: true, adaptiveRateTarget: 0.01 },
  }),
  trial({ number: 3, value: 20, endedAt: 400, params: { hidden: 'other' } }),
  trial({
    number: 4,
    state: 'pruned',
    value: 5,
    endedAt: 150,
    params: { epochs: 4, adaptiveRateTarget: 0.01 },
  }),
  trial({
    number: 5,
    state: 'failed',
    value: null,
    outcomes: [
      outcome({
        status: 'failed',
        step: 0,
        value: null,
        problem: 'minibatchSize 96 does not divide 512',
        seconds: 0,
      }),
    ],
  }),
  trial({ number: 6, state: 'running', value: null }),
];

describe('a summary', () => {
  const summary = summaryOf(study(), trials);

  it('has the best trial that can win, the first of equal ones', () => {
    expect(summary.winner?.number).toBe(2);
    expect(winnerOf('minimize', trials)?.number).toBe(0);
    expect(winnerOf('maximize', [...trials].reverse())?.number).toBe(2);
    expect(
      winnerOf(
        'maximize',
        trials.filter(({ number }) => number === 1),
      ),
    ).toBeUndefined();
    const wild = [
      trial({ number: 7, value: Number.NaN }),
      trial({ number: 8, value: 99, purpose: 'confirm-winner' }),
    ];
    expect(winnerOf('maximize', [...trials, ...wild])?.number).toBe(2);
  });

  it('counts trials by state, those that cannot win, steps, time and failures', () => {
    expect(summary.counts).toEqual({ waiting: 0, running: 1, complete: 4, pruned: 1, failed: 1 });
    expect(summary.planned).toBe(50);
    expect(summary.infeasible).toBe(1);
    expect(summary.steps).toBe(350);
    expect(summary.seconds).toBe(1 + 2 + 12.5);
    expect(summary.failures).toEqual([
      { trial: 5, run: 't0000-seed0', problem: 'minibatchSize 96 does not divide 512' },
    ]);
  });

  it('tells the best so far in the order in which trials ended', () => {
    expect(summary.bestSoFar).toEqual([
      { trial: 1, value: 50, feasible: false, best: null, steps: 100, endedAt: 100 },
      { trial: 2, value: 20, feasible: true, best: 20, steps: 100, endedAt: 200 },
      { trial: 0, value: 10, feasible: true, best: 20, steps: 350, endedAt: 300 },
      { trial: 3, value: 20, feasible: true, best: 20, steps: 350, endedAt: 400 },
    ]);
    const downwards = summaryOf(
      study({ objective: { ...study().objective, direction: 'minimize' } }),
      trials,
    );
    expect(downwards.bestSoFar.map(({ best }) => best)).toEqual([null, 20, 10, 10]);
  });

  it('has the points of each axis where it counts', () => {
    const pointsOf = (key: string) => summary.axes.find(axis => axis.key === key)!.points;
    expect(pointsOf('epochs')).toEqual([
      { trial: 0, param: 3, at: 0.5 / 18, value: 10, state: 'complete', feasible: true },
      { trial: 1, param: 20, at: 17.5 / 18, value: 50, state: 'complete', feasible: false },
      { trial: 2, param: 11, at: 8.5 / 18, value: 20, state: 'complete', feasible: true },
      { trial: 4, param: 4, at: 1.5 / 18, value: 5, state: 'pruned', feasible: true },
    ]);
    expect(pointsOf('adaptiveRateTarget').map(one => one.trial)).toEqual([2]);
    // What is not in the space has no place on it.
    expect(pointsOf('hidden')).toEqual([]);
  });

  it('of nothing is empty', () => {
    expect(summaryOf(study(), [])).toMatchObject({
      winner: null,
      bestSoFar: [],
      steps: 0,
      confirmation: null,
    });
  });
});

describe('a confirmation', () => {
  const runs = (values: readonly (number | null)[]) =>
    values.map((value, i) => outcome({ seed: 1000 + i, value, step: 10 }));
  const winner = trial({ number: 1, purpose: 'confirm-winner', seeds: [1000, 1001], outcomes: runs([5, 7]) });
  const byDefault = trial({
    number: 2,
    purpose: 'confirm-default',
    seeds: [1000, 1001],
    outcomes: runs([1, 5]),
  });

  it('compares the winner with the default on fresh seeds', () => {
    const {
      confirmation,
      winner: best,
      confirmSteps,
      steps,
    } = summaryOf(study(), [trial({ value: 1 }), winner, byDefault]);
    expect(best?.number).toBe(0);
    expect([steps, confirmSteps]).toEqual([0, 40]);
    expect(confirmation).toMatchObject({
      winner: { trial: 1, values: [5, 7], value: 6, interval: { low: 5, high: 7 } },
      default: { trial: 2, values: [1, 5], value: 3, interval: { low: 1, high: 5 } },
      // 5 > 1, 5 = 5, 7 > 1, 7 > 5.
      improvement: { probability: 3.5 / 4 },
    });
  });

  it('turns round where less is better', () => {
    const less = study({
      objective: { metric: 'loss/value', direction: 'minimize', of: 'last', over: 'mean' },
    });
    expect(summaryOf(less, [winner, byDefault]).confirmation?.improvement?.probability).toBe(0.5 / 4);
  });

  it('says nothing before all seeds are there, and takes the newest', () => {
    const half = trial({ ...winner, number: 3, outcomes: runs([5]) });
    expect(summaryOf(study(), [winner, byDefault, half]).confirmation).toMatchObject({
      winner: { trial: 3, values: [5], value: null, interval: null },
      improvement: null,
    });
    expect(summaryOf(study(), [winner]).confirmation).toMatchObject({ default: null, improvement: null });
    const none = trial({ ...winner, outcomes: runs([5, null]) });
    expect(summaryOf(study(), [none]).confirmation?.winner?.value).toBeNull();
  });
});
