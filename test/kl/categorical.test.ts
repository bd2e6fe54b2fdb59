import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compile, evaluate, Graph } from '../../src/engine/index.ts';
import {
  bernoulli,
  categorical,
  type Distribution,
  MASKED_LOGIT,
  multiCategorical,
} from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';
import { nodeCount } from './support/batch.ts';
import { klOfLogits } from './support/high-precision.ts';

const logits = fc.array(fc.double({ min: -30, max: 30, noNaN: true }), { minLength: 1, maxLength: 6 });

describe('categorical', () => {
  it('gives known values', () => {
    const dist = categorical(3);
    const p = [0.5, 0.25, 0.25].map(Math.log);
    const q = [0.25, 0.25, 0.5].map(Math.log);
    expect(dist.entropy(p)).toBeCloseTo(1.5 * Math.LN2, 15);
    expect(dist.logProb(p, [0])).toBeCloseTo(-Math.LN2, 15);
    expect(dist.kl(p, q)).toBeCloseTo(0.25 * Math.LN2, 15);
  });

  it('takes the first of equally likely categories, in numbers and in the graph', async () => {
    const dist = categorical(3);
    const out = [Number.NaN];
    dist.mode([1, 2, 2], out);
    expect(out).toEqual([1]);
    const g = new Graph();
    g.output('mode', dist.graph.mode(g.input('params', [2, 3])));
    const program = await compile(g);
    const { mode } = program.run({ params: Float32Array.of(1, 2, 2, 0, 0, 0) });
    expect([...mode]).toEqual([1, 0]);
    program.dispose();
  });

  it('does not care for a constant added to all logits', () => {
    const dist = categorical(4);
    const p = [0.5, -1, 2, 0];
    const q = [0.25, -1, 1.5, 0.5];
    for (const shift of [1, -64, 1024]) {
      const [ps, qs] = [p.map(v => v + shift), q.map(v => v - shift)];
      expect(dist.kl(ps, qs)).toBeCloseTo(dist.kl(p, q), 14);
      expect(dist.kl(p, ps)).toBe(0);
      expect(dist.entropy(ps)).toBeCloseTo(dist.entropy(p), 14);
    }
  });

  it('KL has 12 digits at any distance (against 90-digit arithmetic)', () => {
    const rng = new Rng(1);
    for (let i = 0; i < 200; i++) {
      const k = 2 + (i % 5);
      const distance = 10 ** (-14 + (i % 15));
      const p = Array.from({ length: k }, () => 3 * rng.normal());
      const q = p.map(v => v + distance * rng.normal());
      const truth = klOfLogits(p, q);
      expect(Math.abs(categorical(k).kl(p, q) - truth), `${p} | ${q}`).toBeLessThanOrEqual(1e-12 * truth);
    }
  });

  it('KL is never negative and 0 only for equals, whatever the logits', () => {
    fc.assert(
      fc.property(logits, fc.infiniteStream(fc.double({ min: -1, max: 1, noNaN: true })), (p, stream) => {
        const dist = categorical(p.length);
        const q = p.map(v => v + (stream.next().value as number));
        expect(dist.kl(p, q)).toBeGreaterThanOrEqual(0);
        expect(dist.kl(p, p)).toBe(0);
      }),
    );
  });

  it('stays finite where probabilities underflow', () => {
    const dist = categorical(3);
    const p = [1e4, 0, -1e4];
    const q = [-1e4, 0, 1e4];
    expect(dist.kl(p, q)).toBe(2e4); // log p - log q of the one possible category
    expect(dist.entropy(p)).toBe(0);
    expect(dist.logProb(p, [2])).toBe(-2e4);
    // A category that p rules out costs nothing, one that q rules out costs what it must.
    expect(dist.kl([0, 0, MASKED_LOGIT], [0, 0, MASKED_LOGIT])).toBe(0);
    expect(dist.kl([0, 0, MASKED_LOGIT], [0, 0, 0])).toBeCloseTo(Math.log(1.5), 14);
    expect(dist.kl([0, 0, 0], [0, 0, MASKED_LOGIT])).toBeCloseTo(1e9 / 3, 0);
    expect(dist.entropy([0, 0, MASKED_LOGIT])).toBeCloseTo(Math.LN2, 15);
  });

  it('a single category has nothing to say', () => {
    const dist = categorical(1);
    const out = [9];
    dist.sample([3], [0.7], out);
    expect(out).toEqual([0]);
    expect([dist.logProb([3], [0]), dist.entropy([3]), dist.kl([3], [-2])]).toEqual([0, 0, 0]);
    const g = new Graph();
    g.output('sample', dist.graph.sample(g.input('p', [2, 1]), g.input('u', [2, 1])));
    expect([...evaluate(g, { p: [1, 2], u: [0.1, 0.9] }).sample.data]).toEqual([0, 0]);
  });
});

