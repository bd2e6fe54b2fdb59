/** Running normalisation against two passes over everything that was seen. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { ObservationNormaliser, RewardNormaliser, RunningMoments } from '../../src/rollout/normalise.ts';
import { seed } from '../engine/support/check.ts';

fc.configureGlobal({ seed });

/** Mean and population variance of each column, in two passes. */
function twoPass(rows: readonly (readonly number[])[]): { mean: number[]; variance: number[] } {
  const mean = rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
  const variance = mean.map((m, i) => rows.reduce((sum, row) => sum + (row[i] - m) ** 2, 0) / rows.length);
  return { mean, variance };
}

const throughJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('RunningMoments', () => {
  const value = fc.float({ min: -1000, max: 1000, noNaN: true });
  const rows = fc
    .integer({ min: 1, max: 4 })
    .chain(size =>
      fc.array(fc.array(value, { minLength: size, maxLength: size }), { minLength: 1, maxLength: 40 }),
    );

  it('are those of two passes, whatever the batches are', () => {
    fc.assert(
      fc.property(rows, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (given, batches) => {
        const size = given[0].length;
        const moments = new RunningMoments(size);
        for (let at = 0, b = 0; at < given.length; b++) {
          const batch = given.slice(at, at + batches[b % batches.length]);
          moments.update(Float32Array.from(batch.flat()));
          at += batch.length;
        }
        const { mean, variance } = twoPass(given);
        expect(moments.count).toBe(given.length);
        for (let i = 0; i < size; i++) {
          expect(Math.abs(moments.mean[i] - mean[i])).toBeLessThan(1e-9 * (1 + Math.abs(mean[i])));
          expect(Math.abs(moments.variance(i) - variance[i])).toBeLessThan(1e-9 * (1 + variance[i]));
        }
      }),
    );
  });

  it('have the same bits whatever the batches are', () => {
    const values = new Float32Array(60);
    new Rng(1).fillNormal(values);
    const states = [1, 2, 5, 10, 30].map(batch => {
      const moments = new RunningMoments(2);
      for (let at = 0; at < values.length; at += 2 * batch)
        moments.update(values.subarray(at, at + 2 * batch));
      return JSON.stringify(moments.state());
    });
    expect(new Set(states).size).toBe(1);
  });

  it('keep their digits far from 0, where the mean of squares minus the square of the mean has none', () => {
    const moments = new RunningMoments(1);
    const rng = new Rng(2);
    const rows = Array.from({ length: 5000 }, () => [1e9 + rng.normal()]);
    moments.update(Float64Array.from(rows.flat()));
    const { variance } = twoPass(rows);
    expect(moments.variance(0) / variance[0]).toBeCloseTo(1, 6);
  });

  it('of parts, merged, are those of all, and of no part those of the others', () => {
    fc.assert(
      fc.property(
        rows,
        fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 6 }),
        (given, sizes) => {
          const size = given[0].length;
          const merged = new RunningMoments(size);
          let at = 0;
          for (const [p, count] of sizes.entries()) {
            const end = p === sizes.length - 1 ? given.length : at + count;
            const part = new RunningMoments(size);
            part.update(Float32Array.from(given.slice(at, end).flat()));
            merged.merge(part.state());
            at = Math.min(end, given.length);
          }
          const { mean, variance } = twoPass(given);
          expect(merged.count).toBe(given.length);
          for (let i = 0; i < size; i++) {
            expect(Math.abs(merged.mean[i] - mean[i])).toBeLessThan(1e-9 * (1 + Math.abs(mean[i])));
            expect(Math.abs(merged.variance(i) - variance[i])).toBeLessThan(1e-9 * (1 + variance[i]));
          }
        },
      ),
    );
  });

  it('merge in closed form: 1, 3 and 5, 7 are four numbers of mean 4 and variance 5', () => {
    const [one, two] = [
      [1, 3],
      [5, 7],
    ].map(values => {
      const moments = new RunningMoments(1);
      moments.update(Float64Array.from(values));
      return moments;
    });
    one.merge(two.state());
    expect(one.state()).toEqual({ count: 4, mean: [4], m2: [20] });
    expect(() => one.merge(new RunningMoments(2).state())).toThrow(
      /the state is for 2 values, this one has 1/,
    );
  });

  it('change nothing before anything was seen', () => {
    expect(new RunningMoments(3).variance(1)).toBe(1);
  });

  it('come back from JSON to the bit, and go on the same way', () => {
    fc.assert(
      fc.property(rows, rows, (first, then) => {
        const size = first[0].length;
        const more = Float32Array.from(then.flat()).subarray(0, Math.floor(then.flat().length / size) * size);
        const moments = new RunningMoments(size);
        moments.update(Float32Array.from(first.flat()));
        const back = new RunningMoments(size);
        back.restore(throughJson(moments.state()));
        for (const both of [moments, back]) both.update(more);
        expect(back.state()).toEqual(moments.state());
        expect(back.mean.every((m, i) => Object.is(m, moments.mean[i]))).toBe(true);
      }),
    );
  });

  it('do not hand out what they go on changing', () => {
    const moments = new RunningMoments(1);
    moments.update(Float32Array.of(1, 2));
    const state = moments.state();
    const before = JSON.stringify(state);
    moments.update(Float32Array.of(50));
    expect(JSON.stringify(state)).toBe(before);
  });

  it('refuse a state of another size, and keep their own', () => {
    const moments = new RunningMoments(2);
    moments.update(Float32Array.of(1, 2, 3, 4));
    const before = moments.state();
    expect(() => moments.restore(new RunningMoments(3).state())).toThrow(
      'normaliser: the state is for 3 values, this one has 2',
    );
    expect(() => moments.restore({ count: 1, mean: [0, 0], m2: [0] })).toThrow(RangeError);
    expect(moments.state()).toEqual(before);
  });

  // A fault that was here: rows that are not whole read past the end, and NaN stays for good.
  it('refuse rows that are not whole', () => {
    const moments = new RunningMoments(2);
    expect(() => moments.update(Float32Array.of(1, 2, 3))).toThrow(/3 .*2/);
  });

  // A fault that was here: one such value makes every later observation NaN, and is saved with the checkpoint.
  it('are not poisoned for good by one value that is not finite', () => {
    const moments = new RunningMoments(1);
    try {
      moments.update(Float32Array.of(1, Number.POSITIVE_INFINITY, 3));
    } catch {
      // To refuse is right as well.
    }
    moments.update(Float32Array.of(2));
    expect(moments.mean[0]).toBeCloseTo(2, 6);
    expect(Number.isFinite(moments.variance(0))).toBe(true);
  });
});

