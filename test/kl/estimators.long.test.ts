import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compile, evaluate, Graph, grad, reduceSum } from '../../src/engine/index.ts';
import {
  estimateKl,
  gaussian,
  type KlEstimator,
  k1,
  k2,
  k3,
  klEstimators,
  LOG_RATIO_LIMIT,
} from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';

const names: readonly KlEstimator[] = ['k1', 'k2', 'k3'];
const params = (mean: number[], std: number[]): number[] => [...mean, ...std.map(Math.log)];

/** log new and log old of samples from old. */
function logProbs(
  old: number[],
  next: number[],
  n: number,
  rng: Rng,
): { logNew: Float64Array; logOld: Float64Array } {
  const dist = gaussian(old.length / 2);
  const [noise, action] = [new Float64Array(dist.noiseSize), new Float64Array(dist.actionSize)];
  const [logNew, logOld] = [new Float64Array(n), new Float64Array(n)];
  for (let i = 0; i < n; i++) {
    dist.fillNoise(rng, noise);
    dist.sample(old, noise, action);
    logNew[i] = dist.logProb(next, action);
    logOld[i] = dist.logProb(old, action);
  }
  return { logNew, logOld };
}

describe('estimators of one sample', () => {
  it('are their formulas', () => {
    expect([k1(0.5), k2(0.5), k3(0.5)]).toEqual([-0.5, 0.125, Math.expm1(0.5) - 0.5]);
    expect(k1(-2)).toBe(2);
    expect([k1(0), k2(0), k3(0)]).toEqual([0, 0, 0]);
  });

  it('k3 is never negative, and r²/2 to all digits near 0', () => {
    fc.assert(fc.property(fc.double({ noNaN: true }), r => k3(r) >= 0 && Number.isFinite(k3(r))));
    for (let e = -300; e <= -6; e += 3)
      expect(Math.abs(k3(10 ** e) / k2(10 ** e) - 1) <= 10 ** e || e < -150).toBe(true);
  });

  it('k3 sees r within its limit, k1 and k2 see it all', () => {
    expect(LOG_RATIO_LIMIT).toBe(20);
    expect(k3(1e300)).toBe(Math.expm1(20) - 20);
    expect(k3(-1e300)).toBe(Math.expm1(-20) + 20);
    expect(k1(-1e4)).toBe(1e4);
    expect(k2(1e4)).toBe(5e7);
  });

  it('NaN stays NaN', () => {
    for (const name of names) expect(klEstimators[name].plain(Number.NaN)).toBeNaN();
  });
});

describe('estimates from a batch', () => {
  const old = params([0, 0.5], [0.5, 0.8]);
  const next = params([0.05, 0.45], [0.55, 0.75]);
  const exact = gaussian(2).kl(old, next);

  it.each(['k1', 'k3'] as const)('%s converges on the exact KL like 1 / sqrt(n)', name => {
    const rng = new Rng(1);
    const sizes = [250, 2500, 25_000];
    const rms = sizes.map(n => {
      let sum = 0;
      for (let i = 0; i < 40; i++) {
        const { logNew, logOld } = logProbs(old, next, n, rng);
        sum += (estimateKl(name, logNew, logOld) - exact) ** 2;
      }
      return Math.sqrt(sum / 40);
    });
    // Ten times the samples: sqrt(10) = 3.2 times nearer, within what 40 repeats can tell.
    for (const i of [0, 1]) {
      expect(rms[i] / rms[i + 1]).toBeGreaterThan(2);
      expect(rms[i] / rms[i + 1]).toBeLessThan(5);
    }
    expect(rms[2] / exact).toBeLessThan(0.2);
  });

  it('k3 varies less than k1', () => {
    const rng = new Rng(2);
    const { logNew, logOld } = logProbs(old, next, 20_000, rng);
    const variance = (f: (r: number) => number): number => {
      const values = logNew.map((v, i) => f(v - logOld[i]));
      const mean = values.reduce((a, b) => a + b) / values.length;
      return values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length;
    };
    expect(variance(k3)).toBeLessThan(variance(k1) / 5);
  });

  it('k2 is close for near distributions, and visibly biased for far ones', () => {
    const rng = new Rng(3);
    const near = logProbs(old, next, 200_000, rng);
    expect(Math.abs(estimateKl('k2', near.logNew, near.logOld) / exact - 1)).toBeLessThan(0.1);
    const farNext = params([0.6, -0.3], [0.8, 0.5]);
    const far = logProbs(old, farNext, 50_000, rng);
    expect(
      Math.abs(estimateKl('k2', far.logNew, far.logOld) / gaussian(2).kl(old, farNext) - 1),
    ).toBeGreaterThan(0.2);
  });

  it('estimates KL(old ‖ new), not KL(new ‖ old)', () => {
    // Computed independently of this code: 1.855 and 2.955.
    const first = params([0, 0.5, -0.3, 1, 0.2], [0.5, 0.8, 0.3, 1.2, 0.6]);
    const second = params([0.3, 0.9, 0.1, 0.5, 0.6], [0.8, 0.5, 0.6, 0.9, 0.8]);
    const { logNew, logOld } = logProbs(first, second, 100_000, new Rng(4));
    expect(estimateKl('k1', logNew, logOld)).toBeCloseTo(1.855, 1);
  });

  it('stays finite for huge log-ratios', () => {
    for (const name of names) expect(Number.isFinite(estimateKl(name, [1e4, -1e4], [-1e4, 1e4]))).toBe(true);
  });

  it('refuses none and unequal numbers of samples', () => {
    expect(() => estimateKl('k1', [], [])).toThrow(/^estimateKl: 0 samples, at least 1 is needed/);
    expect(() => estimateKl('k1', [0, 1], [0])).toThrow(
      'estimateKl: 2 new log-probabilities and 1 old ones: pass one of each a sample',
    );
  });
});

