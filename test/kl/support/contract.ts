import { describe, expect, it } from 'vitest';
import { evaluate, Graph } from '../../../src/engine/index.ts';
import type { Distribution } from '../../../src/kl/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { type Batch, batchGraph, compiled, randomBatch, reference, row } from './batch.ts';

export interface ContractOptions {
  /** All actions, of a distribution that has finitely many. */
  readonly actions?: readonly (readonly number[])[];
  /** Parameter values that are far out but allowed; rows are drawn from them. */
  readonly extremes: readonly number[];
}

/** Distances between p and q from below float64's resolution to far apart. */
const DISTANCES = [1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1, 3];
const near = (i: number): number => DISTANCES[i % DISTANCES.length];

/** What every distribution promises. */
export function testDistribution(name: string, factory: () => Distribution, options: ContractOptions): void {
  const dist = factory();
  const { paramSize, actionSize, noiseSize } = dist;
  const randomRow = (rng: Rng, scale: number): Float64Array =>
    new Float64Array(paramSize).map(() => scale * rng.normal());
  const isDiscrete = options.actions !== undefined;

  describe(`${name}: plain`, () => {
    it('says its sizes and name', () => {
      for (const size of [paramSize, actionSize, noiseSize])
        expect(Number.isInteger(size) && size > 0).toBe(true);
      expect(dist.name).toMatch(/^[a-zA-Z]+\(.+\)$/);
      expect(factory().name).toBe(dist.name);
    });

    it('KL is never negative, and exactly 0 for equal parameters', () => {
      const rng = new Rng(1);
      for (let i = 0; i < 20_000; i++) {
        const p = randomRow(rng, [0.1, 1, 3, 10][i % 4]);
        const q = p.map(v => v + near(i) * rng.normal());
        const kl = dist.kl(p, q);
        if (!(kl >= 0)) expect.fail(`KL ${kl} of [${p}] and [${q}]`);
        if (dist.kl(p, p.slice()) !== 0) expect.fail(`KL ${dist.kl(p, p.slice())} of [${p}] and itself`);
      }
    });

    it('KL grows with the square of a small distance, smoothly down to 1e-7', () => {
      // A quadratic form at heart: halving the distance quarters it. Rounding noise would show here first.
      const rng = new Rng(2);
      for (let i = 0; i < 300; i++) {
        const p = randomRow(rng, 1);
        const direction = randomRow(rng, 1);
        const at = (distance: number): number =>
          dist.kl(
            p,
            p.map((v, k) => v + distance * direction[k]),
          );
        const curvature = at(1e-4) / 1e-8;
        for (const distance of [1e-5, 1e-6, 1e-7]) {
          // p + distance is itself rounded: 1e-16 in 1e-7.
          expect(at(distance) / distance ** 2 / curvature).toBeCloseTo(1, 2);
        }
      }
    });

    it('takes arrays, typed arrays and subarrays alike, and writes to each', () => {
      const rng = new Rng(3);
      const { p, q, noise, action } = randomBatch(dist, rng, 3, 1, () => 0.3);
      for (let i = 0; i < 3; i++) {
        const forms = [
          (v: Float64Array, size: number) => row(v, i, size),
          (v: Float64Array, size: number) => [...row(v, i, size)],
          (v: Float64Array, size: number) => Float32Array.from(row(v, i, size)),
          (v: Float64Array, size: number) => v.subarray(i * size, (i + 1) * size),
        ];
        const results = forms.map(form => {
          const sampled = form(new Float64Array(action.length), actionSize);
          const top = form(new Float64Array(action.length), actionSize);
          dist.sample(form(p, paramSize), form(noise, noiseSize), sampled);
          dist.mode(form(p, paramSize), top);
          return [
            ...Array.from(sampled, Math.fround),
            ...Array.from(top, Math.fround),
            dist.logProb(form(p, paramSize), form(action, actionSize)),
            dist.entropy(form(p, paramSize)),
            dist.kl(form(p, paramSize), form(q, paramSize)),
          ];
        });
        for (const result of results) expect(result).toEqual(results[0]);
      }
    });

    it('fills noise row by row, as many rows as fit', () => {
      for (const make of [(n: number) => new Float32Array(n), (n: number) => new Float64Array(n)]) {
        const all = make(5 * noiseSize);
        dist.fillNoise(new Rng(4), all);
        const rng = new Rng(4);
        for (let i = 0; i < 5; i++) {
          const one = make(noiseSize);
          dist.fillNoise(rng, one);
          expect([...one]).toEqual([...all.subarray(i * noiseSize, (i + 1) * noiseSize)]);
        }
      }
      if (noiseSize > 1)
        expect(() => dist.fillNoise(new Rng(0), new Float32Array(noiseSize + 1))).toThrow(/whole rows/);
    });

    it('the mode is at least as likely as any sample', () => {
      const rng = new Rng(5);
      const { rows, p, action } = randomBatch(dist, rng, 500, 1.5, () => 0);
      const top = new Float64Array(actionSize);
      for (let i = 0; i < rows; i++) {
        const params = row(p, i, paramSize);
        dist.mode(params, top);
        const best = dist.logProb(params, top);
        for (const a of [row(action, i, actionSize), ...(options.actions ?? [])]) {
          if (!(best >= dist.logProb(params, a) - 1e-12))
            expect.fail(`[${a}] is likelier than the mode [${top}] of [${params}]`);
        }
      }
    });

    it('entropy is at most maxEntropy', () => {
      const rng = new Rng(6);
      for (let i = 0; i < 500; i++) {
        expect(dist.entropy(randomRow(rng, i % 7))).toBeLessThanOrEqual(dist.maxEntropy * (1 + 1e-15));
      }
      if (isDiscrete) expect(dist.entropy(new Float64Array(paramSize))).toBeCloseTo(dist.maxEntropy, 12);
      else expect(dist.maxEntropy).toBe(Number.POSITIVE_INFINITY);
    });

    it('logProb, entropy and KL average as their definitions say, over samples', () => {
      const rng = new Rng(7);
      const p = randomRow(rng, 0.7);
      const q = p.map(v => v + 0.2 * rng.normal());
      const n = 40_000;
      const noise = new Float64Array(noiseSize);
      const action = new Float64Array(actionSize);
      let [sumH, sumH2, sumKl, sumKl2] = [0, 0, 0, 0];
      for (let i = 0; i < n; i++) {
        dist.fillNoise(rng, noise);
        dist.sample(p, noise, action);
        const h = -dist.logProb(p, action);
        const k = -h - dist.logProb(q, action);
        sumH += h;
        sumH2 += h * h;
        sumKl += k;
        sumKl2 += k * k;
      }
      const sigma = (sum: number, sum2: number): number => Math.sqrt((sum2 / n - (sum / n) ** 2) / n);
      expect(Math.abs(sumH / n - dist.entropy(p))).toBeLessThan(4 * sigma(sumH, sumH2));
      expect(Math.abs(sumKl / n - dist.kl(p, q))).toBeLessThan(4 * sigma(sumKl, sumKl2));
    });

    if (options.actions) {
      const { actions } = options;

      it('probabilities sum to 1; entropy and KL are sums over all actions', () => {
        const rng = new Rng(8);
        for (let i = 0; i < 200; i++) {
          const p = randomRow(rng, [0.1, 1, 5][i % 3]);
          const q = randomRow(rng, [0.1, 1, 5][i % 3]);
          let [mass, entropy, kl] = [0, 0, 0];
          for (const action of actions) {
            const logP = dist.logProb(p, action);
            mass += Math.exp(logP);
            entropy -= Math.exp(logP) * logP;
            kl += Math.exp(logP) * (logP - dist.logProb(q, action));
          }
          expect(mass).toBeCloseTo(1, 12);
          expect(dist.entropy(p)).toBeCloseTo(entropy, 11);
          expect(dist.kl(p, q)).toBeCloseTo(kl, 11);
        }
      });

      it('samples each action as often as it is likely (chi-square)', () => {
        const rng = new Rng(9);
        const p = randomRow(rng, 0.7);
        const n = 60_000;
        const noise = new Float32Array(noiseSize);
        const action = new Float64Array(actionSize);
        const counts = new Map(actions.map(a => [a.join(), 0]));
        for (let i = 0; i < n; i++) {
          dist.fillNoise(rng, noise);
          dist.sample(p, noise, action);
          const key = action.join();
          if (!counts.has(key)) expect.fail(`sampled ${key}, which is no action`);
          counts.set(key, counts.get(key)! + 1);
        }
        let chi = 0;
        for (const a of actions) {
          const expected = n * Math.exp(dist.logProb(p, a));
          chi += (counts.get(a.join())! - expected) ** 2 / expected;
        }
        const freedom = Math.max(actions.length - 1, 1);
        expect(chi).toBeLessThan(freedom + 5 * Math.sqrt(2 * freedom) + 5);
      });
    }

    it('refuses rows of a wrong length, in one line', () => {
      const rowOf = (n: number): number[] => new Array<number>(n).fill(0);
      const [p, a, u] = [rowOf(paramSize), rowOf(actionSize), rowOf(noiseSize)];
      const wrong: [string, number, () => unknown][] = [
        ['params', paramSize, () => dist.logProb([...p, 0], a)],
        ['params', paramSize, () => dist.logProb(p.slice(1), a)],
        ['action', actionSize, () => dist.logProb(p, [...a, 0])],
        ['params', paramSize, () => dist.entropy([...p, 0])],
        ['p', paramSize, () => dist.kl(p.slice(1), p)],
        ['q', paramSize, () => dist.kl(p, [...p, 0])],
        ['params', paramSize, () => dist.sample([...p, 0], u, [...a])],
        ['noise', noiseSize, () => dist.sample(p, [...u, 0], [...a])],
        ['out', actionSize, () => dist.sample(p, u, [...a, 0])],
        ['params', paramSize, () => dist.mode([...p, 0], [...a])],
        ['out', actionSize, () => dist.mode(p, [])],
      ];
      for (const [what, size, call] of wrong) {
        expect(call).toThrow(`${dist.name}: ${what} has `);
        expect(call).toThrow(`numbers, not ${size}: pass one sample's row`);
        expect(call).toThrow(/^[^\n]+$/);
      }
    });

    it('answers a NaN with NaN, never with a plausible number', () => {
      const rng = new Rng(10);
      const { p, q, action } = randomBatch(dist, rng, 1, 1, () => 0.3);
      for (let k = 0; k < paramSize; k++) {
        expect(dist.kl(p.with(k, Number.NaN), q)).toBeNaN();
        expect(dist.kl(p, q.with(k, Number.NaN))).toBeNaN();
        expect(dist.logProb(p.with(k, Number.NaN), action)).toBeNaN();
      }
      if (isDiscrete) {
        const [noise, out] = [new Float64Array(noiseSize), new Float64Array(actionSize)];
        for (let k = 0; k < paramSize; k++) {
          expect(dist.entropy(p.with(k, Number.NaN))).toBeNaN();
          expect(() => dist.sample(p.with(k, Number.NaN), noise, out)).toThrow(/look for NaN upstream$/);
        }
        expect(() => dist.sample(p, noise.with(0, Number.NaN), out)).toThrow(/look for NaN upstream$/);
      }
    });
  });

  describe(`${name}: graph`, () => {
    const batch = randomBatch(dist, new Rng(11), 260, 1, near);

    it('has two axes everywhere', () => {
      const g = batchGraph(dist, 4);
      const shapes = Object.fromEntries([...g.outputs].map(([key, { shape }]) => [key, shape]));
      expect(shapes).toMatchObject({
        logProb: [4, 1],
        entropy: [4, 1],
        kl: [4, 1],
        sample: [4, actionSize],
        mode: [4, actionSize],
      });
    });

    it('agrees with the plain functions to 1e-12', () => {
      const out = reference(dist, batch);
      const action = new Float64Array(actionSize);
      forEachRow(dist, batch, (i, p, q, noise, a) => {
        expectNear(out.logProb[i], dist.logProb(p, a), 1e-12);
        expectNear(out.entropy[i], dist.entropy(p), 1e-12);
        expectNear(out.kl[i], dist.kl(p, q), 1e-12);
        dist.sample(p, noise, action);
        expectRowsNear(row(out.sample, i, actionSize), action, 1e-12);
        dist.mode(p, action);
        expectRowsNear(row(out.mode, i, actionSize), action, 1e-12);
      });
    });

    it('has the derivatives of the plain functions', () => {
      const out = reference(dist, batch);
      forEachRow(dist, batch, (i, p, q, _, a) => {
        expectDerivatives(row(out.dLogProb, i, paramSize), p, x => dist.logProb(x, a));
        expectDerivatives(row(out.dEntropy, i, paramSize), p, dist.entropy);
        expectDerivatives(row(out.dKlP, i, paramSize), p, x => dist.kl(x, q));
        expectDerivatives(row(out.dKlQ, i, paramSize), q, x => dist.kl(p, x));
      });
    });

    it('has the right derivatives where all parameters are 0, as after a zero initialisation', () => {
      const zeros = new Float64Array(paramSize);
      const action = new Float64Array(actionSize);
      const noise = new Float64Array(noiseSize).fill(0.3);
      dist.sample(zeros, noise, action);
      const q = randomRow(new Rng(12), 0.5);
      const out = reference(dist, { rows: 1, p: zeros, q, noise, action });
      const back = reference(dist, { rows: 1, p: q, q: zeros, noise, action });
      expectDerivatives(out.dLogProb, zeros, x => dist.logProb(x, action));
      expectDerivatives(out.dEntropy, zeros, dist.entropy);
      expectDerivatives(out.dKlP, zeros, x => dist.kl(x, q));
      expectDerivatives(back.dKlQ, zeros, x => dist.kl(q, x));
    });

    it('compiled, agrees to 1e-5 and samples the same actions', async () => {
      const [exact, got] = [reference(dist, batch), await compiled(dist, batch)];
      for (const key of Object.keys(exact) as (keyof typeof exact)[])
        expectRowsNear(got[key], exact[key], 1e-5, key);
    });

    it('KL is never negative, and exactly 0 for equal parameters, also in float32', async () => {
      const rng = new Rng(13);
      for (const scale of [0.1, 1, 4]) {
        const many = randomBatch(dist, rng, 1300, scale, near);
        const results = [reference(dist, many).kl, (await compiled(dist, many)).kl];
        for (const kl of results) expect(Math.min(...Array.from(kl))).toBeGreaterThanOrEqual(0);
        forEachRow(dist, many, (i, p, q) => {
          // Each of at most paramSize terms rounds by an ulp or so.
          const exact = dist.kl(p, q);
          if (!(Math.abs(results[1][i] - exact) < paramSize * 3e-7 + 1e-5 * exact))
            expect.fail(`KL ${results[1][i]} in float32, ${exact} in float64, of [${p}] and [${q}]`);
        });
        const same = { ...many, q: many.p };
        for (const kl of [reference(dist, same).kl, (await compiled(dist, same)).kl]) {
          expect(Array.from(kl).every(v => v === 0)).toBe(true);
        }
      }
    });

    it('stays finite at extremes with its derivatives, also in float32', async () => {
      const rng = new Rng(14);
      const rows = 200;
      const pick = (): number => options.extremes[rng.integer(options.extremes.length)];
      const p = Float64Array.from({ length: rows * paramSize }, pick);
      const q = Float64Array.from({ length: rows * paramSize }, pick);
      const { noise } = randomBatch(dist, rng, rows, 1, () => 0);
      // Actions of another distribution: under p they may be all but impossible.
      const action = new Float64Array(rows * actionSize);
      const out = new Float64Array(actionSize);
      for (let i = 0; i < rows; i++) {
        dist.sample(randomRow(rng, 1), row(noise, i, noiseSize), out);
        action.set(out.map(Math.fround), i * actionSize);
      }
      const extreme: Batch = { rows, p, q, noise, action };
      const [exact, got] = [reference(dist, extreme), await compiled(dist, extreme)];
      for (const result of [exact, got]) {
        for (const [key, values] of Object.entries(result)) {
          const bad = Array.from(values).findIndex(v => !Number.isFinite(v));
          if (bad >= 0)
            expect.fail(`${key}[${bad}] is ${values[bad]} in ${result === got ? 'float32' : 'float64'}`);
        }
        expect(Math.min(...Array.from(result.kl))).toBeGreaterThanOrEqual(0);
      }
      forEachRow(dist, extreme, (i, a, b, _, at) => {
        expectNear(exact.kl[i], dist.kl(a, b), 1e-11);
        expectNear(exact.logProb[i], dist.logProb(a, at), 1e-11);
        // Logits of 1e4 have three decimals in float32.
        expectNear(got.kl[i], dist.kl(a, b), 1e-3);
        expectNear(got.entropy[i], dist.entropy(a), 1e-3);
        expectNear(got.logProb[i], dist.logProb(a, at), 1e-3);
      });
    });

    it('lets NaN through, also in float32', async () => {
      const rows = 2 * paramSize;
      const clean = randomBatch(dist, new Rng(15), rows, 1, () => 0.3);
      // Row k has a NaN at parameter k of p, row paramSize + k at parameter k of q.
      const broken = (values: Float64Array, first: number): Float64Array =>
        values.map((v, i) => (Math.floor(i / paramSize) === first + (i % paramSize) ? Number.NaN : v));
      const batchWithNaN = { ...clean, p: broken(clean.p, 0), q: broken(clean.q, paramSize) };
      for (const { kl, logProb } of [reference(dist, batchWithNaN), await compiled(dist, batchWithNaN)]) {
        for (let i = 0; i < rows; i++) {
          expect(kl[i]).toBeNaN();
          if (i < paramSize) expect(logProb[i]).toBeNaN();
        }
      }
    });

    it('refuses tensors of a wrong shape, in one line', () => {
      const g = new Graph();
      const p = g.input('p', [4, paramSize]);
      const wide = g.input('wide', [4, paramSize + 1]);
      const flat = g.input('flat', [paramSize]);
      const fewer = g.input('fewer', [3, paramSize]);
      const actions = g.input('actions', [3, actionSize]);
      const message = `${dist.name}: params has shape (4, ${paramSize + 1}), not (B, ${paramSize}): reshape it`;
      expect(() => dist.graph.entropy(wide)).toThrow(message);
      expect(() => dist.graph.mode(wide)).toThrow(message);
      expect(() => dist.graph.entropy(flat)).toThrow(/params has shape \(\d+\), not/);
      expect(() => dist.graph.kl(p, wide)).toThrow(/: q has shape/);
      expect(() => dist.graph.kl(p, fewer)).toThrow(/: q has 3 rows, the parameters 4: pass as many of each/);
      expect(() => dist.graph.logProb(p, actions)).toThrow(/: action has 3 rows, the parameters 4/);
      expect(() => dist.graph.sample(p, wide)).toThrow(/: noise has shape/);
    });
  });

  describe(`${name}: sampling`, () => {
    it('is the same function of parameters and noise in the graph', () => {
      const many = randomBatch(dist, new Rng(16), 2000, 2, () => 0);
      const g = new Graph();
      g.output(
        'sample',
        dist.graph.sample(g.input('p', [2000, paramSize]), g.input('noise', [2000, noiseSize])),
      );
      const { sample } = evaluate(g, { p: many.p, noise: many.noise });
      expectRowsNear(sample.data, many.action, 1e-6);
    });
  });
}

