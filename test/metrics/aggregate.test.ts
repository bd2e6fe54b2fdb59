import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunError } from '../../src/base/errors.ts';
import { encodeJson } from '../../src/base/json.ts';
import {
  EpisodeStats,
  explainedVariance,
  MeanAccumulator,
  RunningStats,
  weightedMean,
} from '../../src/metrics/aggregate.ts';

const finite = fc.double({ noNaN: true, min: -1e6, max: 1e6 });

describe('MeanAccumulator', () => {
  it('weights by samples: a small last minibatch counts for little', () => {
    const means = new MeanAccumulator();
    means.add({ 'loss/policy': 1, 'loss/value': 10 }, 64);
    means.add({ 'loss/policy': 4, 'loss/value': 10 }, 32);
    expect(means.means()).toEqual({ 'loss/policy': 2, 'loss/value': 10 });
    means.reset();
    expect(means.means()).toEqual({});
  });

  it('takes the mean of each metric over the minibatches that had it', () => {
    const means = new MeanAccumulator();
    means.add({ 'loss/policy': 1 });
    means.add({ 'loss/policy': 3, 'kl/ref': 5 });
    expect(means.means()).toEqual({ 'loss/policy': 2, 'kl/ref': 5 });
  });

  it('leaves out a skipped minibatch, but hides no NaN that counts', () => {
    const means = new MeanAccumulator();
    means.add({ 'loss/policy': Number.NaN, 'grad/norm': Number.POSITIVE_INFINITY }, 0);
    expect(means.means()).toEqual({});
    means.add({ 'loss/policy': 2, 'grad/norm': 1 }, 64);
    expect(means.means()).toEqual({ 'loss/policy': 2, 'grad/norm': 1 });
    means.add({ 'loss/policy': Number.NaN, 'grad/norm': Number.POSITIVE_INFINITY }, 64);
    expect(means.means()).toEqual({ 'loss/policy': Number.NaN, 'grad/norm': Number.POSITIVE_INFINITY });
  });

  it('is exact where a plain sum is not', () => {
    const means = new MeanAccumulator();
    for (const value of [1, 1e100, 1, -1e100]) means.add({ 'loss/total': value });
    expect(means.means()['loss/total']).toBe(0.5);
  });

  it('refuses unknown names and bad weights', () => {
    const means = new MeanAccumulator();
    expect(() => means.add({ 'loss/polcy': 1 })).toThrow('did you mean loss/policy?');
    expect(() => means.add({ 'loss/policy': 1 }, -1)).toThrow('weight -1 of a minibatch');
    expect(() => means.add({ 'loss/policy': 1 }, Number.NaN)).toThrow(RunError);
    expect(() => means.add({ 'loss/policy': 1 }, Number.POSITIVE_INFINITY)).toThrow(RunError);
    expect(() => means.add({ 'loss/policy': '1' } as never)).toThrow('loss/policy is "1", must be a number');
  });
});

describe('weightedMean', () => {
  it('is Σwv / Σw, and NaN without weight', () => {
    expect(weightedMean([1, 4], [2, 1])).toBe(2);
    expect(weightedMean(Float32Array.of(Number.NaN, 3), [0, 5])).toBe(3);
    expect(weightedMean([], [])).toBeNaN();
    expect(() => weightedMean([1], [])).toThrow('1 values and 0 weights');
  });
});

describe('RunningStats', () => {
  it('agrees with two passes over the data', () => {
    fc.assert(
      fc.property(fc.array(finite, { minLength: 1 }), values => {
        const stats = new RunningStats().addAll(values);
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
        expect(stats.count).toBe(values.length);
        expect(stats.mean).toBeCloseTo(mean, 5);
        expect(Math.abs(stats.variance - variance)).toBeLessThan(1e-9 * (1 + variance) + 1e-3);
        expect([stats.min, stats.max]).toEqual([Math.min(...values), Math.max(...values)]);
      }),
    );
  });

  it('keeps the spread of values far from zero', () => {
    const stats = new RunningStats().addAll([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]);
    expect(stats.variance).toBeCloseTo(22.5, 9);
  });

  it('merges to what all values give', () => {
    fc.assert(
      fc.property(fc.array(finite), fc.array(finite), (a, b) => {
        const merged = new RunningStats().addAll(a).merge(new RunningStats().addAll(b));
        const all = new RunningStats().addAll([...a, ...b]);
        expect(merged.count).toBe(all.count);
        expect(merged.mean).toBeCloseTo(all.mean, 5);
        if (all.count > 0)
          expect(merged.variance / (1 + all.variance)).toBeCloseTo(all.variance / (1 + all.variance), 6);
        expect([merged.min, merged.max]).toEqual([all.min, all.max]);
      }),
    );
  });

  it('goes on after JSON as if nothing had been, to the bit', () => {
    fc.assert(
      fc.property(fc.array(finite), fc.array(finite), (a, b) => {
        const stats = new RunningStats().addAll(a);
        const restored = RunningStats.fromState(JSON.parse(encodeJson(stats.state(), 'state')));
        expect(restored.addAll(b).state()).toEqual(stats.addAll(b).state());
      }),
    );
    expect(new RunningStats().variance).toBeNaN();
    for (const state of [null, {}, { count: 1, mean: 0, m2: 0, min: null, max: null }, { count: -1 }, 'x']) {
      expect(() => RunningStats.fromState(state)).toThrow(RunError);
    }
  });

  it('shows NaN', () => {
    const stats = new RunningStats().addAll([1, Number.NaN, 2]);
    expect([stats.mean, stats.variance, stats.min, stats.max]).toEqual([NaN, NaN, NaN, NaN]);
  });
});

describe('explainedVariance', () => {
  it('is 1 for perfect, 0 for the mean, negative for worse, NaN without variation', () => {
    expect(explainedVariance([1, 2, 3], [1, 2, 3])).toBe(1);
    expect(explainedVariance([2, 2, 2], [1, 2, 3])).toBe(0);
    expect(explainedVariance([3, 2, 1], [1, 2, 3])).toBe(-3);
    expect(explainedVariance([11, 12, 13], [1, 2, 3])).toBe(1);
    expect(explainedVariance([1, 2], [5, 5])).toBeNaN();
    expect(() => explainedVariance([1], [1, 2])).toThrow('1 predictions and 2 targets');
  });
});

describe('EpisodeStats', () => {
  it('reports means of an iteration and the best of the run', () => {
    const episodes = new EpisodeStats();
    expect(episodes.take()).toEqual({ 'episode/count': 0 });
    episodes.add(10, 5);
    episodes.add(20, 15);
    expect(episodes.take()).toEqual({
      'episode/count': 2,
      'episode/return': 15,
      'episode/length': 10,
      'episode/return_best': 20,
    });
    expect(episodes.take()).toEqual({ 'episode/count': 0, 'episode/return_best': 20 });
    episodes.add(-5, 1);
    expect(episodes.take()).toMatchObject({ 'episode/return': -5, 'episode/return_best': 20 });
  });

  it('remembers the best over a resume, and takes no NaN for it', () => {
    const episodes = new EpisodeStats();
    expect(episodes.state()).toEqual({ best: null });
    episodes.add(Number.NaN, 1);
    expect(episodes.state()).toEqual({ best: null });
    episodes.add(-3, 1);
    episodes.add(Number.NaN, 1);
    expect(episodes.take()).toMatchObject({ 'episode/return': Number.NaN, 'episode/return_best': -3 });
    const resumed = new EpisodeStats(JSON.parse(JSON.stringify(episodes.state())));
    resumed.add(-4, 1);
    expect(resumed.take()['episode/return_best']).toBe(-3);
  });
});