describe('in a graph', () => {
  function graphOf(n: number): Graph {
    const g = new Graph();
    const r = g.input('r', [n, 1]);
    for (const name of names) {
      const value = g.output(name, klEstimators[name].graph(r));
      g.output(`d${name}`, grad(reduceSum(value), [r])[0]);
    }
    return g;
  }

  const rng = new Rng(5);
  const ratios = Float32Array.from({ length: 4000 }, (_, i) => 10 ** (-9 + (i % 11)) * rng.normal());

  it('agrees with the plain functions, compiled or not; k3 is never negative', async () => {
    const g = graphOf(ratios.length);
    const exact = evaluate(g, { r: ratios });
    const single = await (await compile(g, { device: 'cpu', threads: 1 })).run({ r: ratios });
    for (const name of names) {
      const { plain } = klEstimators[name];
      ratios.forEach((r, i) => {
        const truth = plain(r);
        expect(Math.abs(exact[name].data[i] - truth)).toBeLessThanOrEqual(1e-12 * (1 + Math.abs(truth)));
        expect(Math.abs(Number(single[name][i]) - truth)).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(truth)));
        if (name === 'k3') {
          expect(exact.k3.data[i]).toBeGreaterThanOrEqual(0);
          expect(Number(single.k3[i])).toBeGreaterThanOrEqual(0);
        }
      });
    }
  });

  it('has the derivatives -1, r and e^r - 1', () => {
    const out = evaluate(graphOf(5), { r: [-3, -0.1, 0.2, 1, 25] });
    expect([...out.dk1.data]).toEqual([-1, -1, -1, -1, -1]);
    expect([...out.dk2.data]).toEqual([-3, -0.1, 0.2, 1, 25]);
    [-3, -0.1, 0.2, 1].forEach((r, i) => {
      expect(out.dk3.data[i]).toBeCloseTo(Math.expm1(r), 12);
    });
    expect(out.dk3.data[4]).toBe(0); // beyond the limit
  });

  it('stays finite for huge log-ratios with its derivatives, and lets NaN through', async () => {
    const r = Float32Array.from([1e4, -1e4, 1e18, -1e18, 88, -88, 20, -20, 0, Number.NaN]);
    const program = await compile(graphOf(r.length), { device: 'cpu', threads: 1, checkFeeds: false });
    const out = await program.run({ r });
    for (const [name, values] of Object.entries(out)) {
      r.forEach((ratio, i) => {
        if (!Number.isNaN(ratio))
          expect(Number.isFinite(Number(values[i])), `${name} of ${ratio}`).toBe(true);
        else if (!name.startsWith('d')) expect(values[i]).toBeNaN();
      });
    }
  });
});