function forEachRow(
  dist: Distribution,
  { rows, p, q, noise, action }: Batch,
  f: (i: number, p: Float64Array, q: Float64Array, noise: Float64Array, action: Float64Array) => void,
): void {
  for (let i = 0; i < rows; i++) {
    f(
      i,
      row(p, i, dist.paramSize),
      row(q, i, dist.paramSize),
      row(noise, i, dist.noiseSize),
      row(action, i, dist.actionSize),
    );
  }
}

/** Checks a row of derivatives against central differences of fourth order: exact to 1e-11 of the function's size. */
function expectDerivatives(
  actual: ArrayLike<number>,
  at: Float64Array,
  f: (x: Float64Array) => number,
): void {
  const h = 1e-3;
  const tolerance = 1e-9 * (1 + Math.abs(f(at)));
  at.forEach((v, k) => {
    const step = (times: number): number => f(at.with(k, v + times * h));
    const expected = (8 * (step(1) - step(-1)) - (step(2) - step(-2))) / (12 * h);
    expectNear(actual[k], expected, tolerance, `derivative ${k}`);
  });
}

function expectNear(actual: number, expected: number, tolerance: number, what = ''): void {
  if (!(Math.abs(actual - expected) <= tolerance * (1 + Math.abs(expected)))) {
    expect.fail(`${what} ${actual} is not within ${tolerance} of ${expected}`);
  }
}

function expectRowsNear(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  what = '',
): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < actual.length; i++) expectNear(actual[i], expected[i], tolerance, `${what}[${i}]`);
}