describe('ObservationNormaliser', () => {
  it('gives mean 0 and variance 1 over what it has seen', () => {
    const rng = new Rng(3);
    const raw = Float32Array.from({ length: 3000 }, (_, i) => (i % 3) * 50 + 10 ** (i % 3) * rng.normal());
    const normaliser = new ObservationNormaliser(3);
    normaliser.moments.update(raw);
    const out = new Float32Array(raw.length);
    normaliser.apply(raw, out);
    const rows = Array.from({ length: 1000 }, (_, r) => Array.from(out.subarray(3 * r, 3 * r + 3)));
    const { mean, variance } = twoPass(rows);
    for (let i = 0; i < 3; i++) {
      expect(mean[i]).toBeCloseTo(0, 4);
      expect(variance[i]).toBeCloseTo(1, 3);
    }
  });

  it('does not learn from what it is applied to', () => {
    const normaliser = new ObservationNormaliser(1);
    normaliser.moments.update(Float32Array.of(1, 3));
    const before = normaliser.moments.state();
    normaliser.apply(Float32Array.of(100, 200), new Float32Array(2));
    expect(normaliser.moments.state()).toEqual(before);
  });

  it('holds values within ±10, and within another clip', () => {
    const raw = Float32Array.of(1e6, -1e6, 0);
    for (const [normaliser, clip] of [
      [new ObservationNormaliser(1), 10],
      [new ObservationNormaliser(1, 2), 2],
    ] as const) {
      normaliser.moments.update(Float32Array.of(-1, 1));
      const out = new Float32Array(3);
      normaliser.apply(raw, out);
      expect(Array.from(out)).toEqual([clip, -clip, 0]);
    }
  });

  it('leaves a feature that never varies at 0, and an unseen one as it is', () => {
    const normaliser = new ObservationNormaliser(1);
    const out = new Float32Array(1);
    normaliser.apply(Float32Array.of(3), out);
    expect(out[0]).toBeCloseTo(3, 6);
    normaliser.moments.update(Float32Array.of(7, 7, 7));
    normaliser.apply(Float32Array.of(7), out);
    expect(out[0]).toBe(0);
  });

  it('says what it multiplies by', () => {
    const normaliser = new ObservationNormaliser(2);
    const raw = Float32Array.of(1, 10, 2, 30, 4, 80);
    normaliser.moments.update(raw);
    const [out, scales] = [new Float32Array(6), normaliser.scales()];
    normaliser.apply(raw, out);
    out.forEach((value, at) => {
      expect(value).toBeCloseTo((raw[at] - normaliser.moments.mean[at % 2]) * scales[at % 2], 5);
    });
  });

  // A fault that was here: writes as much as there is room for, and leaves the rest of `out` as it was.
  it('refuses arrays of different or wrong lengths', () => {
    const normaliser = new ObservationNormaliser(2);
    expect(() => normaliser.apply(new Float32Array(4), new Float32Array(2))).toThrow(RangeError);
  });
});

