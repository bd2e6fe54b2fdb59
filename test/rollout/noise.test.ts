/** Noise that remembers is still standard normal, and goes on from a checkpoint to the bit. */
import { describe, expect, it } from 'vitest';
import { categorical, composite, gaussian } from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';
import { ActionNoise } from '../../src/rollout/noise.ts';

/** (steps, envs·noiseSize) draws. */
function draws(correlation: number, steps: number, seed = 1): Float32Array[] {
  const noise = new ActionNoise(gaussian(2), 3, correlation);
  const rng = new Rng(seed);
  return Array.from({ length: steps }, () => {
    const out = new Float32Array(6);
    noise.fill(rng, out);
    return out;
  });
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** Correlation of column i with column j, `lag` steps later; all columns have mean 0 and variance 1. */
const product = (steps: readonly Float32Array[], i: number, j: number, lag: number): number =>
  mean(steps.slice(lag).map((row, t) => row[j] * steps[t][i]));

describe('ActionNoise', () => {
  it.each([0.5, 0.9])('correlation %f: each number standard normal, the next ρ like it, others not', rho => {
    const steps = draws(rho, 20_000);
    for (let i = 0; i < 6; i++) {
      expect(mean(steps.map(row => row[i]))).toBeCloseTo(0, 0);
      expect(Math.abs(product(steps, i, i, 0) - 1)).toBeLessThan(0.1);
      expect(Math.abs(product(steps, i, i, 1) - rho)).toBeLessThan(0.1);
      expect(Math.abs(product(steps, i, i, 3) - rho ** 3)).toBeLessThan(0.15);
      expect(Math.abs(product(steps, i, (i + 1) % 6, 0))).toBeLessThan(0.1);
    }
    // Kurtosis: a mixture of anything but normals would show here.
    expect(Math.abs(mean(steps.map(row => row[0] ** 4)) - 3)).toBeLessThan(0.4);
  });

  it('starts as wide as it goes on', () => {
    const firsts = Array.from({ length: 3000 }, (_, s) => draws(0.9, 1, s)[0][0]);
    expect(Math.abs(mean(firsts.map(x => x * x)) - 1)).toBeLessThan(0.1);
  });

  it('without a correlation it is the noise of the distribution, to the bit', () => {
    for (const distribution of [gaussian(2), categorical(3), composite([gaussian(1), categorical(2)])]) {
      const [out, plain] = [0, 0].map(() => new Float32Array(3 * distribution.noiseSize));
      new ActionNoise(distribution, 3, 0).fill(new Rng(4), out);
      distribution.fillNoise(new Rng(4), plain);
      expect([...out]).toEqual([...plain]);
    }
  });

  it('comes back from JSON to the bit', () => {
    const noise = new ActionNoise(gaussian(2), 3, 0.8);
    const rng = new Rng(5);
    const out = new Float32Array(6);
    expect(noise.state()).toBeNull();
    for (let i = 0; i < 7; i++) noise.fill(rng, out);
    const back = new ActionNoise(gaussian(2), 3, 0.8);
    back.restore(JSON.parse(JSON.stringify(noise.state())));
    const other = Rng.fromState(rng.state());
    const again = new Float32Array(6);
    for (let i = 0; i < 5; i++) {
      noise.fill(rng, out);
      back.fill(other, again);
      expect([...again]).toEqual([...out]);
    }
  });

  it('of a run that had not begun begins anew, whatever came before', () => {
    const noise = new ActionNoise(gaussian(2), 3, 0.8);
    const out = new Float32Array(6);
    noise.fill(new Rng(5), out);
    noise.restore(null);
    expect(noise.state()).toBeNull();
    noise.fill(new Rng(6), out);
    expect([...out]).toEqual([...draws(0.8, 1, 6)[0]]);
  });

  it('refuses a state of another size, and a correlation where nothing can remember', () => {
    expect(() => new ActionNoise(gaussian(2), 3, 0.5).restore([1, 2])).toThrow(
      'action noise: the state has 2 numbers, 6 are needed',
    );
    expect(() => new ActionNoise(categorical(2), 3, 0.5)).toThrow(/noiseCorrelation 0.5 has no effect/);
  });
});