describe('bernoulli', () => {
  it('is a categorical of two, seen from one logit', () => {
    const rng = new Rng(2);
    const [one, two] = [bernoulli(1), categorical(2)];
    for (let i = 0; i < 500; i++) {
      const [a, b] = [4 * rng.normal(), 4 * rng.normal()];
      expect(one.kl([a], [b])).toBeCloseTo(two.kl([0, a], [0, b]), 13);
      expect(one.entropy([a])).toBeCloseTo(two.entropy([0, a]), 14);
      for (const action of [0, 1])
        expect(one.logProb([a], [action])).toBeCloseTo(two.logProb([0, a], [action]), 13);
    }
  });

  it('KL has 12 digits at any distance and saturation (against 90-digit arithmetic)', () => {
    const rng = new Rng(3);
    for (let i = 0; i < 200; i++) {
      const distance = 10 ** (-14 + (i % 15));
      const a = [1, 5, 15][i % 3] * rng.normal();
      const b = a + distance * rng.normal();
      const truth = klOfLogits([0, a], [0, b]);
      expect(Math.abs(bernoulli(1).kl([a], [b]) - truth), `${a} ${b}`).toBeLessThanOrEqual(1e-12 * truth);
    }
  });

  it('stays finite and signed where probabilities underflow', () => {
    const dist = bernoulli(1);
    expect(dist.kl([1e4], [-1e4])).toBe(1e4);
    expect(dist.kl([-1e4], [1e4])).toBe(1e4);
    expect(dist.logProb([-1e4], [1])).toBe(-1e4);
    expect(dist.logProb([1e4], [1])).toBe(0);
    expect(dist.entropy([1e4])).toBe(0);
  });
});