describe('RewardNormaliser', () => {
  const gamma = 0.9;

  /** Rewards and ends of each environment through the definition: the returns that the std is taken of. */
  function discounted(rewards: readonly number[][], done: readonly number[][]): number[] {
    const running = rewards[0].map(() => 0);
    return rewards.flatMap((row, t) =>
      row.map((reward, n) => {
        running[n] = running[n] * gamma + reward;
        const now = running[n];
        if (done[t][n] === 1) running[n] = 0;
        return now;
      }),
    );
  }

  it('divides by the std of the discounted return, which ends with its episode', () => {
    const rng = new Rng(4);
    const [steps, envs] = [200, 3];
    const rewards = Array.from({ length: steps }, () => Array.from({ length: envs }, () => 5 * rng.normal()));
    const done = rewards.map(row => row.map(() => (rng.uniform() < 0.1 ? 1 : 0)));
    const normaliser = new RewardNormaliser(envs, gamma);
    const out = new Float32Array(envs);
    rewards.forEach((row, t) => {
      normaliser.apply(Float64Array.from(row), Uint8Array.from(done[t]), out);
      const { variance } = twoPass(
        discounted(rewards.slice(0, t + 1), done.slice(0, t + 1)).map(value => [value]),
      );
      row.forEach((reward, n) => {
        const wanted = Math.min(10, Math.max(-10, reward / Math.sqrt(variance[0] + 1e-8)));
        expect(out[n]).toBeCloseTo(wanted, 4);
      });
    });
  });

  it('keeps the sign and the zero of a reward: the mean has meaning', () => {
    const normaliser = new RewardNormaliser(2, gamma);
    const out = new Float32Array(2);
    for (let i = 0; i < 50; i++) normaliser.apply(Float64Array.of(3, 5), Uint8Array.of(0, 0), out);
    expect(out[0]).toBeGreaterThan(0);
    normaliser.apply(Float64Array.of(0, -5), Uint8Array.of(0, 0), out);
    expect(out[0]).toBe(0);
    expect(out[1]).toBeLessThan(0);
  });

  it('holds rewards within ±10', () => {
    const normaliser = new RewardNormaliser(2, gamma);
    const out = new Float32Array(2);
    const rng = new Rng(5);
    for (let i = 0; i < 20; i++)
      normaliser.apply(Float64Array.of(rng.normal(), rng.normal()), Uint8Array.of(0, 0), out);
    normaliser.apply(Float64Array.of(1e4, -1e4), Uint8Array.of(1, 1), out);
    expect(Math.abs(out[0])).toBeLessThanOrEqual(10);
    expect(Math.abs(out[1])).toBeLessThanOrEqual(10);
  });

  it('does not depend on the scale of the rewards', () => {
    const outs = [1, 1000].map(scale => {
      const normaliser = new RewardNormaliser(1, gamma);
      const rng = new Rng(6);
      const out = new Float32Array(1);
      return Array.from({ length: 100 }, () => {
        normaliser.apply(Float64Array.of(scale * rng.normal()), Uint8Array.of(0), out);
        return out[0];
      });
    });
    outs[0].slice(5).forEach((value, i) => {
      expect(value).toBeCloseTo(outs[1][i + 5], 4);
    });
  });

  it('comes back from JSON to the bit, in the middle of episodes', () => {
    const rng = new Rng(7);
    const draw = (): [Float64Array, Uint8Array] => [
      Float64Array.of(rng.normal(), rng.normal()),
      Uint8Array.of(rng.integer(2), 0),
    ];
    const normaliser = new RewardNormaliser(2, gamma);
    const out = new Float32Array(2);
    for (let i = 0; i < 30; i++) normaliser.apply(...draw(), out);
    const back = new RewardNormaliser(2, gamma);
    back.restore(throughJson(normaliser.state()));
    const other = new Float32Array(2);
    for (let i = 0; i < 30; i++) {
      const given = draw();
      normaliser.apply(...given, out);
      back.apply(...given, other);
      expect(Array.from(other)).toEqual(Array.from(out));
    }
    expect(back.state()).toEqual(normaliser.state());
  });

  it('refuses a state of another number of environments', () => {
    const normaliser = new RewardNormaliser(2, gamma);
    expect(() => normaliser.restore(new RewardNormaliser(3, gamma).state())).toThrow(
      'reward normaliser: the state is for 3 environments, this one has 2',
    );
  });

  // A fault that was here: reads past the end; NaN stays for good.
  it('refuses rewards of another number of environments', () => {
    const normaliser = new RewardNormaliser(2, gamma);
    expect(() => normaliser.apply(Float64Array.of(1), Uint8Array.of(0), new Float32Array(2))).toThrow(
      RangeError,
    );
  });

  // A fault that was here: the return becomes infinite, its variance NaN, and every reward from then on NaN.
  it('is not poisoned for good by one reward that is not finite', () => {
    const normaliser = new RewardNormaliser(1, gamma);
    const out = new Float32Array(1);
    for (const reward of [1, -1, Number.POSITIVE_INFINITY, 1, -1]) {
      try {
        normaliser.apply(Float64Array.of(reward), Uint8Array.of(1), out);
      } catch {
        // To refuse is right as well.
      }
    }
    expect(Number.isFinite(out[0])).toBe(true);
  });
});

