import { describe, expect, it } from 'vitest';
import { concat, evaluate, expand, Graph, grad, reduceSum } from '../../src/engine/index.ts';
import { gaussian, LOG_STD_MAX, LOG_STD_MIN } from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';
import { compiled, nodeCount, reference } from './support/batch.ts';
import { klOfNormals } from './support/high-precision.ts';

const params = (mean: number[], std: number[]): number[] => [...mean, ...std.map(Math.log)];
const old = params([0, 0.5, -0.3, 1, 0.2], [0.5, 0.8, 0.3, 1.2, 0.6]);

// Computed independently of this code.
const VECTORS = [
  {
    next: params([0.1, 0.6, -0.2, 0.9, 0.3], [0.6, 0.7, 0.4, 1, 0.5]),
    forwards: 0.2737055402668639,
    backwards: 0.3150458769666965,
  },
  {
    next: params([0.3, 0.9, 0.1, 0.5, 0.6], [0.8, 0.5, 0.6, 0.9, 0.8]),
    forwards: 1.8554542793253774,
    backwards: 2.955220874995611,
  },
];

describe('gaussian', () => {
  it.each(VECTORS)('gives the recorded KL of five dimensions: $forwards', ({ next, forwards, backwards }) => {
    const dist = gaussian(5);
    expect(Math.abs(dist.kl(old, next) - forwards)).toBeLessThan(1e-12);
    expect(Math.abs(dist.kl(next, old) - backwards)).toBeLessThan(1e-12);
  });

  it.each(VECTORS)('gives it from the graph: $forwards', async ({ next, forwards, backwards }) => {
    const dist = gaussian(5);
    const batch = {
      rows: 2,
      p: Float64Array.from([...old, ...next]),
      q: Float64Array.from([...next, ...old]),
      noise: new Float64Array(10),
      action: new Float64Array(10),
    };
    const exact = reference(dist, batch).kl;
    expect(Math.abs(exact[0] - forwards)).toBeLessThan(1e-12);
    expect(Math.abs(exact[1] - backwards)).toBeLessThan(1e-12);
    const single = (await compiled(dist, batch)).kl;
    expect(Math.abs(single[0] - forwards)).toBeLessThan(1e-5);
    expect(Math.abs(single[1] - backwards)).toBeLessThan(1e-5);
  });

  it('logProb integrates to 1; entropy and KL are the integrals that define them', () => {
    const dist = gaussian(1);
    const rng = new Rng(1);
    for (let i = 0; i < 50; i++) {
      const p = [rng.normal(), rng.normal()];
      const q = [rng.normal(), rng.normal()];
      const std = Math.exp(p[1]);
      // The trapezoidal rule converges exponentially for a normal density; 14 std hold all of it.
      let [mass, entropy, kl] = [0, 0, 0];
      const step = std / 16;
      for (let x = p[0] - 14 * std; x <= p[0] + 14 * std; x += step) {
        const logP = dist.logProb(p, [x]);
        const weight = Math.exp(logP) * step;
        mass += weight;
        entropy -= weight * logP;
        kl += weight * (logP - dist.logProb(q, [x]));
      }
      expect(mass).toBeCloseTo(1, 10);
      expect(dist.entropy(p)).toBeCloseTo(entropy, 9);
      expect(Math.abs(dist.kl(p, q) - kl)).toBeLessThan(1e-9 * (1 + kl));
    }
  });

  it('KL has 12 digits at any distance (against 90-digit arithmetic)', () => {
    const dist = gaussian(1);
    const rng = new Rng(2);
    for (let i = 0; i < 300; i++) {
      const distance = 10 ** (-14 + (i % 15));
      const p = [rng.normal(), rng.normal()];
      const q = p.map(v => v + distance * rng.normal());
      const truth = klOfNormals(p[0], p[1], q[0], q[1]);
      expect(Math.abs(dist.kl(p, q) - truth), `${p} ${q}`).toBeLessThanOrEqual(1e-12 * truth);
      // Widths alone: no distance of the means to hide behind.
      const widths = klOfNormals(0, p[1], 0, q[1]);
      expect(Math.abs(dist.kl([0, p[1]], [0, q[1]]) - widths)).toBeLessThanOrEqual(1e-12 * widths);
    }
  });

  it('samples mean + std * noise', () => {
    const out = new Float64Array(2);
    gaussian(2).sample([1, -2, Math.log(2), Math.log(0.5)], [0.5, -1], out);
    expect(out[0]).toBeCloseTo(2, 14);
    expect(out[1]).toBeCloseTo(-2.5, 14);
  });

  it('clamps logStd to its bounds in every function', () => {
    const dist = gaussian(1);
    const out = [0];
    for (const [beyond, bound] of [
      [-1000, LOG_STD_MIN],
      [1000, LOG_STD_MAX],
    ] as const) {
      expect(dist.entropy([0, beyond])).toBe(dist.entropy([0, bound]));
      expect(dist.logProb([0, beyond], [1])).toBe(dist.logProb([0, bound], [1]));
      expect(dist.kl([0, beyond], [0.1, 0])).toBe(dist.kl([0, bound], [0.1, 0]));
      expect(dist.kl([0.1, 0], [0, beyond])).toBe(dist.kl([0.1, 0], [0, bound]));
      dist.sample([0, beyond], [1], out);
      expect(out[0]).toBe(Math.exp(bound));
    }
  });

  it('answers a NaN logStd with a NaN entropy', () => {
    expect(gaussian(1).entropy([0, Number.NaN])).toBeNaN();
  });

  describe('as a policy builds it: a logStd of its own for all rows', () => {
    function policy() {
      const g = new Graph();
      const mean = g.input('mean', [8, 3]);
      const logStd = g.input('logStd', [3]);
      const params = concat([mean, expand(logStd, [8, 3])], -1);
      return { g, mean, logStd, params };
    }

    it('takes few nodes', () => {
      const dist = gaussian(3);
      const { g, params } = policy();
      // A node costs 0.9 µs a minibatch: more than these must be worth it.
      expect(nodeCount(dist.graph.logProb(params, g.input('action', [8, 3])))).toBe(9);
      expect(nodeCount(dist.graph.entropy(params))).toBe(5);
      expect(nodeCount(dist.graph.kl(g.input('q', [8, 6]), params))).toBe(17);
      expect(nodeCount(dist.graph.sample(params, g.input('noise', [8, 3])))).toBe(4);
    });

    it('has the right derivatives by mean and logStd', () => {
      const { g, mean, logStd, params } = policy();
      const dist = gaussian(3);
      const action = g.input('action', [8, 3]);
      const q = g.input('q', [8, 6]);
      const loss = {
        logProb: reduceSum(dist.graph.logProb(params, action)),
        entropy: reduceSum(dist.graph.entropy(params)),
        kl: reduceSum(dist.graph.kl(q, params)),
      };
      for (const [name, value] of Object.entries(loss)) {
        const [byMean, byLogStd] = grad(value, [mean, logStd], { unused: 'zero' });
        g.output(`${name} by mean`, byMean);
        g.output(`${name} by logStd`, byLogStd);
      }
      const rng = new Rng(3);
      const normals = (n: number): Float64Array => Float64Array.from({ length: n }, () => rng.normal());
      const feeds = { mean: normals(24), logStd: normals(3), action: normals(24), q: normals(48) };
      const got = evaluate(g, feeds);
      const plain = (name: keyof typeof loss, m: Float64Array, s: Float64Array): number => {
        let sum = 0;
        for (let i = 0; i < 8; i++) {
          const p = [...m.subarray(3 * i, 3 * i + 3), ...s];
          if (name === 'logProb') sum += dist.logProb(p, feeds.action.subarray(3 * i, 3 * i + 3));
          else if (name === 'entropy') sum += dist.entropy(p);
          else sum += dist.kl(feeds.q.subarray(6 * i, 6 * i + 6), p);
        }
        return sum;
      };
      const h = 1e-5;
      for (const name of Object.keys(loss) as (keyof typeof loss)[]) {
        const check = (input: 'mean' | 'logStd') => {
          const at = feeds[input];
          at.forEach((v, k) => {
            const [up, down] = [v + h, v - h].map(x =>
              input === 'mean'
                ? plain(name, at.with(k, x), feeds.logStd)
                : plain(name, feeds.mean, at.with(k, x)),
            );
            const expected = (up - down) / (2 * h);
            const actual = got[`${name} by ${input}`].data[k];
            expect(Math.abs(actual - expected)).toBeLessThan(1e-5 * (1 + Math.abs(expected)));
          });
        };
        check('mean');
        check('logStd');
      }
    });
  });
});