describe('sampling categories', () => {
  it('counts the cumulative probabilities up to the noise', () => {
    const dist = categorical(4);
    const p = [0.1, 0.2, 0.3, 0.4].map(Math.log);
    const pick = (u: number): number => {
      const out = [0];
      dist.sample(p, [u], out);
      return out[0];
    };
    expect([0, 0.0999, 0.1001, 0.2999, 0.3001, 0.5999, 0.6001, 0.9999].map(pick)).toEqual([
      0, 0, 1, 1, 2, 2, 3, 3,
    ]);
    expect(pick(1 - 2 ** -53)).toBe(3);
    expect(pick(1)).toBe(3);
  });

  it('on a boundary takes the next category, in the graph too', () => {
    const u = [0, 0.25, 0.5, 0.75];
    const g = new Graph();
    g.output('sample', categorical(4).graph.sample(g.input('p', [4, 4]), g.input('u', [4, 1])));
    expect([...evaluate(g, { p: new Float64Array(16), u }).sample.data]).toEqual([0, 1, 2, 3]);
    const out = [0];
    const plain = u.map(v => {
      categorical(4).sample([0, 0, 0, 0], [v], out);
      return out[0];
    });
    expect(plain).toEqual([0, 1, 2, 3]);
  });

  it('survives noise of 1, which float64 noise becomes in float32 once in 2^25', () => {
    const out = [0];
    categorical(3).sample([0, 0, MASKED_LOGIT], [1], out);
    expect(out).toEqual([1]);
    const g = new Graph();
    g.output('sample', categorical(3).graph.sample(g.input('p', [1, 3]), g.input('u', [1, 1])));
    expect(evaluate(g, { p: [0, 0, 0], u: [1] }).sample.data[0]).toBe(2);
  });

  // Noise at both ends and on the boundaries, with impossible categories first, last and between.
  const edges = [0, 2 ** -24, 0.25, 0.5, 0.75, 1 - 2 ** -23, 1 - 2 ** -24];
  const X = MASKED_LOGIT;
  const masked: [string, Distribution, number[][]][] = [
    [
      'categorical(5)',
      categorical(5),
      [
        [X, 0, X, 0, X],
        [0, X, X, X, X],
        [X, X, X, X, 0],
        [X, 0.3, -1.7, 2.1, X],
        [0.1, X, 0.7, X, X],
      ],
    ],
    [
      'multiCategorical([3, 4])',
      multiCategorical([3, 4]),
      [
        [X, 0, X, X, 0, 0, X],
        [0, X, X, X, X, X, 0],
        [X, X, 0, 0.3, -1.7, 2.1, X],
        [0, 0, X, 0, 0, 0, X],
      ],
    ],
    ['bernoulli(2)', bernoulli(2), [[X, -X]]],
  ];

  it.each(masked)('never takes an impossible one: %s', async (_, dist, rows) => {
    const rng = new Rng(4);
    const cases = rows.flatMap(row => {
      const noises = edges.map(u => new Array<number>(dist.noiseSize).fill(u));
      for (let i = 0; i < 2000; i++) {
        const noise = new Float32Array(dist.noiseSize);
        dist.fillNoise(rng, noise);
        noises.push([...noise]);
      }
      return noises.map(noise => ({ row, noise }));
    });
    // Softmaxes whose float32 sum is a little below 1 are rare: many rows, each with noise as high as it gets.
    for (let i = 0; i < 500; i++) {
      for (const row of rows) {
        const logits = row.map(v => (v === X ? X : Math.fround(rng.normal())));
        cases.push({ row: logits, noise: new Array<number>(dist.noiseSize).fill(1 - 2 ** -24) });
      }
    }
    const g = new Graph();
    const p = g.input('p', [cases.length, dist.paramSize]);
    g.output('sample', dist.graph.sample(p, g.input('noise', [cases.length, dist.noiseSize])));
    const feeds = {
      p: Float32Array.from(cases.flatMap(({ row }) => row)),
      noise: Float32Array.from(cases.flatMap(({ noise }) => noise)),
    };
    const exact = evaluate(g, feeds).sample.data;
    const single = (await (await compile(g, { device: 'cpu', threads: 1 })).run(feeds))
      .sample as Float32Array;
    const out = new Float64Array(dist.actionSize);
    cases.forEach(({ row, noise }, i) => {
      dist.sample(row, noise, out);
      for (const action of [out, exact, single].map((all, k) =>
        k === 0 ? all : all.subarray(i * dist.actionSize, (i + 1) * dist.actionSize),
      )) {
        const logProb = dist.logProb(row, action);
        if (!(logProb > -100)) expect.fail(`[${row}] with noise ${noise} gave ${action}`);
      }
    });
  });
});

it('graphs take few nodes', () => {
  const count = (dist: Distribution, what: 'logProb' | 'entropy' | 'kl' | 'sample' | 'mode'): number => {
    const g = new Graph();
    const p = g.input('p', [8, dist.paramSize]);
    if (what === 'logProb') return nodeCount(dist.graph.logProb(p, g.input('action', [8, dist.actionSize])));
    if (what === 'kl') return nodeCount(dist.graph.kl(p, g.input('q', [8, dist.paramSize])));
    if (what === 'sample') return nodeCount(dist.graph.sample(p, g.input('noise', [8, dist.noiseSize])));
    return nodeCount(dist.graph[what](p));
  };
  const table = (dist: Distribution) =>
    (['logProb', 'entropy', 'kl', 'sample', 'mode'] as const).map(what => count(dist, what));
  // logProb, entropy, kl, sample, mode. A node costs 0.9 µs a minibatch: more than these must be worth it.
  expect(table(categorical(5))).toEqual([3, 5, 11, 7, 2]);
  expect(table(multiCategorical([3, 2, 4]))).toEqual([9, 9, 19, 12, 6]);
  expect(table(multiCategorical([3, 3, 3]))).toEqual([7, 7, 15, 10, 6]);
  expect(table(bernoulli(3))).toEqual([10, 10, 24, 3, 2]);
});