describe('frozen', () => {
  it('observations are normalised by what was seen before, and what is seen is apart', () => {
    const before = new ObservationNormaliser(1);
    before.moments.update(Float32Array.of(1, 3));
    const state = before.moments.state();
    const frozen = new ObservationNormaliser(1, undefined, state);
    frozen.moments.update(Float32Array.of(100, 200));
    const [out, wanted] = [new Float32Array(1), new Float32Array(1)];
    frozen.apply(Float32Array.of(2.5), out);
    before.apply(Float32Array.of(2.5), wanted);
    expect(out).toEqual(wanted);
    expect(out[0]).toBeCloseTo(0.5, 6);
    expect(frozen.scales()).toEqual(before.scales());
    expect(frozen.moments.state()).toEqual({ count: 2, mean: [150], m2: [5000] });
  });

  it('rewards are divided by the std of before, and the returns go on', () => {
    const frozen = new RewardNormaliser(2, 0.5, undefined, { count: 2, mean: [0], m2: [8] });
    frozen.restore({ moments: { count: 0, mean: [0], m2: [0] }, returns: [4, 0] });
    const out = new Float32Array(2);
    frozen.apply(Float64Array.of(1, 6), Uint8Array.of(0, 1), out);
    expect(out[0]).toBeCloseTo(0.5, 6);
    expect(out[1]).toBeCloseTo(3, 6);
    // Returns 4 / 2 + 1 = 3 and 6; the second one's episode has ended.
    expect(frozen.state()).toEqual({ moments: { count: 2, mean: [4.5], m2: [4.5] }, returns: [3, 0] });
  });
});
